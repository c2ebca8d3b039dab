//! NICs of machines that are read from dumps of NCCL: every fault of one is found by the index of its GPU, by its name, in lists
//! of single faults and in reports, or is answered with what it does not match.

use canopy_faults::{Device, Directory, Loss, Target, singles};
use canopy_import::{Cluster, Content, Layout, MachineOf, Rates, compose, read_content};
use canopy_proto::v1::cluster_description::Fabric;
use canopy_proto::v1::networks_client::NetworksClient;
use canopy_proto::v1::topology_source::Source;
use canopy_proto::v1::{
    ClearFaultsRequest, ClusterDescription, ClusterNodes, HostKind, PlanSpec, PutClusterRequest, ReportFaultsRequest,
    ReportFaultsResponse, ReportOutcome, TopologyDocument, TopologySource,
};
use canopy_topology::{Fault, FaultKind, Topology, TopologyLimits};
use canopy_wire::loss_on_the_wire;

use crate::replans::{event, faults};
use crate::support::{TestServer, request};

const LIMITS: TopologyLimits = TopologyLimits::STANDARD;

/// Numbers by xorshift, the same for each seed.
struct Random(u64);

impl Random {
    const fn of(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let count = u64::try_from(count).expect("a count of a few things");
        usize::try_from(self.0 % count).expect("it is below a count")
    }
}

/// Where a device hangs: its ancestors from the CPU down, by number, and itself.
type Path = Vec<usize>;

/// A machine with GPUs and NICs at random places of a PCI tree.
struct Dump {
    xml: String,
    gpus: Vec<Path>,
    /// With their bus ids and rates in Mb/s.
    nics: Vec<(Path, String, u64)>,
}

/// The devices at one place of the tree.
#[derive(Default)]
struct Place {
    path: Path,
    children: Vec<usize>,
    gpus: usize,
    nics: usize,
}

impl Dump {
    fn random(random: &mut Random) -> Self {
        let mut places: Vec<Place> = Vec::new();
        let cpus = 1 + random.below(2);
        for cpu in 0..cpus {
            places.push(Place { path: vec![cpu], ..Place::default() });
        }
        for _ in 0..random.below(6) {
            let parent = random.below(places.len());
            let number = places.len();
            if places[parent].path.len() < 4 {
                let path = [places[parent].path.clone(), vec![number]].concat();
                places.push(Place { path, ..Place::default() });
                places[parent].children.push(number);
            }
        }
        for _ in 0..=random.below(8) {
            let place = random.below(places.len());
            places[place].gpus += 1;
        }
        for _ in 0..random.below(11) {
            let place = random.below(places.len());
            places[place].nics += 1;
        }
        let has_nvswitch = random.below(2) == 0;
        let mut dump = Self { xml: "<system version=\"1\">\n".to_owned(), gpus: Vec::new(), nics: Vec::new() };
        let mut bus = 0x10;
        for cpu in 0..cpus {
            dump.xml += &format!(
                "<cpu numaid=\"{cpu}\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">\n"
            );
            dump.write(&places, cpu, has_nvswitch, &mut bus, random);
            dump.xml += "</cpu>\n";
        }
        dump.xml += "</system>\n";
        dump
    }

    /// Writes what is at a place, with bus ids that rise.
    fn write(&mut self, places: &[Place], place: usize, has_nvswitch: bool, bus: &mut u32, random: &mut Random) {
        const SPEED: &str = "link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"";
        let own = |number: usize| [places[place].path.clone(), vec![1000 + number]].concat();
        for &child in &places[place].children {
            self.xml += &format!("<pci busid=\"0000:{bus:02x}:00.0\" class=\"0x060400\" {SPEED}>\n");
            *bus += 1;
            self.write(places, child, has_nvswitch, bus, random);
            self.xml += "</pci>\n";
        }
        for _ in 0..places[place].gpus {
            let (number, nvlink) =
                (self.gpus.len(), "<nvlink target=\"0000:f0:00.0\" count=\"18\" tclass=\"0x068000\"/>");
            let nvlink = if has_nvswitch { nvlink } else { "" };
            self.xml += &format!("<pci busid=\"0000:{bus:02x}:00.0\" class=\"0x030200\" {SPEED}>");
            self.xml += &format!("<gpu dev=\"{number}\" sm=\"90\" rank=\"{number}\" gdr=\"1\">{nvlink}</gpu></pci>\n");
            *bus += 1;
            self.gpus.push(own(number));
        }
        for _ in 0..places[place].nics {
            let number = self.nics.len();
            let rate = [400_000, 400_000, 200_000][random.below(3)];
            let busid = format!("0000.{bus:02x}.00.0");
            self.xml += &format!("<pci busid=\"0000:{bus:02x}:00.0\" class=\"0x020700\" {SPEED}><nic>");
            self.xml += &format!(
                "<net name=\"mlx5_{number}\" dev=\"{number}\" speed=\"{rate}\" port=\"1\" guid=\"0x{}\" gdr=\"1\"/>",
                number + 1
            );
            self.xml += "</nic></pci>\n";
            *bus += 1;
            self.nics.push((own(2000 + number), busid, rate));
        }
    }

