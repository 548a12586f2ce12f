//! Traces of calls: long ones, mistaken ones, and two policies on one of them.

use std::io::{self, Read};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fastrand::Rng;
use tallygate::simulation::{Comparison, CsvTrace, Simulation, TraceCall, TraceError, TraceErrorKind};
use tallygate::{Ban, Decision, Policy, Rule, Subject, TokenBucket};

const MINUTE: Duration = Duration::from_secs(60);
const START: u64 = 1_800_000_000;

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(START + seconds)
}

fn policy(rules: impl IntoIterator<Item = Rule>) -> Policy {
    Policy::builder("trace").rules(rules).build().unwrap()
}

fn call(seconds: u64) -> TraceCall {
    TraceCall::new(at(seconds), Subject::everyone())
}

/// What a text is read as: the cost of each call, or the mistake in its line.
fn read(text: &str) -> Vec<Result<u64, String>> {
    let calls = CsvTrace::new(text.as_bytes()).unwrap();
    calls.map(|call| call.map(|call| call.cost()).map_err(|mistake| mistake.to_string())).collect()
}

fn header_mistake(text: &str) -> String {
    let mistake = CsvTrace::new(text.as_bytes()).unwrap_err();
    assert_eq!(mistake.kind(), TraceErrorKind::Header);
    mistake.to_string()
}

#[test]
fn a_million_calls_of_many_subjects_keep_every_limit() {
    let mut random = Rng::with_seed(7);
    let mut simulation =
        Simulation::new(&policy([Rule::sliding_window(5, MINUTE), Rule::sliding_window(50, 60 * MINUTE)]));
    let mut now = at(0);
    let trace = (0..1_000_000).map(|_| {
        now += Duration::from_millis(random.u64(0..20));
        Ok(TraceCall::new(now, Subject::of(random.u32(0..2_000))))
    });
    let summary = simulation.run(trace, Err).unwrap();
    assert_eq!((summary.calls(), summary.admitted() + summary.denied()), (1_000_000, 1_000_000));
    // 10,000 seconds are less than three hours, and each has room for fifty calls of a subject.
    assert!(summary.admitted() > 2_000 * 50 && summary.admitted() <= 2_000 * 150, "{summary}");
    assert!(summary.denials().rules().all(|(_, denials)| denials > 1_000), "{summary}");
    assert!(summary.longest_wait().unwrap() <= 60 * MINUTE);
}

#[test]
fn rules_in_shadow_deny_nothing_and_what_they_would_deny_is_counted_apart() {
    let hour = 60 * MINUTE;
    let enforced = Rule::sliding_window(3, MINUTE);
    let tried = [Rule::sliding_window(2, hour).shadow(), Rule::fixed_window(4, hour).named("fixed").shadow()];
    let [plain, trying] = [vec![], tried.to_vec()].map(|tried| policy([enforced.clone()].into_iter().chain(tried)));
    let mut comparison = Comparison::new(&plain, &trying);
    // The fourth call of each minute is denied, and the rules in shadow never hear of it.
    let seconds = (0..4).chain(60..64);
    comparison.run(seconds.map(|second| Ok(call(second))), Err).unwrap();
    assert_eq!((comparison.differences(), comparison.before().denied_in_shadow().total()), (0, 0));
    let summary = comparison.after();
    assert_eq!((summary.admitted(), summary.denied(), summary.denials().by_rule(0)), (6, 2, 2));
    let tried = summary.denied_in_shadow();
    assert_eq!([0, 1, 2].map(|position| tried.by_rule(position)), [0, 4, 2]);
    let text = "8 calls: 6 admitted, 2 denied (2 by `3 per 1m`); longest wait 57s; denied in shadow (4 by `2 per 1h shadow`, \
                2 by `4 per fixed 1h shadow as fixed`)";
    assert_eq!(summary.to_string(), text);
}

