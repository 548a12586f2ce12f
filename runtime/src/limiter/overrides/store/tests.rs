use super::*;

fn stored<const N: usize>(texts: [(&str, &str); N]) -> Vec<StoredText> {
    texts.map(|(field, text)| StoredText { field: field.to_owned(), text: text.to_owned() }).into()
}

/// The version that is adopted, and how many overrides it has.
fn known(overrides: &Overrides) -> (String, usize) {
    let known = overrides.read();
    (known.version.clone().unwrap_or_default(), known.table.len())
}

fn adopt<const N: usize>(overrides: &Overrides, reading: &Reading, version: &str, texts: [(&str, &str); N]) -> usize {
    overrides.adopt(reading, Some(version.to_owned()), stored(texts), 0).len()
}

#[test]
fn a_refresh_that_began_before_a_change_does_not_undo_it() {
    let overrides = Overrides::default();
    let refresh = overrides.read_order.begin();
    let change = overrides.read_order.begin();
    assert_eq!(adopt(&overrides, &change, "new", [("sms", "0 per 1h")]), 1);
    assert_eq!(adopt(&overrides, &refresh, "old", []), 0, "no policy is changed back");
    assert_eq!(known(&overrides), ("new".to_owned(), 1));
    overrides.keep_known(&refresh, Some("old".to_owned()));
    assert_eq!((known(&overrides), overrides.too_long()), (("new".to_owned(), 1), None));
}

#[test]
fn a_refresh_that_began_after_a_change_replaces_it() {
    let overrides = Overrides::default();
    let change = overrides.read_order.begin();
    let refresh = overrides.read_order.begin();
    adopt(&overrides, &change, "old", [("sms", "0 per 1h")]);
    adopt(&overrides, &refresh, "new", []);
    assert_eq!(known(&overrides), ("new".to_owned(), 0));
}

#[test]
fn a_reading_without_an_answer_keeps_no_other_from_being_adopted() {
    let overrides = Overrides::default();
    let earlier = overrides.read_order.begin();
    let _unanswered = overrides.read_order.begin();
    adopt(&overrides, &earlier, "read", [("sms", "0 per 1h")]);
    assert_eq!(known(&overrides), ("read".to_owned(), 1));
}
