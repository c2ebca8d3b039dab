use canopy_schedule::CollectiveKind;

use super::*;

fn read_text(text: &str) -> Result<Stated, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("work.yaml");
    std::fs::write(&path, text).unwrap();
    read(&path).map_err(|failure| failure.sentence())
}

fn names(stated: &Stated) -> Vec<&str> {
    stated.variants[0].program.operations().iter().map(|operation| operation.name.as_str()).collect()
}

#[test]
fn layers_are_repeated_alone_and_in_groups() {
    let stated = read_text(
        "version: 1\nbucket: 1MB\nlayers:\n- {name: a, forward: 1ms, repeat: 2}\n\
         - repeat: 2\n  layers:\n  - {name: b, backward: 2us, parameters: 1MB}\n  - {forward: 0}\n",
    )
    .unwrap();
    let forward = ["a forward", "a forward", "b forward", "layer 3 forward", "b forward", "layer 5 forward"];
    assert_eq!((stated.name.as_str(), &names(&stated)[..6]), ("work", &forward[..]));
    assert_eq!(names(&stated)[6..10], ["layer 5 backward", "b backward", "bucket 1", "layer 3 backward"]);
    assert_eq!(stated.collectives(), [(CollectiveKind::Allreduce, None)]);
}

#[test]
fn every_bucket_is_a_variant() {
    let layers = "layers: [{parameters: 30MB, repeat: 4}]\n";
    let variants = |text: &str| {
        let stated = read_text(&format!("version: 1\n{text}{layers}")).unwrap();
        let calls = |variant: &Variant| {
            let is_call = |operation: &&Operation| matches!(operation.work, Work::Collective(_));
            variant.program.operations().iter().filter(is_call).count()
        };
        stated.variants.iter().map(|variant| (variant.bucket_bytes, calls(variant))).collect::<Vec<_>>()
    };
    assert_eq!(variants(""), [(Some(25 << 20), 4)]);
    assert_eq!(variants("bucket: [1MB, 60MB]\n"), [(Some(1_000_000), 4), (Some(60_000_000), 2)]);
    assert_eq!(variants("parallel: none\n"), [(None, 0)]);
    assert_eq!(variants("parallel: fsdp\n"), [(None, 12)]);
    assert_eq!(variants("parallel: fsdp\nreshard: false\nprefetch: 0\n"), [(None, 8)]);
}

#[test]
fn steps_wait_for_the_one_before_or_for_those_named() {
    let stated = read_text(
        "version: 1\nname: n\norder: ready\noverlap: false\nepoch: {samples: 10, batch: 3}\nsteps:\n\
         - {name: a, compute: 1ms}\n- {collective: all_reduce, size: 4096}\n- {name: b, host: 2ms, after: [a]}\n\
         - repeat: 2\n  steps: [{name: a, collective: broadcast, size: 1MiB, after: []}, {compute: 0, after: [a, b]}]\n",
    )
    .unwrap();
    let program = &stated.variants[0].program;
    let after: Vec<&[u32]> = program.operations().iter().map(|operation| operation.after.as_slice()).collect();
    assert_eq!(after, [&[][..], &[0], &[0], &[], &[3, 2], &[], &[5, 2]]);
    assert_eq!((program.order(), program.overlap()), (Order::Ready, Overlap::None));
    let call = |kind, root, size_bytes| Call { kind, root, size_bytes };
    let (sum, message) =
        (call(CollectiveKind::Allreduce, None, 4096), call(CollectiveKind::Broadcast, Some(0), 1 << 20));
    assert_eq!(program.calls(), [sum, message]);
    assert_eq!(stated.epoch.map(|epoch| epoch.iterations(2)), Some(2));
}