    /// The NIC of a GPU by the rule of NCCL, and whether the way to it passes a CPU.
    fn nearest(&self, gpu: usize) -> Option<(usize, bool)> {
        // CPUs and links on the way.
        let way = |nic: usize| {
            let (from, to) = (&self.gpus[gpu], &self.nics[nic].0);
            let shared = from.iter().zip(to).take_while(|(a, b)| a == b).count();
            let up_and_down = from.len() + to.len() - 2 * shared;
            // CPUs are joined to each other, which is one link in place of none.
            match shared {
                0 => (2, up_and_down - 1),
                1 => (1, up_and_down),
                _ => (0, up_and_down),
            }
        };
        // PCI is slower than the faster NICs, and the link between CPUs is slower than all of them.
        let rate = |nic: usize| self.nics[nic].2.min([384_000, 384_000, 1][way(nic).0]);
        let all = 0..self.nics.len();
        let shortest = all.clone().map(way).min()?;
        let near: Vec<usize> = all.filter(|&nic| way(nic) == shortest).collect();
        let widest = near.iter().map(|&nic| rate(nic)).max()?;
        let tied: Vec<usize> = near.into_iter().filter(|&nic| rate(nic) == widest).collect();
        let mirrored = (0..tied.len().trailing_zeros()).fold(0, |sum, bit| sum * 2 + (gpu >> bit) % 2);
        let chosen = if tied.len().is_power_of_two() { mirrored } else { gpu } % tied.len();
        Some((tied[chosen], shortest.0 > 0))
    }

    fn network(&self) -> Result<Topology, String> {
        let Ok((_, Content::Machine(machine))) = read_content(self.xml.as_bytes(), &LIMITS, &|| false) else {
            panic!("{}", self.xml)
        };
        let nodes = vec!["n1".to_owned(), "n2".to_owned()];
        let fabric = Layout::Star.fabric(machine.ports.len(), nodes.clone()).unwrap();
        let machines = vec![MachineOf { machine: Some(machine), hosts: None }];
        let cluster = Cluster { machines, fabric, rates: Rates::default() };
        compose(&cluster, &nodes, &LIMITS, &|| false).map(|(topology, _)| topology).map_err(|error| error.to_string())
    }
}

fn cases(few: u64) -> u64 {
    std::env::var("CANOPY_CASES").map_or(few, |text| text.parse().expect("CANOPY_CASES is a number"))
}

/// The links that a fault touches, as texts.
fn touched(topology: &Topology, text: &str) -> Result<Vec<String>, String> {
    let loss: Loss = text.parse().map_err(|error| format!("{error}"))?;
    let faults = Directory::new(topology).resolve(&[loss]).map_err(|error| error.to_string())?;
    let word = |fault: &Fault| match fault {
        Fault::Link { from, to, .. } => format!("{from}>{to}"),
        Fault::Degrade { from, to, numerator, denominator, .. } => format!("{from}>{to}*{numerator}/{denominator}"),
        other => panic!("{other:?}"),
    };
    Ok(faults.iter().map(word).collect())
}

#[test]
fn every_nic_of_a_dump_is_found_by_index_name_and_kind() {
    for seed in 1..=cases(300) {
        let dump = Dump::random(&mut Random::of(seed));
        let network = match dump.network() {
            Ok(network) => network,
            Err(problem) => {
                assert!(dump.nics.is_empty() && problem.contains("has no port"), "{seed}: {problem}");
                continue;
            }
        };
        let links = |host: &str, nic: usize, part: &str| {
            let id = format!("{host}.nic-{}", dump.nics[nic].1);
            vec![format!("{id}>spine{part}"), format!("spine>{id}{part}")]
        };
        for host in ["n1", "n2"] {
            for gpu in 0..dump.gpus.len() {
                let (nic, passes_cpu) = dump.nearest(gpu).unwrap();
                for (name, part) in [(format!("{host}:{gpu}"), ""), (format!("{host}.gpu{gpu}"), "*1/2")] {
                    match touched(&network, &format!("nic:{name}{part}")) {
                        Ok(found) => assert_eq!(found, links(host, nic, part), "{seed}: {name}\n{}", dump.xml),
                        // Where GPUs meet over NVLink, the network has no CPUs.
                        Err(problem) => {
                            assert!(passes_cpu && problem.contains("reaches no NIC"), "{seed}: {problem}\n{}", dump.xml)
                        }
                    }
                }
            }
            for nic in 0..dump.nics.len() {
                for name in [format!("{host}:mlx5_{nic}"), format!("{host}:nic-{}", dump.nics[nic].1)] {
                    assert_eq!(
                        touched(&network, &format!("nic:{name}*1/3")),
                        Ok(links(host, nic, "*1/3")),
                        "{seed}: {name}"
                    );
                }
            }
            let unknown = touched(&network, &format!("nic:{host}:mlx5_99")).unwrap_err();
            assert!(unknown.contains(&format!("{host} has no NIC `mlx5_99`; did you mean mlx5_")), "{unknown}");
            assert!(
                touched(&network, &format!("nic:{host}:{}", dump.gpus.len())).unwrap_err().contains("has no device")
            );
        }
        let directory = Directory::new(&network);
        let budget = canopy_canonical::Budget { work_max: canopy_canonical::WORK_STANDARD, stop: &|| false };
        let groups = singles(&directory, &[FaultKind::Nics], &[], budget).unwrap();
        let mut listed: Vec<String> = groups
            .iter()
            .flat_map(|group| &group.targets)
            .map(|target| touched(&network, &target.to_string()).unwrap().concat())
            .collect();
        listed.sort();
        listed.dedup();
        assert_eq!(listed.len(), 2 * dump.nics.len(), "{seed}: each NIC of both machines once");
    }
}

