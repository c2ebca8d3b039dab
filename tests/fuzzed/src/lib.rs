//! What every parser of canopy must do with any bytes: the bodies of the fuzz targets in `fuzz/`.
//!
//! A body is a function of bytes that panics if a parser does, or if what it accepted contradicts itself: a document
//! that is written and read again must be equal, a network must be within its limits, and a plan that its proof accepts
//! must run. The test beside this crate gives each body its committed corpus, so that a finding stays fixed without a
//! fuzzer.

mod access;
mod imports;
mod plans;
mod requests;
mod stores;
mod texts;
mod topologies;

use canopy_topology::TopologyLimits;

/// A parser and its body.
#[derive(Clone, Copy, Debug)]
pub struct FuzzTarget {
    /// Its name: that of the binary, and of the folder of its corpus.
    pub name: &'static str,
    /// What is read, and what must hold.
    pub about: &'static str,
    /// Panics at a finding.
    pub run: fn(&[u8]),
}

/// Limits under which networks are read: most defects show on small ones, and a run tries thousands a second.
const LIMITS: TopologyLimits = TopologyLimits { nodes_max: 300, links_max: 5_000, bytes_max: 1 << 20 };

/// Declares the functions that binaries call, and the table of all of them.
macro_rules! targets {
    ($($name:ident $about:literal $body:expr;)*) => {
        $(
            #[doc = $about]
            ///
            /// Panics at a finding.
            pub fn $name(input: &[u8]) {
                let body: fn(&[u8]) = $body;
                body(input);
            }
        )*

        /// All targets, sorted by name.
        pub const TARGETS: &[FuzzTarget] =
            &[$(FuzzTarget { name: stringify!($name), about: $about, run: $name },)*];
    };
}

targets! {
    access_rules "Rules of access, with quotas: only methods that exist may be called." access::rules;
    archive "Archives of a store: all of one is read, or nothing." stores::archive;
    archive_signers "Lists of servers whose archives are taken." access::archive_signers;
    audit_line "Lines of an audit log: the same when written again." access::audit_line;
    bearer_token "Tokens that callers show: none of them is valid." access::bearer_token;
    calibration "Overlays of measured rates, which are written and read again." texts::calibration;
    cluster_request "Descriptions of clusters on the wire: machines are joined as stated." requests::cluster;
    configuration "Files of settings: what is in effect is the same when printed and read." stores::configuration;
    cost_expression "Networks whose cost is asked for." texts::cost_expression;
    expression "Named networks and compositions: within limits, equal when written and read." topologies::expression;
    family_rates "Files of a site's rates for families." texts::family_rates;
    fault_feed "Messages of monitors and schedulers: targets of events can be written and read." texts::fault_feed;
    fault_request "Faults on the wire, in words and in records." requests::fault;
    host_list "Lists of hosts in all forms: names are distinct and within the limit." texts::host_list;
    import "Files of other programs, recognised by their content, alone and as parts of a cluster." imports::recognised;
    import_amd_smi "The tables of amd-smi." imports::amd_smi;
    import_astra "Networks of ASTRA-sim." imports::astra;
    import_csv "Tables of links." imports::csv;
    import_graphml "Graphs in GraphML." imports::graphml;
    import_hwloc "XML of lstopo." imports::hwloc;
    import_iblinkinfo "Output of iblinkinfo." imports::iblinkinfo;
    import_ibnetdiscover "Output of ibnetdiscover." imports::ibnetdiscover;
    import_kubernetes "Nodes of Kubernetes with their labels." imports::kubernetes;
    import_lldp "Neighbours that lldpd sees." imports::lldp;
    import_nccl_xml "XML of NCCL and RCCL." imports::nccl_xml;
    import_nvidia_smi "The table of nvidia-smi." imports::nvidia_smi;
    import_rocm_smi "The tables of rocm-smi." imports::rocm_smi;
    import_simgrid "Platforms of SimGrid." imports::simgrid;
    import_slurm_conf "topology.conf of Slurm." imports::slurm_conf;
    import_slurm_yaml "topology.yaml of Slurm." imports::slurm_yaml;
    import_topograph "Models of Topograph." imports::topograph;
    issuer_documents "Key sets and discovery documents of issuers." access::issuer_documents;
    measured_runs "Output of benchmarks." texts::measured_runs;
    msccl_xml "MSCCL XML for each runtime: equal when written and read, and run if it is proved." plans::msccl_xml;
    mscclpp_json "Plans of MSCCL++: equal when written and read, and run if they are proved." plans::mscclpp_json;
    oneccl_xml "Plans of oneCCL: equal when written and read, and run if they are proved." plans::oneccl_xml;
    plan_json "canopy's own plans: the same when written and read, and judged." plans::plan_json;
    plan_request "Requests on the wire: the same after they were kept in the journal." requests::plan;
    routes_xml "Route plans: equal when written and read, and proved." plans::routes_xml;
    store_record "Records of a store: damaged ones are noticed, and payloads are read." stores::record;
    stored_tokens "The file of tokens: the same when written and read." access::stored_tokens;
    topology_json "Topologies in JSON: equal when written and read, in JSON and in YAML." topologies::json;
    topology_request "Topologies on the wire: equal when sent again and when written as a document." requests::topology;
    topology_yaml "Topologies in YAML: equal when written and read, in YAML and in JSON." topologies::yaml;
}

/// The target of this name.
pub fn target(name: &str) -> Option<&'static FuzzTarget> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Most bytes of an error: it names what is wrong, and does not repeat a whole input.
const ERROR_BYTES_MAX: usize = 4096;

/// A refusal can be printed, and is short.
fn refused(error: &impl std::fmt::Display) {
    let words = error.to_string();
    assert!((1..=ERROR_BYTES_MAX).contains(&words.len()), "an error of {} bytes: {words:.200}", words.len());
}

/// What is only read: nobody looks at it, and it is read all the same.
fn seen<T>(value: T) {
    drop(std::hint::black_box(value));
}

/// The input as text; parsers of text are never given anything else.
fn text(input: &[u8]) -> Option<&str> {
    std::str::from_utf8(input).ok()
}
