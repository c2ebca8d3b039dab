//! Plans made of paths, judged with and without their transfers.

use canopy_plan::{Format, Target};

use super::*;

/// A file that needs the transfers of a plan changes nothing but that it is there.
#[test]
fn flows_are_judged_alike_by_paths_and_by_transfers() {
    for kind in [CollectiveKind::Gather, CollectiveKind::Scatter, CollectiveKind::AllToAll] {
        let made = |outputs: Vec<Target>| {
            let direct = Order { algorithm: Algorithm::Direct, ..order(expression("torus:3x3"), kind, outputs) };
            produce(&direct, &Witness::default()).unwrap().plan.plan
        };
        let by_paths = made(vec![Format::Json.usual()]);
        let by_transfers = made(vec![Format::Json.usual(), Format::OnecclXml.usual()]);
        let text = by_paths.artifacts[0].content.as_deref().unwrap();
        assert!(String::from_utf8_lossy(text).contains("\"shape\":\"flow\""), "{kind}");
        assert_eq!(by_paths.artifacts[0], by_transfers.artifacts[0], "{kind}");
        assert_eq!(by_transfers.artifacts.len(), 2);
        assert_eq!(by_paths.checked, ["structure", "meaning", "load", "certificate", "file"]);
        assert_eq!(by_paths.quality, by_transfers.quality, "{kind}");
        assert_eq!(
            (by_paths.steps, by_paths.trees, by_paths.reach),
            (by_transfers.steps, by_transfers.trees, by_transfers.reach)
        );
    }
}
