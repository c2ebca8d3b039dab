use super::*;
use crate::rpc::shared::fields::Kind;

#[derive(Clone, Debug, PartialEq)]
struct Thing {
    id: u8,
    word: &'static str,
    size: u64,
    share: &'static str,
    born_ms: u64,
    kept: bool,
}

const FIELDS: &[Field<Thing>] = &[
    Field { name: "word", kind: Kind::Word(&["a", "b"], |thing| thing.word) },
    Field { name: "name", kind: Kind::Text(|thing| format!("thing {}", thing.id)) },
    Field { name: "size", kind: Kind::Number(|thing| thing.size) },
    Field { name: "share", kind: Kind::Ratio(|thing| thing.share.parse().unwrap()) },
    Field { name: "born", kind: Kind::Time(|thing| thing.born_ms) },
    Field { name: "kept", kind: Kind::Flag(|thing| thing.kept) },
];

fn things() -> Vec<Thing> {
    let thing = |id, word, size, share, born_ms, kept| Thing { id, word, size, share, born_ms, kept };
    vec![
        thing(1, "a", 10, "1/1", 0, true),
        thing(2, "b", 20, "1/2", 1000, false),
        thing(3, "a", 20, "9/10", 2000, false),
        thing(4, "b", 5, "2/3", 3000, true),
    ]
}

fn page(request: &ListRequest<'_>, things: Vec<Thing>) -> Result<Page<u8>, CallFailure> {
    let mut listing = Listing::new(FIELDS, request)?;
    for thing in things {
        let id = vec![thing.id];
        listing.show(thing, id);
    }
    let Page { items, next_page_token, total } = listing.finish();
    Ok(Page { items: items.into_iter().map(|thing| thing.id).collect(), next_page_token, total })
}

#[track_caller]
fn ids(filter: &str, order_by: &str) -> Vec<u8> {
    page(&ListRequest { filter, order_by, ..ListRequest::default() }, things()).unwrap().items
}

#[test]
fn filters_compare_every_kind_of_field() {
    let matching = [
        ("", &[1, 2, 3, 4][..]),
        ("word=a", &[1, 3]),
        ("word != a", &[2, 4]),
        ("size>=10 AND size<20", &[1]),
        ("size>10", &[2, 3]),
        ("size<=10", &[1, 4]),
        ("share>2/3", &[1, 3]),
        ("share=1", &[1]),
        ("kept=true AND word=b", &[4]),
        ("born>=1970-01-01T00:00:02Z", &[3, 4]),
        ("name=\"thing 2\"", &[2]),
        ("  kept=false  AND  size=20 ", &[2, 3]),
        ("size=5 OR size=10", &[1, 4]),
        ("word=a AND size=10 OR word=b AND size=5", &[1, 4]),
        ("word=a AND (size=10 OR word=b) AND (size<20)", &[1]),
        ("NOT word=a", &[2, 4]),
        ("NOT (word=a OR size=5)", &[2]),
        ("NOT NOT word=a", &[1, 3]),
        ("NOT(word=a)AND size=5", &[4]),
        ("NOT word=a AND size=20", &[2]),
        ("((((name=\"thing 3\"))))", &[3]),
    ];
    for (filter, expected) in matching {
        assert_eq!(ids(filter, ""), expected, "{filter}");
    }
}

#[test]
fn a_bad_filter_is_refused_where_it_goes_wrong() {
    let refused = [
        ("colour=a", 0, "`colour` is not a field; use word, name, size, share, born, kept"),
        ("=a", 0, "expected the name of a field"),
        ("word a", 5, "expected one of = != < <= > >="),
        ("word=", 5, "expected a value"),
        ("word=c", 5, "`c` is not one of a, b"),
        ("word<a", 4, "`word` cannot be ordered; use = or !="),
        ("size=1 size=2", 7, "expected AND, OR, or the end"),
        ("size=1 ANDsize=2", 7, "expected AND, OR, or the end"),
        ("size=1 or size=2", 7, "expected AND, OR, or the end"),
        ("size=1 OR", 9, "expected the name of a field"),
        ("NOT", 3, "expected the name of a field"),
        ("(size=1", 0, "missing closing parenthesis"),
        ("(size=1 size=2)", 8, "expected AND, OR, or a closing parenthesis"),
        ("()", 1, "expected the name of a field"),
        ("size=1)", 6, "unexpected closing parenthesis"),
        ("size=(1)", 5, "expected a value"),
        ("size=1 AND", 10, "expected the name of a field"),
        ("size=-1", 5, "`-1` is not a whole number"),
        ("share=1/0", 6, "`1/0` is not a fraction such as 9/10"),
        ("born>yesterday", 5, "`yesterday` is not a time such as 2026-01-31T12:00:00Z"),
        ("kept=yes", 5, "`yes` is not true or false"),
        ("name=\"thing", 5, "missing closing quote"),
        ("ärger=1", 0, "expected the name of a field"),
    ];
    for (filter, expected_position, expected) in refused {
        match page(&ListRequest { filter, ..ListRequest::default() }, Vec::new()) {
            Err(CallFailure::Filter { position, problem }) => {
                assert_eq!((position, &*problem), (expected_position, expected), "{filter}");
            }
            other => panic!("{filter}: {other:?}"),
        }
    }
    let long = "size=1 AND ".repeat(40) + "size=1";
    assert!(page(&ListRequest { filter: &long, ..ListRequest::default() }, Vec::new()).is_err());
    let deep = "(".repeat(33) + "size=1" + &")".repeat(33);
    assert!(page(&ListRequest { filter: &deep, ..ListRequest::default() }, Vec::new()).is_err());
    let negated = "NOT ".repeat(2000) + "size=1";
    assert!(page(&ListRequest { filter: &negated, ..ListRequest::default() }, Vec::new()).is_err());
    let longer = " ".repeat(TEXT_BYTES_MAX + 1);
    assert!(page(&ListRequest { filter: &longer, ..ListRequest::default() }, Vec::new()).is_err());
}

