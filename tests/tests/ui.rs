//! Every mistake in the attribute has an error that names it and its remedy: one file, one mistake.

#[test]
fn every_mistake_is_told_at_its_place_with_its_remedy() {
    trybuild::TestCases::new().compile_fail("ui/fail/*.rs");
}