#[test]
fn a_rule_in_shadow_has_its_own_subject_in_a_trace_and_weighs_calls_by_their_cost() {
    let rules = Policy::builder("trace").rule(Rule::sliding_window(9, MINUTE));
    let policy = rules.rule_on("ip", Rule::sliding_window(2, MINUTE).shadow()).build().unwrap();
    let text = "time,subject,cost,subject:ip\n1800000000,a,1,n\n1800000001,b,1,n\n1800000002,c,1,n\n1800000003,c,3,m\n";
    let mut simulation = Simulation::new(&policy);
    let summary = simulation.run(CsvTrace::new(text.as_bytes()).unwrap(), Err).unwrap();
    assert_eq!((summary.admitted(), summary.denied_in_shadow().by_rule(1)), (4, 2));
    let mistake = simulation.call(&call(9)).unwrap_err();
    assert_eq!(mistake.kind(), TraceErrorKind::Subject);
    // Where calls are taken ahead, rules in shadow count each by itself.
    let ahead =
        Policy::builder("trace").rule(Rule::sliding_window(100, MINUTE)).rule(Rule::sliding_window(1, MINUTE).shadow());
    let mut simulation = Simulation::new(&ahead.prefetch(Duration::from_millis(100)).build().unwrap());
    simulation.run([Ok(call(0)), Ok(call(1))], Err).unwrap();
    assert_eq!(simulation.summary().denied_in_shadow().by_rule(1), 1);
}

#[test]
fn more_subjects_than_a_limiter_keeps_are_all_kept() {
    let mut simulation = Simulation::new(&policy([Rule::sliding_window(1, MINUTE)]));
    let subjects = 1_100_000_u32;
    let trace = (0..subjects).chain(0..subjects).map(|subject| Ok(TraceCall::new(at(0), Subject::of(subject))));
    let summary = simulation.run(trace, Err).unwrap();
    assert_eq!((summary.admitted(), summary.denied()), (subjects.into(), subjects.into()));
}

#[test]
fn a_summary_says_who_denied_and_how_long_to_wait() {
    let rules = [Rule::sliding_window(2, MINUTE).named("pace"), Rule::fixed_window(3, 60 * MINUTE)];
    let ban = Ban::new(3, 10 * MINUTE, 120 * MINUTE);
    let policy = Policy::builder("trace").rules(rules).ban(ban).build().unwrap();
    let mut simulation = Simulation::new(&policy);
    let summary = simulation.run([0, 10, 20, 70, 71, 72, 73, 74].map(call).map(Ok), Err).unwrap();
    assert_eq!((summary.calls(), summary.admitted(), summary.denied()), (8, 3, 5));
    let denials = summary.denials();
    assert_eq!((denials.by_rule(0), denials.by_rule(1), denials.by_rule(2), denials.by_ban()), (1, 2, 0, 2));
    assert_eq!(
        summary.to_string(),
        "8 calls: 3 admitted, 5 denied (1 by `2 per 1m as pace`, 2 by `3 per fixed 1h`, 2 by the ban); longest wait 2h"
    );
}

#[test]
fn a_pause_in_a_trace_closes_its_subject_until_a_call_after_it_has_none() {
    let rules = Policy::builder("trace").rule(Rule::sliding_window(9, MINUTE));
    let mut simulation = Simulation::new(&rules.clone().pausable().build().unwrap());
    let calls = [
        (0, "a", 30),
        (10, "a", 0),
        (10, "b", 0),
        // It is tried, and closes the subject again.
        (30, "a", 20),
        (40, "a", 0),
        // Nobody hears what the other side would have answered to a call that is denied.
        (45, "a", 600),
        (50, "a", 0),
        (51, "a", 0),
    ];
    let paused = |(second, subject, pause)| {
        Ok(TraceCall::new(at(second), Subject::of(subject)).with_pause(Duration::from_secs(pause)))
    };
    let summary = simulation.run(calls.map(paused), Err).unwrap();
    assert_eq!((summary.denials().by_pause(), summary.denials().by_ban()), (3, 0));
    assert_eq!(summary.to_string(), "8 calls: 5 admitted, 3 denied (3 by a pause); longest wait 20s");

    let mut simulation = Simulation::new(&rules.build().unwrap());
    let mistake = simulation.call(&call(0).with_pause(MINUTE)).unwrap_err();
    assert_eq!(mistake.kind(), TraceErrorKind::Pause);
    assert!(mistake.to_string().contains("cannot be paused; make it pausable with"), "{mistake}");
    assert!(simulation.call(&call(0)).unwrap().is_allowed());
}