#[test]
fn orders_rise_and_fall_and_ids_break_ties() {
    assert_eq!(ids("", "size"), [4, 1, 2, 3]);
    assert_eq!(ids("", "size desc"), [2, 3, 1, 4]);
    assert_eq!(ids("", "word desc, size asc"), [4, 2, 1, 3]);
    assert_eq!(ids("", "share"), [2, 4, 3, 1]);
    assert_eq!(ids("", "kept, born desc"), [3, 2, 4, 1]);
    for order_by in ["colour", "size up", "size desc desc", "size,", "size, size", ","] {
        let refused = page(&ListRequest { order_by, ..ListRequest::default() }, Vec::new());
        assert!(matches!(refused, Err(CallFailure::OrderBy { .. })), "{order_by}");
    }
}

#[test]
fn pages_show_everything_once_in_order_even_when_things_come_and_go() {
    let many: Vec<Thing> = (0..200).map(|id| Thing { size: u64::from(id) % 7, id, ..things()[0].clone() }).collect();
    for order_by in ["", "size desc", "word, size"] {
        let (mut token, mut seen, mut rest) = (String::new(), Vec::new(), many.clone());
        loop {
            let request = ListRequest { page_size: 7, page_token: &token, order_by, ..ListRequest::default() };
            let page = page(&request, rest.clone()).unwrap();
            let last = *page.items.last().unwrap();
            seen.extend(page.items);
            if page.next_page_token.is_empty() {
                break;
            }
            token = page.next_page_token;
            // The thing that the token points to goes away.
            rest.retain(|thing| thing.id != last);
        }
        let mut expected = many.clone();
        match order_by {
            "size desc" => expected.sort_by_key(|thing| (std::cmp::Reverse(thing.size), thing.id)),
            "word, size" => expected.sort_by_key(|thing| (thing.size, thing.id)),
            _ => {}
        }
        assert_eq!(seen, expected.iter().map(|thing| thing.id).collect::<Vec<_>>(), "{order_by}");
    }
}

#[test]
fn a_page_token_belongs_to_one_filter_and_order() {
    let first = ListRequest { page_size: 1, filter: "size>1", order_by: "size", ..ListRequest::default() };
    let token = page(&first, things()).unwrap().next_page_token;
    assert!(page(&ListRequest { page_token: &token, ..first }, things()).is_ok());
    let other_size = ListRequest { page_token: &token, page_size: 9, ..first };
    assert!(page(&other_size, things()).is_ok(), "the size may change");
    for request in [
        ListRequest { page_token: &token, filter: "size>2", ..first },
        ListRequest { page_token: &token, order_by: "size desc", ..first },
        ListRequest { page_token: &token[2..], ..first },
        ListRequest { page_token: "zz", ..first },
        ListRequest { page_token: "ä", ..first },
    ] {
        assert!(matches!(page(&request, things()), Err(CallFailure::PageToken)), "{request:?}");
    }
}

#[test]
fn page_sizes_have_a_default_and_a_limit() {
    let many: Vec<Thing> = (0..200).map(|id| Thing { id, ..things()[0].clone() }).collect();
    let first = page(&ListRequest::default(), many).unwrap();
    assert_eq!((first.items.len(), first.total), (50, 200));
    let refused = page(&ListRequest { page_size: 1001, ..ListRequest::default() }, Vec::new());
    assert!(matches!(refused, Err(CallFailure::PageSize { found: 1001, limit: 1000 })));
}
