//! Which plan a call gets.

use std::fs;

use super::*;

fn folder(plans: &[(&str, String)]) -> Folder {
    let place = tempfile::tempdir().unwrap();
    for (name, text) in plans {
        fs::write(place.path().join(name), text).unwrap();
    }
    Folder::read(place.path()).unwrap()
}

fn wanted(kind: CollectiveKind, root: Option<u32>, bytes: u64) -> Wanted {
    Wanted { kind, root, elements: bytes, element_bytes: 1, bytes }
}

#[test]
fn collective_root_and_bytes_choose_the_first_plan_that_serves() {
    let broadcast = include_str!("../../tests/plans/broadcast.xml");
    let sized = |least: u64, most: u64| {
        let text = broadcast.replace("minbytes=\"0\"", &format!("minbytes=\"{least}\""));
        let (head, rest) = text.split_once("maxbytes=\"").unwrap();
        format!("{head}maxbytes=\"{most}{}", &rest[rest.find('"').unwrap()..])
    };
    let plans = [
        ("a.xml", sized(0, 99)),
        ("b.xml", sized(100, 1000)),
        ("c.xml", sized(500, 0)),
        ("d.xml", include_str!("../../tests/plans/reducescatter8.xml").to_owned()),
    ];
    let (table, refused) = Table::new(&folder(&plans), 5);
    assert_eq!(refused, Vec::<String>::new());
    let choose = |root, bytes| table.choose(&wanted(CollectiveKind::Broadcast, Some(root), bytes));
    assert_eq!([0, 99, 100, 1000, 1001].map(|bytes| choose(2, bytes)), [0, 0, 1, 1, 2].map(Ok));
    assert_eq!(choose(1, 100), Err(Reason::OtherRoot));
    let other = |kind| table.choose(&wanted(kind, None, 100));
    assert_eq!(other(CollectiveKind::ReduceScatter), Err(Reason::NoPlan), "that one is for 8 ranks");
    let (small, _) = Table::new(&folder(&plans[1..2]), 5);
    assert_eq!(small.choose(&wanted(CollectiveKind::Broadcast, Some(2), 99)), Err(Reason::OtherSize));
    assert!(Table::new(&folder(&plans), 6).0.is_empty());
}

#[test]
fn plans_that_need_much_more_memory_than_the_message_are_left_out() {
    let text = include_str!("../../tests/plans/broadcast.xml");
    let (head, rest) = text.split_once("s_chunks=\"").unwrap();
    let large = format!("{head}s_chunks=\"1000000{}", &rest[rest.find('"').unwrap()..]);
    let (table, refused) = Table::new(&folder(&[("a.xml", large)]), 5);
    assert_eq!(refused, Vec::<String>::new());
    let choose = |bytes| table.choose(&wanted(CollectiveKind::Broadcast, Some(2), bytes));
    assert_eq!(choose(10), Ok(0));
    assert_eq!(choose(1 << 20), Err(Reason::Memory));
}

#[test]
fn what_is_not_proved_is_refused_with_its_name() {
    let wrong = include_str!("../../tests/plans/allgather.xml").replacen("<send peer=\"1\"", "<send peer=\"3\"", 1);
    let (table, refused) = Table::new(&folder(&[("wrong.xml", wrong), ("garbage.xml", "<onecclplan".to_owned())]), 5);
    assert!(table.is_empty());
    assert!(refused[0].starts_with("garbage.xml: "), "{refused:?}");
    assert!(refused[1].starts_with("wrong.xml: "), "{refused:?}");
}

#[test]
fn plans_for_other_machines_are_left_out() {
    let text = include_str!("../../tests/plans/broadcast.xml");
    let on = |machines: &str| {
        let (head, rest) = text.split_once("  <rank id=\"0\"").unwrap();
        let devices: Vec<String> = machines.split(' ').map(|machine| format!("{machine}:0")).collect();
        format!("{head}  <meta key=\"rank_map\" value=\"{}\"/>\n  <rank id=\"0\"{rest}", devices.join(","))
    };
    let all = folder(&[("a.xml", on("a b.site c d e")), ("b.xml", on("a b x d e")), ("c.xml", text.to_owned())]);
    let (table, refused) = Table::new(&all, 5);
    assert_eq!(refused, Vec::<String>::new());
    let bits = |rank, host| table.elsewhere(&all, rank, Some(host)).unwrap()[0];
    assert_eq!([bits(1, "b"), bits(1, "B.Site"), bits(1, "b.other")], [0, 0, 0b01]);
    assert_eq!([bits(2, "c"), bits(2, "x"), bits(2, "y")], [0b10, 0b01, 0b11]);
    assert_eq!(table.elsewhere(&all, 2, None), Some([0; FILES_MAX / 64]));
    let wanted = wanted(CollectiveKind::Broadcast, Some(2), 100);
    for (left_out, chosen) in [(0b00, 0), (0b01, 1), (0b11, 2)] {
        let (mut table, _) = Table::new(&all, 5);
        let mut files = [0; FILES_MAX / 64];
        files[0] = left_out;
        table.leave_out(&files);
        assert_eq!(table.choose(&wanted), Ok(chosen));
    }
    // Nothing is compared where no plan names machines.
    let plain = folder(&[("c.xml", text.to_owned())]);
    assert_eq!(Table::new(&plain, 5).0.elsewhere(&plain, 0, Some("a")), None);
}