#[test]
fn a_call_that_costs_more_than_a_rule_ever_admits_is_counted_apart() {
    let mut simulation = Simulation::new(&policy([Rule::sliding_window(2, MINUTE)]));
    let summary = simulation.run([Ok(call(0).with_cost(3)), Ok(call(0).with_cost(2))], Err).unwrap();
    assert_eq!((summary.never(), summary.longest_wait()), (1, None));
    assert_eq!(summary.to_string(), "2 calls: 1 admitted, 1 denied (1 by `2 per 1m`); 1 never admitted");
}

#[test]
fn a_call_earlier_than_the_one_before_is_refused_with_its_number_and_changes_nothing() {
    let mut simulation = Simulation::new(&policy([Rule::sliding_window(1, MINUTE)]));
    assert!(simulation.call(&call(60)).unwrap().is_allowed());
    let mistake = simulation.call(&call(59)).unwrap_err();
    assert_eq!((mistake.kind(), mistake.call(), mistake.line()), (TraceErrorKind::Order, Some(2), None));
    assert_eq!(
        mistake.to_string(),
        "call 2: it is made at 2027-01-15T08:00:59Z, and the call before it at 2027-01-15T08:01:00Z; sort the trace by time"
    );
    assert!(!simulation.call(&call(60)).unwrap().is_allowed());
    assert!(simulation.call(&call(120)).unwrap().is_allowed());
    assert_eq!(simulation.summary().calls(), 3);
}

#[test]
fn a_time_far_away_is_refused() {
    let mut simulation = Simulation::new(&policy([Rule::sliding_window(1, MINUTE)]));
    for at in [UNIX_EPOCH, UNIX_EPOCH - MINUTE, UNIX_EPOCH + Duration::from_secs(START * 1_000)] {
        let mistake = simulation.call(&TraceCall::new(at, Subject::everyone())).unwrap_err();
        assert_eq!(mistake.kind(), TraceErrorKind::Time);
        assert!(mistake.to_string().contains("epoch times are in seconds"), "{mistake}");
    }
    assert!(simulation.call(&call(0)).unwrap().is_allowed());
}

#[test]
fn every_subject_of_a_policy_comes_from_its_column() {
    let policy = Policy::builder("login")
        .rule(Rule::sliding_window(2, MINUTE))
        .rule_on("network", Rule::sliding_window(3, MINUTE))
        .build()
        .unwrap();
    let text = "subject:network,time,subject\nn,1800000000,a\nn,1800000000,a\nn,1800000000,b\nn,1800000000,c\nm,1800000000,c\n";
    let mut simulation = Simulation::new(&policy);
    let summary = simulation.run(CsvTrace::new(text.as_bytes()).unwrap(), Err).unwrap();
    assert_eq!((summary.admitted(), summary.denials().by_rule(1)), (4, 1));

    let lacking = simulation.run(CsvTrace::new("time,subject\n1800000000,a".as_bytes()).unwrap(), Err).unwrap_err();
    assert_eq!((lacking.kind(), lacking.line(), lacking.call()), (TraceErrorKind::Subject, Some(2), Some(6)));
    assert_eq!(
        lacking.to_string(),
        "line 2, call 6: policy `login` has rules on a subject `network`, which the call left out"
    );
    let unknown = simulation.call(&call(0).with_subject("country", Subject::of("de"))).unwrap_err();
    assert_eq!(unknown.to_string(), "call 7: policy `login` has no rule on a subject `country`");
}

/// Calls of a minute, and their tokens.
fn chat(calls: u64, tokens: u64) -> Policy {
    policy([Rule::sliding_window(calls, MINUTE), Rule::sliding_window(tokens, MINUTE).counting("tokens")])
}