fn file(text: &str) -> Option<TopologyDocument> {
    Some(TopologyDocument { format: 0, content: text.to_owned().into() })
}

async fn report(server: &TestServer, text: &str, number: usize) -> ReportFaultsResponse {
    let fault = loss_on_the_wire(&text.parse().unwrap());
    let events = vec![event(&format!("{text} {number}"), fault, false)];
    let asked = ReportFaultsRequest { events, ..ReportFaultsRequest::default() };
    faults(server).report_faults(asked).await.unwrap().into_inner()
}

/// The first fault by a machine's name is reported before any network has the machine, and counts once one has.
#[tokio::test(flavor = "multi_thread")]
async fn nics_that_are_reported_by_machine_change_plans() {
    let server = TestServer::start().await;
    let early = report(&server, "nic:n1:mlx5_0*1/2", 0).await;
    assert_eq!(early.outcomes[0].outcome(), ReportOutcome::Unmatched, "{early:?}");
    let mut random = Random::of(7);
    let mut dumps = Vec::new();
    while dumps.len() < 4 {
        let dump = Dump::random(&mut random);
        if dump.nics.len() > 1 {
            dumps.push(dump);
        }
    }
    let on_both = || {
        let part = ClusterNodes { cluster: "clusters/prod".to_owned(), nodes: vec!["n[1-2]".to_owned()] };
        PlanSpec { topology: Some(TopologySource { source: Some(Source::Cluster(part)) }), ..request("") }
    };
    let mut number = 1;
    for dump in &dumps {
        let hosts = vec![HostKind { file: file(&dump.xml), nodes: String::new() }];
        let fabric = Some(Fabric::File(file("SwitchName=leaf Nodes=n[1-2]\n").unwrap()));
        let description = Some(ClusterDescription { fabric, hosts, rates: String::new() });
        let put = PutClusterRequest { name: "clusters/prod".to_owned(), description, request_id: String::new() };
        NetworksClient::new(server.channel.clone()).put_cluster(put).await.unwrap();
        let mut expected = usize::from(number == 1);
        let plan = server.client().plan(on_both().into_plan()).await.unwrap().into_inner();
        assert_eq!(plan.puncture.map_or(0, |puncture| puncture.faults.len()), expected, "what was reported before");
        for (text, is_certain) in
            [("nic:n2:mlx5_1*1/3", true), ("nic:n2:0*1/2", false), ("nic:n1:77", false), ("nic:n3:0", false)]
        {
            let told = report(&server, text, number).await;
            number += 1;
            let outcome = told.outcomes[0].outcome();
            assert!(
                outcome == ReportOutcome::Applied || !is_certain && outcome == ReportOutcome::Unmatched,
                "{text}: {told:?}"
            );
            expected += usize::from(outcome == ReportOutcome::Applied);
            let plan = server.client().plan(on_both().into_plan()).await.unwrap().into_inner();
            let around = plan.puncture.map_or(0, |puncture| puncture.faults.len());
            // Two names of one NIC are one fault.
            assert!((1..=expected).contains(&around), "{text}: {around} of {expected}");
        }
        let all = ClearFaultsRequest { all: true, ..ClearFaultsRequest::default() };
        let cleared = faults(&server).clear_faults(all).await.unwrap().into_inner();
        assert_eq!(cleared.active, 0);
        assert_eq!(server.client().plan(on_both().into_plan()).await.unwrap().into_inner().puncture, None);
    }
}

#[test]
fn a_nic_has_one_canonical_name() {
    let dump = Dump::random(&mut Random::of(5));
    let Ok(network) = dump.network() else { return };
    let directory = Directory::new(&network);
    for nic in 0..dump.nics.len() {
        let named =
            Target::Nic { device: Device::Nic { host: "n1".to_owned(), name: format!("mlx5_{nic}") }, port: None };
        let id: Target = format!("nic:n1.nic-{}", dump.nics[nic].1).parse().unwrap();
        assert_eq!((directory.canonical(&id), directory.canonical(&named)), (Ok(named.clone()), Ok(named)));
    }
}
