//! Devices by the names that a driver gives them: UUIDs and PCI addresses, from a list of the GPUs of machines.
//!
//! A list has a line for each GPU, as `nvidia-smi --query-gpu=index,uuid,pci.bus_id --format=csv,noheader` prints it;
//! behind the machine's name and a colon, as `pdsh` adds it, where GPUs of machines differ.

use canopy_topology::same_host;

/// Most GPUs that are listed.
const LISTED_MAX: usize = 1 << 20;

/// GPUs of machines.
#[derive(Debug, Default)]
pub(super) struct Devices(Vec<Listed>);

#[derive(Debug)]
struct Listed {
    /// None: a GPU of every machine.
    host: Option<String>,
    index: u32,
    uuid: String,
    address: PciAddress,
}

/// Domain, bus, device and function.
type PciAddress = (u32, u8, u8, u8);

/// Reads `00000000:1B:00.0`, `0000:1b:00.0` or `1b:00.0`.
fn pci_address(text: &str) -> Option<PciAddress> {
    let (place, function) = text.trim().rsplit_once('.')?;
    let mut parts = place.rsplit(':');
    let (device, bus, domain) = (parts.next()?, parts.next()?, parts.next().unwrap_or("0"));
    let byte = |text: &str| u8::from_str_radix(text, 16).ok();
    let is_whole = parts.next().is_none();
    let address = (u32::from_str_radix(domain, 16).ok()?, byte(bus)?, byte(device)?, byte(function)?);
    is_whole.then_some(address)
}

fn is_uuid(text: &str) -> bool {
    text.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("gpu-"))
}

impl Devices {
    /// Adds the GPU that a line lists. Returns false for a line that lists no GPU.
    ///
    /// # Errors
    /// Too many GPUs.
    pub(super) fn take(&mut self, line: &str) -> Result<bool, String> {
        let Some(listed) = Listed::read(line) else { return Ok(false) };
        if self.0.len() >= LISTED_MAX {
            return Err(format!("more than {LISTED_MAX} GPUs are listed; list those of the job"));
        }
        self.0.push(listed);
        Ok(true)
    }

    /// The index of a GPU on a machine. Errors say in words what is wrong with the name.
    pub(super) fn index(&self, host: &str, name: &str) -> Result<u32, String> {
        if name.to_ascii_lowercase().starts_with("mig-") {
            let what = "is a MIG instance, and plans are for whole GPUs; turn MIG off, or leave the GPU out";
            return Err(format!("`{name}` {what}"));
        }
        let address = pci_address(name);
        if address.is_none() && !is_uuid(name) {
            return Err(format!("`{name}` is no index, UUID or PCI address of a GPU"));
        }
        let is_named = |listed: &&Listed| match address {
            Some(address) => listed.address == address,
            None => listed.uuid.eq_ignore_ascii_case(name),
        };
        let is_here = |listed: &&Listed| listed.host.as_deref().is_none_or(|own| same_host(own, host));
        if let Some(listed) = self.0.iter().filter(is_named).find(is_here) {
            return Ok(listed.index);
        }
        let elsewhere = self.0.iter().filter(is_named).find_map(|listed| listed.host.as_deref());
        Err(match elsewhere {
            Some(other) if address.is_none() => format!("`{name}` is a GPU of {other}, not of {host}"),
            _ => format!(
                "no GPU `{name}` of {host} is listed; put the lines of `nvidia-smi \
                 --query-gpu=index,uuid,pci.bus_id --format=csv,noheader` into the file, behind `{host}: ` if machines \
                 differ, or write the GPU's index"
            ),
        })
    }
}

impl Listed {
    fn read(line: &str) -> Option<Self> {
        let mut fields = line.split(',').map(str::trim);
        let (first, uuid, address) = (fields.next()?, fields.next()?, fields.next()?);
        let (host, index) = match first.rsplit_once(':') {
            Some((host, index)) => (Some(host.trim().to_owned()), index.trim()),
            None => (None, first),
        };
        if !is_uuid(uuid) || fields.next().is_some() || host.as_deref() == Some("") {
            return None;
        }
        let (index, address) = (index.parse().ok()?, pci_address(address)?);
        Some(Self { host, index, uuid: uuid.to_owned(), address })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_in_all_lengths() {
        for text in ["00000000:1B:00.0", "0000:1b:00.0", "1b:00.0"] {
            assert_eq!(pci_address(text), Some((0, 0x1b, 0, 0)), "{text}");
        }
        assert_eq!(pci_address("10001:af:1f.7"), Some((0x1_0001, 0xaf, 0x1f, 7)));
        for text in ["", "1b", "1b:00", "x:00.0", "0:0:1b:00.0", "1b:00.0.0", ":1b:00.", "100:00.0"] {
            assert_eq!(pci_address(text), None, "{text}");
        }
    }

    #[test]
    fn gpus_are_found_by_machine() {
        let mut devices = Devices::default();
        for line in ["a: 0, GPU-1, 00000000:1B:00.0", "a: 1, GPU-2, 00000000:43:00.0", "b: 0, GPU-3, 00000000:43:00.0"]
        {
            assert_eq!(devices.take(line), Ok(true), "{line}");
        }
        for line in
            ["a:0", "n[1-2]:0,n3:1,b:0", "0, GPU-1", ": 0, GPU-1, 1b:00.0", "x, GPU-1, 1b:00.0", "0, 1, 1b:00.0"]
        {
            assert_eq!(devices.take(line), Ok(false), "{line}");
        }
        assert_eq!((devices.index("a", "43:00.0"), devices.index("b", "0000:43:00.0")), (Ok(1), Ok(0)));
        assert_eq!(devices.index("a.example", "gpu-2"), Ok(1));
        assert_eq!(devices.index("a", "GPU-3").unwrap_err(), "`GPU-3` is a GPU of b, not of a");
        assert!(
            devices.index("b", "1b:00.0").unwrap_err().starts_with("no GPU `1b:00.0` of b is listed; put the lines")
        );
        assert!(devices.index("b", "MIG-1").unwrap_err().contains("is a MIG instance"));
        assert!(devices.index("b", "x").unwrap_err().contains("is no index, UUID or PCI address"));
    }
}
