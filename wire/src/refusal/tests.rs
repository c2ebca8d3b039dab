use super::*;

#[test]
fn numbers_of_codes_are_read_back() {
    for code in Code::ALL {
        assert_eq!(Code::from_number(code.into()), code);
    }
    assert_eq!([-1, 0, 12, 17].map(Code::from_number), [Code::Unknown; 4]);
}

#[test]
fn a_violation_has_the_words_of_the_refusal() {
    let delay = Duration::from_secs(1);
    let at = |place: &str| vec![(place.to_owned(), "words".to_owned())];
    let check = |detail: Detail, violations: Vec<(String, String)>, retry_after| {
        let refusal = Refusal::new(Code::Internal, "REASON", detail);
        assert_eq!(refusal.violations("words"), violations);
        assert_eq!(refusal.retry_after(), retry_after);
    };
    check(Detail::None, Vec::new(), None);
    check(Detail::Field("form".to_owned()), at("form"), None);
    check(Detail::Precondition("form".to_owned()), at("form"), None);
    check(Detail::Limit("topology".to_owned()), at("topology"), None);
    check(Detail::Busy("queue".into(), delay), at("queue"), Some(delay));
    check(Detail::Retry(delay), Vec::new(), Some(delay));
    check(Detail::Resource("canopy.v1.Plan".into(), "x".to_owned()), Vec::new(), None);
    let components = Detail::Components("rank 0 to rank 1".to_owned(), vec!["a".to_owned(), "b".to_owned()]);
    let listed = [("rank 0 to rank 1", "words"), ("component 0", "a"), ("component 1", "b")];
    check(components, listed.map(|(place, what)| (place.to_owned(), what.to_owned())).into(), None);
}