#[test]
fn each_unit_of_a_call_comes_from_its_column_and_all_of_them_count_or_none() {
    let policy = chat(3, 100);
    let mut simulation = Simulation::new(&policy);
    let text = "time,cost,tokens\n1800000000,,60\n1800000001,,41\n1800000002,,40\n1800000003,,0\n1800000004,0,1\n1800000005,,\n";
    let summary = simulation.run(CsvTrace::with_units(text.as_bytes(), policy.units()).unwrap(), Err).unwrap();
    let denied: Vec<_> = summary.denials().rules().map(|(rule, denials)| (rule.unit(), denials)).collect();
    assert_eq!((summary.admitted(), denied), (3, vec![(None, 1), (Some("tokens"), 2)]));
    let reasons = "(1 by `3 per 1m`, 2 by `100 tokens per 1m`)";
    assert_eq!(summary.to_string(), format!("6 calls: 3 admitted, 3 denied {reasons}; longest wait 59s"));
}

#[test]
fn a_call_that_names_no_cost_in_a_unit_is_denied_once_nothing_is_left() {
    let policy = policy([Rule::sliding_window(10, MINUTE).counting("tokens")]);
    let mut simulation = Simulation::new(&policy);
    let text = "time,tokens\n1800000000,10\n1800000000,\n1800000000,0\n1800000061,\n1800000061,10\n";
    let calls = CsvTrace::with_units(text.as_bytes(), policy.units()).unwrap();
    let admitted: Vec<_> = calls.map(|call| simulation.call(&call.unwrap()).unwrap().is_allowed()).collect();
    assert_eq!(admitted, [true, false, true, true, true]);
    let calls =
        [None, Some(9), None].map(|tokens| tokens.map_or(call(61), |cost| call(61).with_cost_of("tokens", cost)));
    let admitted = calls.map(|call| simulation.call(&call).unwrap().is_allowed());
    assert_eq!(admitted, [false, false, false], "without the column, too");
}

#[test]
fn a_unit_alone_is_decided_by_what_each_call_costs_in_it() {
    for tokens in [Rule::sliding_window(9, MINUTE), Rule::from_bucket(9, TokenBucket::new(MINUTE))] {
        let mut simulation = Simulation::new(&policy([tokens.counting("tokens")]));
        let calls = [5, 4, 0, 1].map(|tokens| Ok(call(0).with_cost_of("tokens", tokens)));
        assert_eq!(simulation.run(calls, Err).unwrap().admitted(), 3);
    }
}

#[test]
fn a_rule_in_shadow_is_tried_by_its_own_unit() {
    let tried = Rule::sliding_window(100, MINUTE).counting("tokens").shadow();
    let mut simulation = Simulation::new(&policy([Rule::sliding_window(3, MINUTE), tried]));
    let calls = [60, 41, 40].map(|tokens| Ok(call(0).with_cost_of("tokens", tokens)));
    let summary = simulation.run(calls, Err).unwrap();
    assert_eq!((summary.admitted(), summary.denied_in_shadow().by_rule(1)), (3, 1));
}

#[test]
fn a_unit_that_no_rule_counts_is_a_mistake_unless_another_policy_of_a_comparison_counts_it() {
    let plain = policy([Rule::sliding_window(3, MINUTE)]);
    let tokens = call(0).with_cost_of("tokens", 101);
    let mistake = Simulation::new(&plain).call(&tokens).unwrap_err();
    assert_eq!(mistake.kind(), TraceErrorKind::Unit);
    let text = "call 1: no rule of policy `trace` counts the unit `tokens`; its rules count `calls`";
    assert_eq!(mistake.to_string(), text);
    let mut comparison = Comparison::new(&plain, &chat(3, 100));
    let (before, after) = comparison.call(&tokens).unwrap();
    assert!(before.is_allowed() && !after.is_allowed());
    let reason = "2 calls: 1 decided alike, 1 newly denied (1 by `100 tokens per 1m`), 0 newly admitted";
    let _ = comparison.call(&call(1).with_cost_of("tokens", 9)).unwrap();
    assert_eq!(comparison.to_string(), reason);
    assert_eq!(comparison.call(&call(1).with_cost_of("bytes", 9)).unwrap_err().kind(), TraceErrorKind::Unit);
}

