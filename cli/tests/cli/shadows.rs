//! Policies and single rules in shadow, which deny nothing.

use tallygate::{Ban, Policy, Rule, Subject, TokenBucket};

use crate::seeded::{HOUR, MINUTE, Seeded, limiter, listed};

/// A policy with a rule in shadow on its main subject, and one on networks; each has admitted three calls of `alice`, of which
/// the rules in shadow admit two and one.
async fn search(seeded: &Seeded) {
    let fleet = limiter(seeded.console().url, "tallygate").await;
    let rules = Policy::builder("search").key("{user}").rule(Rule::sliding_window(5, HOUR));
    let rules = rules.rule_on("network", Rule::fixed_window(1, HOUR).shadow()).key_on("network", "{ip}");
    let rules = rules.rule(Rule::sliding_window(2, HOUR).named("tried").shadow());
    let policy = rules.ban(Ban::new(20, 10 * MINUTE, HOUR)).build().unwrap();
    let (alice, network) = (Subject::of("alice"), Subject::of("192.0.2.1"));
    for _ in 0..3 {
        assert!(fleet.check(&policy, &alice).subject("network", &network).await.unwrap().is_allowed());
    }
    listed(&fleet, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peek_shows_rules_in_shadow_beside_those_that_are_enforced() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    search(&seeded).await;
    let printed = console.run("peek search alice 192.0.2.1").expect(0);
    let lines: Vec<_> = printed.out.lines().collect();
    assert_eq!(lines[..2], ["admitted", "in shadow, the rules 1 and 2 would deny it"]);
    assert!(lines[2].starts_with("0   5 per 1h                   2 left   resets in "), "{printed:?}");
    assert!(lines[3].starts_with("1   1 per fixed 1h shadow      0 left   resets in "), "{printed:?}");
    assert!(lines[4].starts_with("2   2 per 1h shadow as tried   0 left   resets in "), "{printed:?}");
    // A subject that only rules in shadow count is not needed for a verdict.
    let printed = console.run("peek search alice").expect(0);
    assert!(printed.out.starts_with("admitted\nin shadow, rule 2 would deny it\nnot given: network"), "{printed:?}");
    // A rule whose subject is not given is left out.
    let printed = console.run("peek search --on network=192.0.2.1").expect(1);
    assert!(
        printed.out.contains("1   1 per fixed 1h shadow   0 left") && !printed.out.contains("tried"),
        "{printed:?}"
    );
    let json = console.run("peek search bob 192.0.2.1 --json").expect(0).json();
    let rules = json["rules"].as_array().unwrap();
    let shown: Vec<_> = rules.iter().map(|rule| (&rule["used"], &rule["shadow"])).collect();
    assert_eq!(shown, [(&0.into(), &false.into()), (&1.into(), &true.into()), (&0.into(), &true.into())]);
    assert_eq!((&json["admitted"], &json["shadow"]), (&true.into(), &false.into()));
    let printed = console.run("peek search bob 192.0.2.2 --cost 2").expect(0);
    assert!(printed.out.starts_with("admitted\nin shadow, rule 1 would deny it\n0 "), "{printed:?}");
    // What the enforced rules deny, the others never hear of.
    assert!(
        console.run("peek search bob 192.0.2.1 --cost 6").expect(1).out.starts_with("denied for good by rule 0\n0 ")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_in_shadow_would_deny_a_call_by_its_number_whatever_that_costs() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let fleet = limiter(console.url, "tallygate").await;
    let rules = [Rule::sliding_window(9, HOUR), Rule::duplicate(MINUTE).shadow()];
    let policy = Policy::builder("order").key("{user}").rules(rules).build().unwrap();
    assert!(fleet.check(&policy, &Subject::of("alice")).await.unwrap().is_allowed());
    listed(&fleet, 3).await;
    let fresh = console.run("peek order zoe --cost 5").expect(0).out;
    assert!(fresh.starts_with("admitted\n0 "), "{fresh}");
    let repeated = console.run("peek order alice --cost 0").expect(0).out;
    assert!(repeated.starts_with("admitted\nin shadow, rule 1 would deny it\n0 "), "{repeated}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_subjects_of_rules_in_shadow_are_looked_through_and_none_is_denied() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    search(&seeded).await;
    let printed = console.run("top search").expect(0);
    assert_eq!(printed.out, "alice   60 %   3 of 5 per 1h · 2 of 2 per 1h shadow as tried\n1 of 1 subject\n");
    let printed = console.run("top search --rule tried").expect(0);
    assert_eq!(printed.out, "alice   100 %   2 of 2 per 1h shadow as tried\n1 of 1 subject\n");
    let printed = console.run("top search --on network").expect(0);
    assert_eq!(printed.out, "192.0.2.1   100 %   1 of 1 per fixed 1h shadow\n1 of 1 subject\n");
    let json = console.run("top search --on network --json").expect(0).json();
    let first = &json["top"][0];
    assert_eq!((&first["denied"], &first["rules"][0]["shadow"]), (&false.into(), &true.into()));
    assert!(console.run("top").expect(0).out.contains("4 of 4 subjects"));
    let printed = console.run("top search --by wait").expect(0);
    assert_eq!(printed.out, "nobody is denied by search; 1 subject looked at\n");
    assert!(console.run("bans search").expect(0).out.starts_with("nobody is banned"));
    // Rules that an override puts in shadow deny nobody, either.
    console.run_words(&["override", "search", "2 per 1h shadow", "--yes"]).expect(0);
    let printed = console.run("peek search alice 192.0.2.1").expect(1);
    assert!(
        printed.out.starts_with("would be denied for ") && printed.out.contains("nobody is rejected"),
        "{printed:?}"
    );
    let printed = console.run("top search --by wait").expect(0);
    assert!(printed.out.contains("   would be denied for "), "{printed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_in_shadow_whose_count_each_call_gives_denies_nobody() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let fleet = limiter(console.url, "tallygate").await;
    let bucket = Rule::from_bucket(1, TokenBucket::new(HOUR).with_capacity(2)).varying().shadow();
    let rules = Policy::builder("plan").key("{user}").rule(Rule::sliding_window(5, HOUR)).rule(bucket);
    let policy = rules.rule(Rule::fixed_window(1, HOUR).varying().shadow()).build().unwrap().with_counts([5, 1, 1]);
    for _ in 0..3 {
        assert!(fleet.check(&policy, &Subject::of("alice")).await.unwrap().is_allowed());
    }
    listed(&fleet, 3).await;
    let printed = console.run("peek plan alice --cost 2").expect(0);
    assert!(printed.out.starts_with("admitted\n0   5 per 1h "), "{printed:?}");
    assert!(printed.out.contains("2   n per fixed 1h shadow") && printed.out.contains("   1 used   "), "{printed:?}");
    console.run("peek plan alice --cost 3").expect(1);
}
