//! What is seen of a machine.

/// A generation of GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Generation {
    /// NVIDIA V100 and older: compute capability 7.0.
    Volta,
    /// A100: 8.0.
    Ampere,
    /// H100, H200: 9.0.
    Hopper,
    /// B200, B300: 10.0.
    Blackwell,
}

impl Generation {
    /// Its name: `Hopper`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Volta => "Volta",
            Self::Ampere => "Ampere",
            Self::Hopper => "Hopper",
            Self::Blackwell => "Blackwell",
        }
    }

    /// Position in tables by generation.
    pub(crate) const fn column(self) -> usize {
        self as usize
    }

    /// What one NVLink counts, in MB/s: less than its nominal rate.
    const fn nvlink(self) -> (u64, u64) {
        match self {
            Self::Volta | Self::Ampere => (25_000, 20_000),
            Self::Hopper => (25_000, 20_600),
            Self::Blackwell => (50_000, 40_100),
        }
    }

    /// What NVLinks of a GPU count that carry so much together by their data sheet, in MB/s: 240,000 of an A100's
    /// 300,000, 370,800 of an H100's 450,000.
    /// What is no whole number of links counts as it stands.
    pub const fn counted(self, nominal: u64) -> u64 {
        let (of_link, counted) = self.nvlink();
        if nominal.is_multiple_of(of_link) { nominal / of_link * counted } else { nominal }
    }
}

/// Least rate of all links of a GPU inside its machine, in MB/s, from Hopper on, whose NVSwitches are the first to multicast
/// and add up.
pub(crate) const HOPPER_INSIDE: u64 = 350_000;

/// The maker of the processor, which decides how low-latency protocols fare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Processor {
    /// Intel.
    Intel,
    /// AMD.
    Amd,
}

/// A machine as NCCL sees it; all of a job are alike. Rates in MB/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Machine {
    /// Of its GPUs.
    pub generation: Generation,
    /// How many, ≥ 1.
    pub gpus: u32,
    /// What the NVLinks of a GPU count together: see [`Generation::counted`]; or its PCI link, if it has none.
    pub inside: u64,
    /// Whether `inside` is NVLink.
    pub has_nvlink: bool,
    /// Whether an NVSwitch multicasts and adds up.
    pub has_nvls: bool,
    /// Whether switches of the network add up, by a plugin of the fabric such as SHARP's. NCCL leaves it alone unless
    /// `NCCL_COLLNET_ENABLE=1` is set.
    pub has_collnet: bool,
    /// NICs.
    pub nics: u32,
    /// Rate of a NIC.
    pub nic: u64,
    /// Rate of a PCI link: 24,000 for generation 4 with 16 lanes, 48,000 for generation 5.
    pub pci: u64,
    /// Latency that the network plugin states, in ns; mostly 0, 75,000 for EFA.
    pub network_ns: u64,
    /// Its processors.
    pub processor: Processor,
    /// Two GPUs reach each NIC over one PCI switch, so that a ring leaves where it entered.
    pub nics_are_shared: bool,
}

impl Machine {
    /// What a GPU sends through a NIC at most.
    pub(crate) fn outside(&self) -> u64 {
        self.nic.min(self.pci)
    }

    /// NVIDIA DGX A100: eight NICs of 200 Gb/s.
    pub const DGX_A100: Self = Self {
        generation: Generation::Ampere,
        gpus: 8,
        inside: 240_000,
        has_nvlink: true,
        has_nvls: false,
        has_collnet: false,
        nics: 8,
        nic: 25_000,
        pci: 24_000,
        network_ns: 0,
        processor: Processor::Amd,
        nics_are_shared: true,
    };

    /// NVIDIA DGX H100 or H200: eight NICs of 400 Gb/s.
    pub const DGX_H100: Self = Self {
        generation: Generation::Hopper,
        inside: 370_800,
        has_nvls: true,
        nic: 50_000,
        pci: 48_000,
        processor: Processor::Intel,
        nics_are_shared: false,
        ..Self::DGX_A100
    };

    /// NVIDIA DGX B200: eight NICs of 400 Gb/s.
    pub const DGX_B200: Self = Self { generation: Generation::Blackwell, inside: 721_800, ..Self::DGX_H100 };
}
