//! Written topologies, as text a person reviews.

use std::path::Path;
use std::{env, fs};

use canopy_topology::{FaultKind, TopologyLimits, content_hash, generate, identity_hash, to_json, to_yaml};

/// Compares with `tests/approved/<name>`. `CANOPY_APPROVE=1` writes it instead; review the diff as code.
#[track_caller]
fn check_approved(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/approved").join(name);
    if env::var_os("CANOPY_APPROVE").is_some() {
        return fs::write(&path, actual).expect("the folder of approved files is writable");
    }
    let approved = fs::read_to_string(&path).unwrap_or_default();
    assert!(approved == actual, "{name} changed; if intended, rerun with CANOPY_APPROVE=1\n{actual}");
}

/// One small network of every kind of generator. The hashes stand with them: a stored plan is found by its hash, so a
/// change here loses caches and must be intended.
#[test]
fn generated_networks_as_text() {
    for (name, expression) in [
        ("ring-uni", "ring:3,dir=uni,lat=1.5us"),
        ("torus-faulty", "torus:3x3,bw=10GB/s,down=00-01,nodes-down=22,degrade=10>11*1/2"),
        ("dgx-a100", "dgx-a100:boxes=2,gpus=2"),
        ("mi250-half", "mi250:boxes=1,gpus=8"),
        ("rail", "rail:boxes=2,gpus=2,nv=450GB/s,nic=400Gbps,spine=1600Gbps"),
        ("fat-tree", "fat-tree:k=2,oversub=2"),
        ("machine", "hgx:boxes=2,gpus=4,nics=2,nvls=true"),
        ("pod", "pod:boxes=2,su=1,gpus=2,sharp=true"),
        ("trn2", "trn2:boxes=2"),
        ("leaf-spine", "leaf-spine:leaves=2,hosts=2,spines=1"),
        ("random-euler", "random-euler:n=5,switches=2,seed=7"),
        ("random-regular", "random-regular:n=6,d=2,seed=3"),
        ("dragonfly-router", "dragonfly-router:p=1,a=2,h=1"),
        ("dragonfly", "dragonfly:2x3"),
        ("hamming-mesh", "hamming-mesh:1x2,board=2x1"),
        ("kautz", "kautz:d=2,n=2"),
        ("debruijn", "debruijn:d=2,n=3,bw=10GB/s"),
        ("twisted-torus", "twisted-torus:4x2"),
        ("dims", "dims:ring2+fc3+switch2,bw=3GB/s+2GB/s+1GB/s"),
        ("line", "line:2(uniring:n=2,d=2):bw=10GB/s,lat=1us"),
        ("product", "product(uniring:n=2,d=2,bw=1GB/s;degree:2(complete:2)):down=0.0.0-0.1.1"),
        ("hosts", "ring:3,dir=uni,bw=2GB/s,lat=1us,host=3GB/s,nicforward=true,degrade=0>1*1/2"),
        ("drawn-faults", "dgx-a100:boxes=2,gpus=2,faults=nics:1@1/2+gpus:1+seed:1"),
    ] {
        let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
        let hashes = format!("# content  {}\n# identity {}\n", content_hash(&topology), identity_hash(&topology));
        check_approved(&format!("{name}.yaml"), &(hashes + &to_yaml(&topology)));
    }
    let topology = generate("dgx-a100:boxes=2,gpus=2", &TopologyLimits::STANDARD).unwrap();
    check_approved("dgx-a100.json", &to_json(&topology));
}

/// The table of kinds in the guide is that of the code. `CANOPY_APPROVE=1` writes it anew.
#[test]
fn the_guide_has_the_table_of_kinds_of_faults() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/networks.md");
    let page = fs::read_to_string(&path).expect("the guide is readable");
    let row = |kind: FaultKind| {
        let slow = if kind.can_be_slow() { format!("`{}:N@1/2`", kind.word()) } else { String::new() };
        format!("| `{}:N` | {slow} | {} |\n", kind.word(), kind.meaning())
    };
    let rows: String = FaultKind::ALL.into_iter().map(row).collect();
    let table = format!("\n| gone | slow | elements |\n|---|---|---|\n{rows}\n");
    let (head, rest) = page.split_once("made by a test of crates/topology -->\n").expect("the table has a beginning");
    let (found, tail) = rest.split_once("<!-- end of kinds -->").expect("the table has an end");
    if found != table && env::var_os("CANOPY_APPROVE").is_some() {
        let page = format!("{head}made by a test of crates/topology -->\n{table}<!-- end of kinds -->{tail}");
        return fs::write(&path, page).expect("the guide is writable");
    }
    assert_eq!(found, table, "run the test with CANOPY_APPROVE=1 to write the table anew");
}
