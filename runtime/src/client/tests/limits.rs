//! What is left of each limit.

use super::*;

/// What is heard of each limit: its name and unit, its limit, what remains, its window and its reset.
fn shown(fields: &[(&str, &str)]) -> Vec<String> {
    let show = |number: Option<u64>| number.map_or("-".to_owned(), |number| number.to_string());
    let seconds = |time: Option<Duration>| time.map_or("-".to_owned(), |time| time.as_secs_f64().to_string());
    let heard = read(200, fields);
    let limits = heard.limits().iter().map(|limit| {
        let (quota, remaining) = (show(limit.limit()), show(limit.remaining()));
        let (window, reset) = (seconds(limit.window()), seconds(limit.reset()));
        let fixed = if limit.has_fixed_windows() { " fixed" } else { "" };
        format!("{} {}: {remaining}/{quota} w={window} t={reset}{fixed}", limit.name().unwrap_or("-"), limit.unit())
    });
    limits.collect()
}

/// The fields of an answer, and what is shown of its limits.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);

fn assert_shown(cases: &[Case<'_>]) {
    for (fields, limits) in cases {
        assert_eq!(shown(fields), *limits, "{fields:?}");
    }
}

#[test]
fn members_of_a_limit_that_nobody_knows_are_passed_over_however_many_they_are() {
    let unknown = (0..40_000).map(|number| format!("x{number}=1")).collect::<Vec<_>>().join(", ");
    let known = "limit=7, remaining=5, reset=60";
    for line in [format!("{unknown}, {known}"), format!("{known}, {unknown}")] {
        assert_shown(&[(&[("ratelimit", &line)], &["- requests: 5/7 w=- t=60"])]);
    }
    let many = format!("{known},").repeat(20_000);
    assert_eq!(shown(&[("ratelimit", &many)]).len(), 32);
}

#[test]
fn a_member_that_is_not_understood_leaves_the_others() {
    assert_shown(&[
        (
            &[("x-ratelimit-remaining", "0, unlimited"), ("x-ratelimit-limit", "many, 9")][..],
            &["- requests: 0/9 w=- t=-"][..],
        ),
        (&[("ratelimit", r#""a";r=0;t=20, "b", 7"#)], &["a requests: 0/- w=- t=20"]),
        (&[("ratelimit", "limit=5, remaining=few, limit=9, remaining=0, reset=20")], &["- requests: 0/9 w=- t=20"]),
        (&[("ratelimit-policy", r#""a", "b";q=9;w=60"#), ("ratelimit", r#""b";r=5"#)], &["b requests: 5/9 w=60 t=-"]),
        (
            &[("ratelimit-policy", "100;w=60, ?"), ("ratelimit", "limit=100, remaining=5")],
            &["- requests: 5/100 w=60 t=-"],
        ),
    ]);
}

#[test]
fn each_version_of_the_draft_is_read() {
    assert_shown(&[
        // The current draft.
        (
            &[
                ("ratelimit-policy", r#""burst";q=100;w=60, "daily";q=1000;w=86400;qu="content-bytes";pk=:cHNzdA==:"#),
                ("ratelimit", r#""burst";r=50;t=30"#),
                ("ratelimit", r#""daily";r=7, "other";r=1"#),
            ][..],
            &[
                "burst requests: 50/100 w=60 t=30",
                "daily content-bytes: 7/1000 w=86400 t=-",
                "other requests: 1/- w=- t=-",
            ][..],
        ),
        (&[("ratelimit", "default;r=50;t=30")], &["default requests: 50/- w=- t=30"]),
        // Version 7.
        (
            &[("ratelimit-policy", "100;w=60, 1000;w=3600"), ("ratelimit", "limit=1000, remaining=5, reset=60")],
            &["- requests: 5/1000 w=3600 t=60"],
        ),
        (&[("ratelimit", "remaining=5, reset=60")], &["- requests: 5/- w=- t=60"]),
        // Older versions.
        (
            &[("ratelimit-limit", "10, 10;w=1, 50;w=60"), ("ratelimit-remaining", "9"), ("ratelimit-reset", "1")],
            &["- requests: 9/10 w=1 t=1"],
        ),
        (
            &[
                ("ratelimit-limit", "10"),
                ("ratelimit-policy", r#"10;w=1;comment="burst", 50;w=60"#),
                ("ratelimit-remaining", "9"),
                ("ratelimit-reset", "1"),
            ],
            &["- requests: 9/10 w=1 t=1"],
        ),
        // Docker.
        (
            &[("ratelimit-limit", "100;w=21600"), ("ratelimit-remaining", "76;w=21600")],
            &["- requests: 76/100 w=21600 t=-"],
        ),
    ]);
}

#[test]
fn the_fields_of_well_known_servers_are_read() {
    assert_shown(&[
        // GitHub.
        (
            &[
                ("x-ratelimit-limit", "5000"),
                ("x-ratelimit-remaining", "4999"),
                ("x-ratelimit-reset", "1800000060"),
                ("x-ratelimit-used", "1"),
                ("x-ratelimit-resource", "core"),
            ],
            &["- requests: 4999/5000 w=- t=60 fixed"],
        ),
        // Reddit.
        (
            &[("x-ratelimit-used", "3"), ("x-ratelimit-remaining", "597.0"), ("x-ratelimit-reset", "421")],
            &["- requests: 597/- w=- t=421"],
        ),
        // OpenAI.
        (
            &[
                ("x-ratelimit-limit-requests", "60"),
                ("x-ratelimit-limit-tokens", "150000"),
                ("x-ratelimit-remaining-requests", "59"),
                ("x-ratelimit-remaining-tokens", "149984"),
                ("x-ratelimit-reset-requests", "1s"),
                ("x-ratelimit-reset-tokens", "6m0s"),
            ],
            &["- requests: 59/60 w=- t=1", "- tokens: 149984/150000 w=- t=360"],
        ),
        // Anthropic.
        (
            &[
                ("anthropic-ratelimit-input-tokens-limit", "50000"),
                ("anthropic-ratelimit-input-tokens-remaining", "0"),
                ("anthropic-ratelimit-input-tokens-reset", "2027-01-15T08:00:30Z"),
            ],
            &["- input-tokens: 0/50000 w=- t=30"],
        ),
        // Kong.
        (
            &[
                ("x-ratelimit-limit-minute", "10"),
                ("x-ratelimit-remaining-minute", "9"),
                ("x-ratelimit-limit-month", "100"),
                ("x-ratelimit-remaining-month", "99"),
                ("x-ratelimit-remaining-year", "999"),
                ("ratelimit-limit", "10"),
                ("ratelimit-remaining", "9"),
                ("ratelimit-reset", "42"),
            ],
            &[
                "- requests: 9/10 w=60 t=-",
                "- requests: 99/100 w=2678400 t=-",
                "- requests: 999/- w=31622400 t=-",
                "- requests: 9/10 w=- t=42",
            ],
        ),
        // A field without a window has another limit than those with one.
        (
            &[
                ("x-ratelimit-remaining-minute", "9"),
                ("x-ratelimit-remaining", "5"),
                ("x-ratelimit-limit-minute", "10"),
            ],
            &["- requests: 9/10 w=60 t=-", "- requests: 5/- w=- t=-"],
        ),
    ]);
}

#[test]
fn what_is_understood_counts_and_of_several_lines_the_strictest() {
    assert_shown(&[
        // A gateway adds lines of its own: the stricter ones count.
        (
            &[
                ("x-ratelimit-limit", "100, 50"),
                ("x-ratelimit-limit", "80"),
                ("x-ratelimit-remaining", "7, 5"),
                ("x-ratelimit-remaining", "6"),
                ("x-ratelimit-reset", "3, 9"),
                ("x-ratelimit-reset", "4"),
            ],
            &["- requests: 5/50 w=- t=9"],
        ),
        // Lines mean the same as if a proxy had joined them, and the window is that of the stricter limit.
        (
            &[("ratelimit-limit", "100;w=60"), ("ratelimit-limit", "50;w=3600"), ("ratelimit-remaining", "7")],
            &["- requests: 7/50 w=3600 t=-"],
        ),
        (&[("ratelimit-limit", "50;w=3600, 100;w=60"), ("ratelimit-remaining", "7")], &["- requests: 7/50 w=3600 t=-"]),
        (
            &[("ratelimit-limit", "10, 10;w=1"), ("ratelimit-limit", "10;w=60"), ("ratelimit-remaining", "7")],
            &["- requests: 7/10 w=60 t=-"],
        ),
        // Version 7 of the draft has one limit a line.
        (
            &[
                ("ratelimit", "limit=100, remaining=50, reset=9"),
                ("ratelimit", "limit=10, remaining=0, reset=5"),
                ("ratelimit", r#""own";r=3"#),
            ],
            &["- requests: 50/100 w=- t=9", "- requests: 0/10 w=- t=5", "own requests: 3/- w=- t=-"],
        ),
        (
            &[("ratelimit", "limit=100, remaining=50, reset=9, limit=10, remaining=0, reset=5")],
            &["- requests: 50/100 w=- t=9", "- requests: 0/10 w=- t=5"],
        ),
        (&[("ratelimit", "garbage"), ("ratelimit", r#""own";r=3"#)], &["own requests: 3/- w=- t=-"]),
        // Some of it is no number: the rest counts.
        (&[("x-ratelimit-limit", "unlimited"), ("x-ratelimit-remaining", "5")], &["- requests: 5/- w=- t=-"]),
        (&[("x-ratelimit-limit", "-1"), ("x-ratelimit-remaining", "-1")], &["- requests: -/- w=- t=-"]),
        // Nothing of it is understood.
        (&[("ratelimit", r#""a";r=-1"#)], &[]),
        (&[("ratelimit", r#""a";r="1""#)], &[]),
        (&[("ratelimit", r#"("a" "b");r=1"#)], &[]),
        (&[("ratelimit", "5")], &[]),
        (&[("ratelimit", "é")], &[]),
        (&[("ratelimit", "")], &[]),
        (&[("ratelimit-policy", r#""a";q=5;w=60"#)], &[]),
        (&[], &[]),
    ]);
}

#[test]
fn of_very_many_limits_some_are_read() {
    let names: Vec<_> = (0..100).map(|number| format!("x-ratelimit-remaining-unit{number}")).collect();
    let fields: Vec<_> = names.iter().map(|name| (name.as_str(), "1")).collect();
    assert_eq!(read(200, &fields).limits().len(), 32);
    let items = (0..100).map(|number| format!(r#""{number}";r=1"#)).collect::<Vec<_>>().join(", ");
    let fields: Vec<_> = fields.into_iter().chain([("ratelimit", items.as_str())]).collect();
    assert_eq!(read(200, &fields).limits().len(), 32);
}
