//! Mistakes in the syntax of TOML.

use tallygate::config::Policies;

fn places(text: &str) -> Vec<(usize, usize)> {
    let error = Policies::from_toml(text).unwrap_err();
    error.mistakes().iter().map(|mistake| (mistake.line(), mistake.column())).collect()
}

#[test]
fn all_mistakes_in_the_syntax_are_reported_with_their_places() {
    assert_eq!(places("[policy.a]\nrules = ['1 per 60s'\n"), [(2, 21)]);
    assert_eq!(places("[policy.a]\nrules = ['1 per 60s']\nkey =\n[policy.b]\nrules ['1 per 60s']\n"), [(3, 6), (5, 7)]);
}

#[test]
fn a_policy_that_is_written_twice_is_refused() {
    let text = "[policy.a]\nrules = ['1 per 60s']\n[policy.a]\nrules = ['2 per 60s']\n";
    let error = Policies::from_toml(text).unwrap_err();
    assert!(error.to_string().starts_with("line 3, column 9: duplicate key"), "{error}");
}

#[test]
fn a_mistake_in_the_syntax_hides_the_others_until_it_is_gone() {
    let error = Policies::from_toml("[policy.a]\nruls = ['1 per 60s']\nkey = \n").unwrap_err();
    assert_eq!(error.mistakes().len(), 1, "{error}");
    assert_eq!(error.mistakes()[0].line(), 3);
}