#[test]
fn what_is_wrong_is_named() {
    for (text, parts) in [
        ("layers: []\n", ["version", ""]),
        ("version: 2\nlayers: [{}]\n", ["version: 2", "write 1"]),
        ("version: 1\n", ["either `layers`", "or `steps`"]),
        ("version: 1\nlayers: [{}]\nsteps: [{compute: 1s}]\n", ["either `layers`", "or `steps`"]),
        ("version: 1\nlayers: []\n", ["layers: is empty", ""]),
        ("version: 1\nlayers: [{forward: 3}]\n", ["layers[0].forward", "has no unit"]),
        ("version: 1\nlayers: [{forward: 999999h}]\n", ["layers[0].forward", "too long"]),
        ("version: 1\nlayers: [{repeat: 0}]\n", ["layers[0].repeat", "0 repetitions"]),
        ("version: 1\nlayers: [{repeat: 4000000000}]\n", ["layers[0].repeat", "1048576 layers"]),
        ("version: 1\nlayers: [{layers: [{}], forward: 1s}]\n", ["layers[0].layers", "only"]),
        ("version: 1\nlayers: [{layers: [{parameters: x}]}]\n", ["layers[0].layers[0].parameters", "`x`"]),
        ("version: 1\nlayers: [{colour: red}]\n", ["colour", ""]),
        ("version: 1\nlayers: [{}]\nbucket: []\n", ["bucket", "1 to 16"]),
        ("version: 1\nlayers: [{}]\nparallel: fsdp\nbucket: 1MB\n", ["bucket", "`parallel: ddp`"]),
        ("version: 1\nlayers: [{}]\nprefetch: 1\n", ["prefetch", "`parallel: fsdp`"]),
        ("version: 1\nlayers: [{}]\norder: ready\n", ["order", "`steps`"]),
        ("version: 1\nlayers: [{}]\nepoch: {samples: 0, batch: 1}\n", ["epoch", "from 1 on"]),
        ("version: 1\nsteps: [{compute: 1s}]\nupdate: 1s\n", ["update", "`layers`"]),
        ("version: 1\nsteps: [{}]\n", ["steps[0].compute", "one of"]),
        ("version: 1\nsteps: [{compute: 1s, host: 1s}]\n", ["steps[0].compute", "one of"]),
        ("version: 1\nsteps: [{collective: sum, size: 1}]\n", ["steps[0].collective", "sum"]),
        ("version: 1\nsteps: [{collective: allreduce}]\n", ["steps[0].size", "64MiB"]),
        ("version: 1\nsteps: [{collective: allreduce, size: 1, root: 1}]\n", ["steps[0].root", "no root"]),
        ("version: 1\nsteps: [{compute: 1s, size: 1}]\n", ["steps[0].collective", "add `collective`"]),
        ("version: 1\nsteps: [{compute: 1s, after: [x]}]\n", ["steps[0].after", "`x`"]),
        ("version: 1\nsteps: [{repeat: 99, steps: [{repeat: 99999, compute: 0}]}]\n", ["repeat", "1048576 steps"]),
    ] {
        let said = read_text(text).unwrap_err();
        assert!(parts.iter().all(|part| said.contains(part)), "{text}: {said}");
    }
    let deep = (0..9).fold("[{compute: 1s}]".to_owned(), |inner, _| format!("[{{steps: {inner}}}]"));
    let said = read_text(&format!("version: 1\nsteps: {deep}\n")).unwrap_err();
    assert!(said.contains("nested more than 8 deep"), "{said}");
}

/// HPDC'24 §5.2: a grid of 1296³ on 27 processes has all-to-all buffers of 1.29 GB. Pham §3.2.3: 25 million parameters of
/// 4 bytes.
#[test]
fn examples_have_the_published_sizes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/workloads");
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stated = read(&path).unwrap();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        found.insert(stem, stated.calls().iter().map(|call| call.size_bytes).collect::<Vec<_>>());
    }
    assert_eq!(found["fft"], [1296_u64.pow(3) * 16 / 27]);
    assert_eq!(found["resnet50"], [4 * 25_000_000]);
    assert!(found.len() >= 5, "{found:?}");
}