#[test]
fn a_mistaken_line_is_an_error_with_its_number_and_the_next_line_is_read() {
    let mistaken_time = "line 4: `time` must be like 2027-01-15T08:00:00Z, or seconds since 1970 like 1800000000.25";
    let text = "cost, time, subject\r\n\r\n1,1800000000,a\r\n,now,a\nmany,1800000000,a\n\n1,1800000000\n1,1800000000,a,b\n-1,1800000000,a\n\
                3,1800000000,\"open\n 4 , 2027-01-15T08:00:00+00:00 ,\"a,b\" \n,1800000000,a";
    let expected: [Result<u64, &str>; 9] = [
        Ok(1),
        Err(mistaken_time),
        Err("line 5: `cost` must be a whole number, like 3"),
        Err("line 7: fields: 2 found, 3 named in the header; give each column a field"),
        Err("line 8: fields: 4 found, 3 named in the header; give each column a field"),
        Err("line 9: `cost` must be a whole number, like 3"),
        Err("line 10: a quote is open at its end; close it, as each call is one line"),
        Ok(4),
        Ok(1),
    ];
    assert_eq!(read(text), expected.map(|line| line.map_err(str::to_owned)));
}

#[test]
fn a_line_that_is_not_text_is_left_out_like_any_mistake() {
    let text = b"time,subject\n1800000000,\xff\n1800000000,a\n";
    let mut calls = CsvTrace::new(&text[..]).unwrap();
    assert_eq!(calls.next().unwrap().unwrap_err().to_string(), "line 2: it is not UTF-8; convert the text");
    assert_eq!(calls.next().unwrap().unwrap().line(), Some(3));
    assert!(calls.next().is_none());
}

#[test]
fn a_header_names_columns_that_are_known() {
    let known = "the columns are `time`, `subject`, `cost`, `pause` and `subject:label`";
    assert_eq!(header_mistake(""), "the text is empty; name the columns in its first line, like `time,subject`");
    assert_eq!(header_mistake("time,user"), format!("line 1: column `user` is unknown; {known}"));
    assert_eq!(header_mistake("\nsubject\n"), format!("line 2: column `time` is missing; {known}"));
    assert_eq!(header_mistake("time,cost,cost"), "line 1: column `cost` is there twice; remove one");
    assert!(CsvTrace::new("\u{feff}time\n".as_bytes()).is_ok());
}

#[test]
fn a_reader_that_fails_ends_the_trace() {
    struct Failing;

    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }

    let mut calls = CsvTrace::new("time\n1800000000\n".as_bytes().chain(Failing)).unwrap();
    assert!(calls.next().unwrap().is_ok());
    let mistake = calls.next().unwrap().unwrap_err();
    assert_eq!((mistake.kind(), mistake.line()), (TraceErrorKind::Read, Some(3)));
    assert!(mistake.to_string().contains("the disk is gone") && std::error::Error::source(&mistake).is_some());
    assert!(calls.next().is_none());
}

#[test]
fn the_caller_chooses_to_stop_at_a_mistake_or_to_go_on() {
    let text = "time\n1800000060\nnoon\n1800000000\n1800000061\n";
    let trace = || CsvTrace::new(text.as_bytes()).unwrap();
    let policy = policy([Rule::sliding_window(1, MINUTE)]);

    let mut simulation = Simulation::new(&policy);
    assert_eq!(simulation.run(trace(), Err).unwrap_err().line(), Some(3));
    assert_eq!(simulation.summary().calls(), 1);

    let mut places = Vec::new();
    let mut comparison = Comparison::new(&policy, &policy);
    let note = |mistake: TraceError| {
        places.push((mistake.line(), mistake.call()));
        Ok(())
    };
    comparison.run(trace(), note).unwrap();
    assert_eq!(places, [(Some(3), None), (Some(4), Some(2))]);
    assert_eq!((comparison.before().calls(), comparison.differences()), (2, 0));
}

