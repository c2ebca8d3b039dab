//! The model beside what public logs and papers say: channels, choices, and busbw or algbw.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

use canopy_canonical::boxes;
use canopy_schedule::CollectiveKind;
use canopy_stock::nccl::{
    Algorithm, Channels, Heads, Known, Machine, Maker, Processor, Protocol, Seen, Stock, Timed, Unseen, Version,
};
use canopy_topology::{TopologyLimits, generate};
use num_rational::Ratio;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Eight A100 with four NICs of 200 Gb/s, which two GPUs share.
const A100_FOUR_NICS: Machine = Machine { nics: 4, processor: Processor::Intel, ..Machine::DGX_A100 };
/// Eight H100 with NICs of 200 Gb/s.
const H100_SLOW_NICS: Machine = Machine { nic: 25_000, ..Machine::DGX_H100 };
const MI300X: Machine = Machine { gpus: 8, nics: 8, nic: 50_000, ..Machine::DGX_A100 };

/// Which rate a source gives.
#[derive(Clone, Copy, PartialEq)]
enum Rate {
    Bus,
    Algorithm,
}
use Rate::{Algorithm as Alg, Bus};

/// What a run left NCCL to choose.
#[derive(Clone, Copy, PartialEq)]
enum Forced {
    Nothing,
    Algorithm,
    /// Only simple rings.
    Simple,
}

