use super::*;

#[test]
fn a_change_counts_when_two_readings_in_a_row_are_equal() {
    let mut readings = Readings::new(Ok("old".to_owned()));
    let mut read = |text: &str| readings.note(Ok(text.to_owned())) == Reading::Changed;
    assert!(!read("old") && !read("n") && !read("new") && read("new") && !read("new"));
    assert!(!read("other") && !read("new") && !read("other") && read("other"));
    let missing = || Err((io::ErrorKind::NotFound, "gone".to_owned()));
    let mut miss = || readings.note(missing());
    assert_eq!([miss(), miss(), miss()], [Reading::Changing, Reading::Changed, Reading::Known(1)]);
}

#[test]
fn readings_are_counted_from_the_last_that_differed() {
    let mut readings = Readings::new(Ok("old".to_owned()));
    let mut read = |text: &str| readings.note(Ok(text.to_owned()));
    assert_eq!([read("old"), read("old"), read("new")], [Reading::Known(1), Reading::Known(2), Reading::Changing]);
    assert_eq!([read("old"), read("old")], [Reading::Known(1), Reading::Known(2)]);
}

const WHOLE: &str = "[policy.a]\nrules = ['1 per 1m']\n[policy.b]\nrules = ['2 per 1m']\nwarn_at = 0.8\n";

fn version(text: &str) -> Version {
    Version { text: text.to_owned(), policies: Policies::from_toml(text).unwrap() }
}

fn loss(other: &str) -> Option<Loss> {
    version(WHOLE).loss_of(&version(other))
}

fn parts(lost: &str) -> Loss {
    Loss::Parts(lost.to_owned())
}

#[test]
fn what_is_changed_or_added_is_no_loss() {
    assert_eq!(loss(WHOLE), None);
    assert_eq!(loss(WHOLE.trim_end()), None);
    assert_eq!(loss(&format!("{WHOLE}\n[policy.c]\nrules = ['1 per 1m']")), None);
    assert_eq!(loss(&WHOLE.replace("2 per", "3 per").replace("warn_at = 0.8", "")), None);
}

#[test]
fn every_part_of_a_file_from_its_beginning_is_refused_or_a_loss() {
    for length in 0..WHOLE.trim_end().len() {
        let cut = &WHOLE[..length];
        if let Ok(policies) = Policies::from_toml(cut) {
            let other = Version { text: cut.to_owned(), policies };
            assert!(version(WHOLE).loss_of(&other).is_some(), "{cut}");
        }
    }
}

#[test]
fn a_loss_is_named() {
    assert_eq!(loss(&WHOLE[..31]), Some(parts("the policy `b`")));
    assert_eq!(loss("[policy.c]\nrules = ['1 per 1m']"), Some(parts("the policies `a`, `b`")));
    assert_eq!(loss(&WHOLE.replace("warn_at = 0.8", "")), Some(parts("what stood at its end")));
}

#[test]
fn a_file_that_has_its_end_is_whole_and_one_that_lost_it_is_not() {
    let whole = version("[policy.a]\nrules = ['1 per 1m']\n[end]\n");
    assert_eq!(version(WHOLE).loss_of(&whole), None);
    assert_eq!(whole.loss_of(&version("[end]")), None);
    assert_eq!(whole.loss_of(&version(WHOLE)), Some(Loss::End));
}