#[test]
fn a_comparison_tells_which_calls_are_decided_differently_and_by_which_rule() {
    let before = policy([Rule::sliding_window(1, Duration::from_secs(10)), Rule::sliding_window(3, MINUTE)]);
    let after = policy([Rule::fixed_window(2, MINUTE)]);
    let mut comparison = Comparison::new(&before, &after);
    comparison.run([0, 1, 10, 20, 21, 60, 61, 62].map(call).map(Ok), Err).unwrap();
    assert_eq!((comparison.before().admitted(), comparison.after().admitted()), (4, 4));
    assert_eq!(comparison.differences(), 4);
    let (denied, admitted) = (comparison.newly_denied(), comparison.newly_admitted());
    assert_eq!((denied.total(), denied.by_rule(0)), (2, 2));
    assert_eq!((admitted.total(), admitted.by_rule(0), admitted.by_rule(1)), (2, 2, 0));
    assert_eq!(
        comparison.to_string(),
        "8 calls: 4 decided alike, 2 newly denied (2 by `2 per fixed 1m`), \
         2 newly admitted (2 denied before by `1 per 10s`)"
    );
}

#[test]
fn a_call_that_one_of_two_policies_cannot_decide_changes_neither() {
    let plain = policy([Rule::sliding_window(1, MINUTE)]);
    let labelled = Policy::builder("trace").rule_on("network", Rule::sliding_window(1, MINUTE)).build().unwrap();
    let mut comparison = Comparison::new(&plain, &labelled);
    assert_eq!(comparison.call(&call(0)).unwrap_err().kind(), TraceErrorKind::Subject);
    assert_eq!((comparison.before().calls(), comparison.after().calls()), (0, 0));
    assert!(Simulation::new(&plain).call(&call(0)).unwrap().is_allowed());
}

#[test]
fn calls_that_are_taken_ahead_are_decided_by_wider_windows_and_smaller_buckets() {
    let (second, ahead) = (Duration::from_secs(1), Duration::from_millis(100));
    let wider = second + ahead;
    let bucket = Rule::from_bucket(100, TokenBucket::new(second).with_capacity(90));
    for (rule, decided_as) in [
        (Rule::sliding_window(100, second), Rule::sliding_window(100, wider)),
        (Rule::sliding_counter(100, second), Rule::sliding_counter(100, wider)),
        (Rule::fixed_window(100, second), Rule::fixed_window(100, second)),
        (Rule::token_bucket(100, second), bucket),
    ] {
        let taken_ahead = policy([rule.clone()]).to_builder().prefetch(ahead).build().unwrap();
        let mut comparison = Comparison::new(&policy([decided_as]), &taken_ahead);
        let mut random = Rng::with_seed(11);
        let mut now = at(0);
        for _ in 0..10_000 {
            now += Duration::from_millis(random.u64(0..8));
            let (expected, decided) = comparison.call(&TraceCall::new(now, Subject::everyone())).unwrap();
            let wait = |decision: Decision| decision.into_result().err().map(|denial| denial.retry_after());
            assert_eq!(wait(decided), wait(expected), "{rule}");
        }
        // It is reported as the policy says it.
        let denials = comparison.after().denials();
        assert_eq!(denials.rules().collect::<Vec<_>>(), [(&rule, denials.total())]);
        assert!(denials.total() > 1_000, "{rule}");
    }
}

#[test]
fn a_subject_at_its_limit_pays_the_exact_price_of_calls_that_are_taken_ahead() {
    let before = policy([Rule::sliding_window(100, Duration::from_secs(1))]);
    let after = before.to_builder().prefetch(Duration::from_millis(100)).build().unwrap();
    let mut comparison = Comparison::new(&before, &after);
    let calls = (0..11_000).map(|ms| TraceCall::new(at(0) + Duration::from_millis(ms), Subject::everyone()));
    comparison.run(calls.map(Ok), Err).unwrap();
    assert_eq!((comparison.before().admitted(), comparison.after().admitted()), (1_100, 1_000));
}
