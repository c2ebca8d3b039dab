//! Every target has one text form, and what is none is refused with what would be one.

use proptest::prelude::*;

use super::*;

fn names() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["b0g3", "ib", "gpu-01.cluster", "x*1/2", "a/b", "ü", "0", "1/2", "a*b", "rail0"])
        .prop_map(str::to_owned)
}

fn devices() -> impl Strategy<Value = Device> {
    prop_oneof![
        names().prop_map(|id| Device::Node { id }),
        (names(), any::<u32>()).prop_map(|(host, index)| Device::Slot { host, index }),
    ]
}

fn targets() -> impl Strategy<Value = Target> {
    prop_oneof![
        (names(), names(), any::<bool>())
            .prop_filter("a loop", |(from, to, _)| from != to)
            .prop_map(|(from, to, both_ways)| Target::Link { from, to, both_ways }),
        (devices(), prop::option::of(names())).prop_map(|(device, port)| Target::Nic { device, port }),
        (names(), names())
            .prop_filter("an index", |(_, name)| name != "0")
            .prop_map(|(host, name)| Target::Nic { device: Device::Nic { host, name }, port: None }),
        devices().prop_map(|device| Target::Gpu { device }),
        names().prop_map(|name| Target::Host { name }),
        names().prop_map(|id| Target::Node { id }),
        names().prop_map(|id| Target::Switch { id }),
        (names(), 1_u8..4).prop_map(|(switch, what)| Target::Feature {
            switch,
            multicast: what & 1 > 0,
            aggregate: what & 2 > 0
        }),
        names().prop_map(|name| Target::Plane { name }),
    ]
}

proptest! {
    #[test]
    fn text_and_json_are_read_back(target in targets(), numerator in 0_u64..4, denominator in 4_u64..6) {
        let target = target.checked().unwrap();
        prop_assert_eq!(target.to_string().parse(), Ok(target.clone()));
        let loss = Loss { target, remaining: Remaining::new(numerator, denominator).unwrap() };
        prop_assert_eq!(loss.to_string().parse(), Ok(loss.clone()));
        let json = serde_json::to_string(&loss).unwrap();
        prop_assert_eq!(serde_json::from_str::<Loss>(&json).unwrap(), loss);
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,20}", kind in prop::sample::select(vec!["link:", "nic:", "gpu:", "feature:", ""])) {
        if let Ok(loss) = format!("{kind}{text}").parse::<Loss>() {
            prop_assert_eq!(loss.to_string().parse(), Ok(loss));
        }
    }
}

#[test]
fn text_forms_are_short() {
    let printed = |text: &str| text.parse::<Loss>().unwrap().to_string();
    for text in [
        "link:b0g3>ib",
        "link:b0g3=ib*1/2",
        "nic:b0g3",
        "nic:node7:3>leaf-2*3/4",
        "nic:node7:mlx5_3>leaf-2*3/4",
        "gpu:node7:3",
        "host:node7",
        "feature:ib:multicast+aggregate",
        "plane:rail0*1/1",
    ] {
        assert_eq!(printed(text), text);
    }
    assert_eq!(
        (printed("link:b-a"), printed("link:ib=b0g3"), printed("nic:a*0/3")),
        ("link:a=b".to_owned(), "link:b0g3=ib".to_owned(), "nic:a".to_owned())
    );
}

#[test]
fn what_names_nothing_is_refused_with_what_would() {
    let refusal = |text: &str| text.parse::<Loss>().unwrap_err().to_string();
    for (text, words) in [
        ("b0g3>ib", "unknown target `b0g3>ib`; write link:A>B"),
        ("fan:3", "unknown target `fan:3`; write gpu:fan:3 for the GPU of that machine, or nic:fan:3"),
        ("fan:x", "unknown target `fan:x`; write link:A>B"),
        ("link:b0g3", "`b0g3` is not a link; write link:A>B"),
        ("link:gpu-1-gpu-2", "is not a link"),
        ("link:a>a", "leads from a to itself"),
        ("link:a>b>c", "to cannot be `b>c`"),
        ("link:>b", "from cannot be ``"),
        ("gpu:node:x", "`node:x` is not a device"),
        ("gpu:node:99999999999", "is not a device"),
        ("gpu:", "device.id cannot be ``"),
        ("nic:node:99999999999", "is not a device"),
        ("nic:node:", "is not a device"),
        ("nic:node:3*1.5", "`1.5` is not a remaining fraction; write what is left, such as 1/2, 0.5 or 50%"),
        ("gpu:node:3*50%%", "`50%%` is not a remaining fraction"),
        ("feature:ib", "`ib` is not a feature; write feature:SWITCH:multicast"),
        ("feature:ib:fast", "is not a feature"),
        ("host:a b", "name cannot be `a b`"),
        ("link:a>b*3/2", "`3/2` is not a remaining fraction"),
        ("link:a>b*/", "`/` is not a remaining fraction"),
    ] {
        assert!(refusal(text).contains(words), "{text}: {}", refusal(text));
    }
    let long = refusal(&format!("node:{}", "x".repeat(300)));
    assert!(long.len() < 300 && long.contains("1 to 255 bytes"), "{long}");
    assert!(refusal("fan:\u{1b}[2J\n").starts_with("unknown target `fan:\u{fffd}[2J\u{fffd}`"));
    let none = Target::Feature { switch: "s".to_owned(), multicast: false, aggregate: false };
    let gpu = Target::Gpu { device: Device::Nic { host: "h".to_owned(), name: "mlx5_0".to_owned() } };
    assert_eq!(gpu.checked(), Err(TargetError::NotAGpu { found: "h:mlx5_0".to_owned() }));
    assert_eq!(none.checked(), Err(TargetError::NoFeature { switch: "s".to_owned() }));
}