/// A published figure: machine, machines, collective, size, what NCCL takes, what the model says, and what was measured, both
/// in MB/s.
struct Row {
    machine: (&'static str, Machine),
    nodes: u32,
    kind: CollectiveKind,
    bytes: u64,
    taken: (Algorithm, Forced),
    rate: Rate,
    model: u64,
    measured: u64,
    source: &'static str,
}

const fn row(
    machine: (&'static str, Machine),
    nodes: u32,
    (kind, bytes): (CollectiveKind, u64),
    taken: (Algorithm, Forced),
    rate: Rate,
    (model, measured): (u64, u64),
    source: &'static str,
) -> Row {
    Row { machine, nodes, kind, bytes, taken, rate, model, measured, source }
}

const A100: (&str, Machine) = ("DGX A100", Machine::DGX_A100);
const A100_4: (&str, Machine) = ("A100, 4 NICs", A100_FOUR_NICS);
const H100: (&str, Machine) = ("DGX H100", Machine::DGX_H100);
const H200: (&str, Machine) = ("DGX H200", Machine::DGX_H100);
const H100_200G: (&str, Machine) = ("H100, 8 NICs of 200G", H100_SLOW_NICS);
const B200: (&str, Machine) = ("DGX B200", Machine::DGX_B200);
/// GB200: domains of NVLink count as one machine, whose hosts have four GPUs with a NIC each.
const NVL72: (&str, Machine) = ("GB200 NVL72", Machine { gpus: 72, nics: 72, ..Machine::DGX_B200 });
const NVL4: (&str, Machine) = ("GB200, 4 GPUs", Machine { gpus: 4, nics: 4, has_nvls: false, ..Machine::DGX_B200 });
const NVL8: (&str, Machine) = ("GB200, 8 GPUs", Machine { has_nvls: false, ..Machine::DGX_B200 });
const AR: CollectiveKind = CollectiveKind::Allreduce;
const AG: CollectiveKind = CollectiveKind::Allgather;
const RS: CollectiveKind = CollectiveKind::ReduceScatter;
const RING: (Algorithm, Forced) = (Algorithm::Ring, Forced::Nothing);
const RING_FORCED: (Algorithm, Forced) = (Algorithm::Ring, Forced::Algorithm);
const RING_SIMPLE: (Algorithm, Forced) = (Algorithm::Ring, Forced::Simple);
const TREE_FORCED: (Algorithm, Forced) = (Algorithm::Tree, Forced::Algorithm);
const TREE: (Algorithm, Forced) = (Algorithm::Tree, Forced::Nothing);
const NVLS: (Algorithm, Forced) = (Algorithm::Nvls, Forced::Nothing);
const NVLS_TREE: (Algorithm, Forced) = (Algorithm::NvlsTree, Forced::Nothing);

const ROWS: [Row; 40] = [
    row(A100, 1, (AR, GIB), RING, Bus, (238_300, 230_800), "nccl#527"),
    row(A100, 2, (AR, 8 * GIB), RING_FORCED, Bus, (191_300, 192_000), "nccl#812"),
    row(A100, 2, (AG, GIB), RING_SIMPLE, Alg, (200_700, 187_000), "ForestColl, tables 2 and 3"),
    row(A100, 2, (AG, 16 * MIB), RING_SIMPLE, Alg, (89_100, 37_600), "ForestColl, tables 2 and 3"),
    row(A100, 2, (AG, MIB), RING_SIMPLE, Alg, (9_400, 3_200), "ForestColl, tables 2 and 3"),
    row(A100, 2, (RS, GIB), RING_SIMPLE, Alg, (200_700, 190_000), "ForestColl, tables 2 and 3"),
    row(A100_4, 3, (AR, 128 * MIB), RING, Bus, (86_600, 96_000), "nccl-tests#119"),
    row(H200, 1, (AR, 16 * GIB), NVLS, Bus, (475_800, 480_700), "ml-engineering, network"),
    row(H200, 1, (AR, GIB), NVLS, Bus, (473_000, 464_000), "ml-engineering, network"),
    row(H200, 1, (AR, 128 * MIB), NVLS, Bus, (453_000, 411_000), "ml-engineering, network"),
    row(H200, 1, (AR, 16 * MIB), NVLS, Bus, (339_000, 242_000), "ml-engineering, network"),
    row(H200, 1, (AR, MIB), RING, Bus, (65_500, 72_500), "ml-engineering, network"),
    row(H200, 1, (AR, 16 * GIB), RING_FORCED, Bus, (359_800, 367_200), "ml-engineering, network"),
    row(H200, 2, (AR, 16 * GIB), NVLS_TREE, Bus, (461_200, 486_800), "ml-engineering, network"),
    row(H100, 2, (AR, 16 * GIB), NVLS_TREE, Bus, (461_200, 470_000), "nccl-tests#309"),
    row(H100, 2, (AR, 8 * GIB), RING_FORCED, Bus, (382_300, 376_000), "nccl-tests#290"),
    row(H100, 2, (AR, 1_000_000_000), NVLS_TREE, Bus, (454_000, 435_000), "a cloud's acceptance test, NCCL 2.20.5"),
    row(H100, 2, (AR, 100_000_000), NVLS_TREE, Bus, (396_000, 304_000), "a cloud's acceptance test, NCCL 2.20.5"),
    row(H100, 2, (AR, 10_000_000), NVLS_TREE, Bus, (175_000, 125_000), "a cloud's acceptance test, NCCL 2.20.5"),
    row(H200, 4, (AR, 16 * GIB), RING, Bus, (382_300, 369_100), "ml-engineering, network"),
    row(H100, 4, (AR, 16 * GIB), RING, Bus, (382_300, 365_800), "nccl-tests#309"),
    row(H100, 8, (AR, 8 * GIB), RING, Bus, (377_000, 350_000), "uccl#205"),
    row(H100, 32, (AR, 2 * GIB), NVLS_TREE, Bus, (357_000, 340_000), "nccl#1218"),
    row(H100, 32, (AG, 2 * GIB), RING, Bus, (316_000, 200_000), "nccl#1218, one cold call"),
    row(H100_200G, 2, (AR, 8 * GIB), TREE, Bus, (309_900, 338_800), "a public log of A3 Mega"),
    row(H100_200G, 2, (AR, GIB), TREE, Bus, (306_100, 297_900), "a public log of A3 Mega"),
    row(B200, 1, (AR, 16 * GIB), NVLS, Bus, (828_000, 839_000), "ml-engineering, network"),
    row(B200, 4, (AR, 16 * GIB), NVLS_TREE, Bus, (383_500, 376_700), "ml-engineering, network"),
    row(B200, 4, (AR, GIB), NVLS_TREE, Bus, (376_500, 366_000), "ml-engineering, network"),
    row(B200, 4, (AR, 128 * MIB), NVLS_TREE, Bus, (302_000, 260_500), "ml-engineering, network"),
    row(NVL72, 1, (AR, 8 * GIB), NVLS, Bus, (916_000, 834_600), "coreweave/nccl-tests#43"),
    row(NVL72, 1, (AR, GIB), NVLS, Bus, (908_000, 681_200), "coreweave/nccl-tests#43"),
    row(NVL72, 20, (AR, 4 * GIB), NVLS_TREE, Bus, (0, 346_400), "coreweave/nccl-tests#48"),
    row(NVL4, 3, (AR, 16 * GIB), RING, Bus, (191_800, 196_700), "nccl#1801, NVLS off"),
    row(NVL4, 3, (AR, 16 * GIB), TREE_FORCED, Bus, (0, 234_400), "nccl#1801, NVLS off"),
    row(NVL8, 3, (AR, 16 * GIB), RING, Bus, (383_000, 393_700), "nccl#1801, NVLS off"),
    row(NVL8, 3, (AR, 16 * GIB), TREE_FORCED, Bus, (184_000, 485_700), "nccl#1801, NVLS off"),
    row(("MI300X", MI300X), 1, (AR, 8 * MIB), RING, Bus, (162_900, 161_100), "hpc-ai-envs#30"),
    row(H200, 1, (AR, 256 * KIB), RING, Bus, (0, 0), ""),
    row(A100, 2, (AR, 64 * KIB), TREE, Bus, (0, 0), ""),
];

fn stock(row: &Row) -> Stock {
    let (name, machine) = row.machine;
    match name {
        "MI300X" => Stock::rccl(Known::Mi300x, machine, row.nodes),
        _ => Stock::nccl(Version::default(), machine, row.nodes),
    }
}

/// What the model says, in MB/s.
fn modelled(row: &Row) -> u64 {
    let stock = stock(row);
    let (wanted, forced) = row.taken;
    let all = stock.timed(row.kind, row.bytes);
    let may_be = |timed: &&Timed| match forced {
        Forced::Nothing => true,
        Forced::Algorithm => timed.algorithm == wanted,
        Forced::Simple => timed.protocol == Protocol::Simple,
    };
    let timed = all.iter().find(may_be).unwrap();
    assert_eq!(timed.algorithm, wanted, "{} × {}: {:?} of {} bytes", row.machine.0, row.nodes, row.kind, row.bytes);
    let rate = Stock::algbw(row.bytes, timed.time_ps);
    let rate = if row.rate == Bus { rate * stock.bus_factor(row.kind) } else { rate };
    u64::try_from(rate.to_integer()).unwrap()
}

/// The formulas are those that were read, to three digits.
#[test]
fn figures_are_those_of_the_formulas() {
    for row in ROWS.iter().filter(|row| row.model > 0) {
        let found = modelled(row);
        let off = found.abs_diff(row.model) * 1_000 / row.model;
        assert!(off <= 8, "{} × {}, {} bytes: {found} instead of {}", row.machine.0, row.nodes, row.bytes, row.model);
    }
}

/// Error of each row in thousandths of what was measured.
fn errors(rows: impl Fn(&Row) -> bool) -> Vec<u64> {
    let mut errors: Vec<u64> = ROWS
        .iter()
        .filter(|row| row.measured > 0 && rows(row))
        .map(|row| modelled(row).abs_diff(row.measured) * 1_000 / row.measured)
        .collect();
    errors.sort_unstable();
    errors
}

/// Of all published runs, and of those from 1 GB on.
#[test]
fn medians_of_errors_are_small() {
    let (all, large) = (errors(|_| true), errors(|row| row.bytes >= 1_000_000_000));
    assert_eq!((all.len(), large.len()), (38, 28));
    assert!(all[all.len() / 2] <= 60, "{all:?}");
    assert!(large[large.len() / 2] <= 45, "{large:?}");
}

/// The table of the reference, row by row.
#[test]
fn the_reference_has_the_table() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/nccl-model.md");
    let text = std::fs::read_to_string(page).unwrap();
    let mut missing = Vec::new();
    for row in ROWS.iter().filter(|row| row.measured > 0) {
        let model = modelled(row);
        let signed = (i128::from(model) - i128::from(row.measured)) * 100;
        let measured = i128::from(row.measured);
        // To the nearest per cent.
        let percent = (2 * signed + measured).div_euclid(2 * measured);
        let kind = row.kind.name();
        let unit = if row.rate == Bus { "busbw" } else { "algbw" };
        let figure = |rate: u64| format!("{}.{}", rate / 1_000, rate % 1_000 / 100);
        let line = format!(
            "| {} × {} | {kind} | {} | {}{} | {} {unit} | {} | {percent:+} % | {} |",
            row.machine.0,
            row.nodes,
            size(row.bytes),
            row.taken.0.name(),
            match row.taken.1 {
                Forced::Nothing => "",
                Forced::Algorithm => ", forced",
                Forced::Simple => ", simple forced",
            },
            figure(model),
            figure(row.measured),
            row.source,
        );
        if !text.contains(&line) {
            missing.push(line);
        }
    }
    assert!(missing.is_empty(), "missing in {page}:\n{}", missing.join("\n"));
}

fn size(bytes: u64) -> String {
    match bytes {
        _ if bytes.is_multiple_of(GIB) => format!("{} GiB", bytes / GIB),
        _ if bytes.is_multiple_of(MIB) => format!("{} MiB", bytes / MIB),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

/// Search channels of section "Channels" of the reference: how many, inside, outside.
#[test]
fn channels_are_those_of_public_logs() {
    let rings = |machine, nodes| Stock::nccl(Version::default(), machine, nodes).rings().unwrap();
    let trees = |machine, nodes| Stock::nccl(Version::default(), machine, nodes).trees().unwrap();
    let heads = |machine, nodes| Stock::nccl(Version::default(), machine, nodes).nvls_heads();
    let channels = |count, inside, outside| Channels { count, inside, outside };
    let nvls = |count, inside, outside| Some(Heads { count, inside, outside });
    assert_eq!(rings(Machine::DGX_A100, 1), channels(12, 20_000, 20_000));
    assert_eq!(rings(Machine::DGX_A100, 2), channels(8, 24_000, 24_000));
    assert_eq!(trees(Machine::DGX_A100, 2), channels(8, 30_000, 24_000));
    assert_eq!(rings(A100_FOUR_NICS, 2), channels(4, 24_000, 24_000));
    assert_eq!(trees(A100_FOUR_NICS, 2), channels(4, 48_000, 24_000));
    assert_eq!(heads(Machine::DGX_A100, 1), None);
    assert_eq!(rings(Machine::DGX_H100, 1), channels(12, 30_000, 30_000));
    assert_eq!(rings(Machine::DGX_H100, 4), channels(8, 48_000, 48_000));
    assert_eq!(
        (heads(Machine::DGX_H100, 1), heads(Machine::DGX_H100, 4)),
        (nvls(8, 40_000, 40_000), nvls(8, 40_000, 48_000))
    );
    assert_eq!(rings(H100_SLOW_NICS, 4), channels(8, 24_000, 24_000));
    assert_eq!(trees(H100_SLOW_NICS, 4), channels(8, 48_000, 24_000));
    assert_eq!(heads(H100_SLOW_NICS, 4), nvls(8, 24_000, 24_000));
    assert_eq!(rings(Machine::DGX_B200, 1), channels(16, 45_000, 45_000));
    assert_eq!(trees(Machine::DGX_B200, 4), channels(8, 96_000, 48_000));
    assert_eq!(
        (heads(Machine::DGX_B200, 1), heads(Machine::DGX_B200, 4)),
        (nvls(8, 80_000, 80_000), nvls(8, 48_000, 48_000))
    );
}

/// 16 across DGX A100 or H100, 24 inside one; four fast NICs have 16 as well, four slow ones 8.
#[test]
fn channels_that_are_set_up_are_those_of_public_logs() {
    let channels = |machine, nodes| Stock::nccl(Version::default(), machine, nodes).channels();
    assert_eq!([Machine::DGX_A100, Machine::DGX_H100].map(|machine| channels(machine, 1)), [24, 24]);
    assert_eq!([Machine::DGX_A100, Machine::DGX_H100, H100_SLOW_NICS].map(|machine| channels(machine, 4)), [16; 3]);
    let four = |nic| Machine { nics: 4, nic, ..Machine::DGX_H100 };
    assert_eq!((channels(four(50_000), 4), channels(four(25_000), 4)), (16, 8));
    assert_eq!(channels(Machine { nics: 0, nic: 0, ..Machine::DGX_A100 }, 2), 2);
}

/// On four H100 boxes the NVLS tree counted 160 GB/s until 2.27, and 188 since; rings 198.
#[test]
fn releases_differ() {
    let algbw = |version, algorithm| {
        let stock = Stock::nccl(version, Machine::DGX_H100, 4);
        let time = stock.time_ps(AR, algorithm, Protocol::Simple, 1 << 40).unwrap();
        Stock::algbw(1 << 40, time).round().to_integer() / 1_000
    };
    let trees =
        [Version::Nccl2_21, Version::Nccl2_27, Version::Nccl2_28].map(|version| algbw(version, Algorithm::NvlsTree));
    assert_eq!((trees, algbw(Version::Nccl2_30, Algorithm::Ring)), ([159, 159, 187], 198));
    assert_eq!("2.29".parse(), Ok(Version::Nccl2_28));
    assert_eq!("nccl-2.30.7".parse(), Ok(Version::Nccl2_30));
    assert_eq!("RCCL-2.21".parse(), Ok(Version::Rccl2_21));
    let refused = ["2.17", "2.40", "3.0", "", "rccl-9"].map(|text| text.parse::<Version>().unwrap_err().to_string());
    assert!(refused[0].starts_with("`2.17` is no release that canopy knows; use 2.18, 2.21,"), "{}", refused[0]);
}

/// Generated boxes are seen as the machines that they are.
#[test]
fn families_are_seen_as_their_machines() {
    let seen = |expression: &str| {
        let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
        Seen::of(&topology, &boxes(&topology))
    };
    let found = |machine, nodes| Ok(Seen { maker: Maker::Nvidia, machine, nodes });
    assert_eq!(seen("dgx-h100:boxes=4"), found(Machine::DGX_H100, 4));
    assert_eq!(seen("dgx-a100:boxes=2"), found(Machine::DGX_A100, 2));
    assert_eq!(seen("dgx-b200:boxes=2"), found(Machine::DGX_B200, 2));
    assert_eq!(seen("ring:8"), Err(Unseen::NoBoxes));
    assert_eq!(seen("dgx-h100:boxes=2,nodes-down=b0g1"), Err(Unseen::Uneven));
    let pci = seen("mi250:boxes=2").unwrap();
    assert!(!pci.machine.has_nvls && pci.nodes == 2 && pci.machine.gpus == 16, "{pci:?}");
}

/// Every size has one choice, and small messages take low latency.
#[test]
fn choices_cover_all_sizes() {
    for (machine, nodes) in [(Machine::DGX_A100, 2), (Machine::DGX_H100, 1), (Machine::DGX_B200, 16)] {
        for version in Version::ALL {
            let stock = Stock::nccl(version, machine, nodes);
            for kind in [AR, AG, RS, CollectiveKind::Broadcast, CollectiveKind::Reduce] {
                let choices = stock.choices(kind);
                assert_eq!((choices[0].first, choices[choices.len() - 1].last), (0, u64::MAX));
                assert!(choices.windows(2).all(|pair| pair[0].last + 1 == pair[1].first));
                assert_eq!(choices[0].protocol, Protocol::LowLatency, "{version} {kind}");
                assert_eq!(choices[choices.len() - 1].protocol, Protocol::Simple, "{version} {kind}");
            }
            assert_eq!(stock.choices(CollectiveKind::AllToAll), []);
        }
    }
    assert_eq!(Stock::nccl(Version::default(), Machine::DGX_A100, 1).bus_factor(AR), Ratio::new(7, 4));
}

/// With switches of the network that add up: H100 machines of which each GPU has a NIC, A100 of which two share one.
#[test]
fn switches_of_the_network_add_up() {
    let with = |machine| Machine { has_collnet: true, ..machine };
    let algbw = |version, machine, kind, algorithm| {
        let stock = Stock::nccl(version, machine, 4);
        let time = stock.time_ps(kind, algorithm, Protocol::Simple, 1 << 40)?;
        Some(Stock::algbw(1 << 40, time).round().to_integer() / 1_000)
    };
    let newest = |machine, kind, algorithm| algbw(Version::default(), machine, kind, algorithm);
    let all = [Algorithm::CollNetDirect, Algorithm::CollNetChain, Algorithm::Nvls];
    let h100 = with(Machine::DGX_H100);
    // 8 × 48 × 0.85 / 2, 8 × 48 / 2 less what is rounded, and 8 × 48 × 32 / 62.
    assert_eq!(all.map(|algorithm| newest(h100, AR, algorithm)), [Some(163), Some(191), Some(198)]);
    // 8 × 0.9 × 48, and 8 heads of 40 less an eighth.
    assert_eq!(all.map(|algorithm| newest(h100, AG, algorithm)), [Some(345), None, Some(279)]);
    assert_eq!(newest(h100, CollectiveKind::Broadcast, Algorithm::CollNetDirect), None);
    // 4 × 48 / 2, and 3/4 of that for shared NICs: 4 heads count as 8 GPUs' with half of the penalty.
    let a100 = with(A100_FOUR_NICS);
    assert_eq!(all.map(|algorithm| newest(a100, AR, algorithm)), [Some(64), Some(95), None]);
    assert_eq!(newest(a100, AG, Algorithm::CollNetDirect), None);
    assert_eq!(algbw(Version::Nccl2_31, a100, AR, Algorithm::CollNetDirect), None);
    // Nothing of it without the plugin, in one machine, or with more than eight GPUs.
    assert_eq!(all.map(|algorithm| newest(Machine::DGX_H100, AR, algorithm)), [None; 3]);
    let alone = Stock::nccl(Version::default(), h100, 1);
    assert_eq!(alone.time_ps(AR, Algorithm::CollNetDirect, Protocol::Simple, 1 << 30), None);
    assert_eq!(newest(with(NVL72.1), AR, Algorithm::CollNetDirect), None);
    // On many machines its latency, which does not grow with them, decides middle sizes.
    let many = |machine| Stock::nccl(Version::default(), machine, 64).choice(AR, 4 * MIB).unwrap();
    let (without, taken) = (many(Machine::DGX_H100), many(h100));
    assert!(taken.time_ps < without.time_ps, "{taken:?} {without:?}");
    assert!(all.contains(&taken.algorithm), "{taken:?}");
}
