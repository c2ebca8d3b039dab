//! Numbers and spellings of the tables, and what follows from them.

use super::*;

#[test]
fn names_are_read_or_refused_with_a_remedy() {
    for profile in Profile::ALL {
        assert_eq!(profile.name().parse(), Ok(profile));
        assert_eq!(profile.to_string(), profile.name());
    }
    let refused = |name: &str| name.parse::<Profile>().unwrap_err().to_string();
    let remedy = "profile `oneccl` is for oneccl-xml files; use msccl, msccl-executor or rccl-msccl here";
    assert_eq!(refused("oneccl"), remedy);
    let remedy = "profile `mscclpp-0.9` is for mscclpp-json files; use msccl, msccl-executor or rccl-msccl here";
    assert_eq!(refused("mscclpp-0.9"), remedy);
    assert_eq!(refused("MSCCL"), "unknown profile `MSCCL`; use msccl, msccl-executor or rccl-msccl");
}

/// The sizes at which `maxAllowed` changes, by hand: 2 MiB per transfer of Simple, 32 KiB of LL.
#[test]
fn chunks_per_transfer_follow_the_formula() {
    let count = |protocol, bytes, chunks| Profile::Msccl.chunks_per_transfer(protocol, bytes, chunks);
    // 16 MiB in 512 chunks of 32 KiB, 64 of which fill a transfer; beyond 256 MiB fewer than 4.
    assert_eq!(count(Protocol::Simple, Some(16 << 20), 512), 64);
    assert_eq!(count(Protocol::Simple, Some(256 << 20), 512), 4);
    assert_eq!(count(Protocol::Simple, Some((256 << 20) + 1), 512), 3);
    assert_eq!(count(Protocol::Simple, Some(1 << 40), 512), 1);
    assert_eq!(count(Protocol::Simple, None, 512), 1);
    assert_eq!(count(Protocol::Simple, Some(0), 512), 71);
    assert_eq!(count(Protocol::Ll, Some(8 << 10), 8), 32);
    assert_eq!(count(Protocol::Ll128, Some(1000), 1), 71);
    assert_eq!(Profile::RcclMsccl.chunks_per_transfer(Protocol::Ll, Some(8 << 10), 8), 16);
    assert_eq!(Profile::RcclMsccl.chunks_per_transfer(Protocol::Ll128, Some(50_176), 1), 1);
    assert_eq!(Profile::RcclMsccl.chunks_per_transfer(Protocol::Ll128, Some(50_176), 2), 2);
}

#[test]
fn a_bound_is_exclusive_only_in_msccl() {
    assert_eq!(Profile::Msccl.bytes_max_inclusive(1025), Some(1024));
    assert_eq!(Profile::MscclExecutor.bytes_max_inclusive(1025), Some(1025));
    for profile in Profile::ALL {
        assert_eq!(profile.bytes_max_inclusive(0), None);
        assert_eq!(profile.bytes_max_attribute(0), None);
        assert_eq!(profile.bytes_max_attribute(u64::MAX), None);
        for bytes in [1, 1024, i64::MAX as u64 - 1] {
            let attribute = profile.bytes_max_attribute(bytes).unwrap();
            assert_eq!(profile.bytes_max_inclusive(attribute), Some(bytes));
        }
    }
    assert_eq!(Profile::Msccl.bytes_max_default(), Some(1 << 27));
    assert_eq!(Profile::RcclMsccl.bytes_max_default(), None);
}

#[test]
fn spellings_are_the_runtimes_own() {
    for profile in Profile::ALL {
        for kind in CollectiveKind::ALL {
            let spelling = profile.spell(kind);
            assert_eq!(spelling.and_then(|spelling| profile.read_spelling(spelling)), spelling.map(|_| kind));
        }
        for unjudged in profile.limits().collectives_unjudged {
            assert_eq!(profile.read_spelling(unjudged), None);
        }
    }
    let spell = |kind| Profile::ALL.map(|profile| profile.spell(kind));
    assert_eq!(
        spell(CollectiveKind::ReduceScatter),
        [Some("reduce_scatter"), Some("reducescatter"), Some("reducescatter")]
    );
    assert_eq!(spell(CollectiveKind::Gather), [None, Some("gather"), Some("gather")]);
}

#[test]
fn stock_rccl_has_reduced_kernels() {
    let allowed: Vec<&str> =
        Operation::ALL.into_iter().filter(|&known| Profile::RcclMsccl.allows(known)).map(Operation::name).collect();
    assert_eq!(allowed, ["s", "r", "cpy", "re", "nop"]);
    assert!(Operation::ALL.into_iter().all(|known| Profile::MscclExecutor.allows(known)));
}
