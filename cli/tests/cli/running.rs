//! A policy that limits concurrent calls.

use std::time::Duration;

use tallygate::{Permit, Policy, Rule, Subject};
use tallygate_harness::until::until_found;

use crate::console::Console;
use crate::seeded::{HOUR, Seeded, limiter, listed};

/// Begins a call of `acme`, which is running until the permit is dropped. Its policy is that of the documentation.
pub(crate) async fn begin(seeded: &Seeded, lease: Duration) -> Permit {
    let fleet = limiter(seeded.console().url, "tallygate").await;
    let export = Policy::builder("export").key("{customer}").rule(Rule::concurrency(2, lease)).build().unwrap();
    let permit = fleet.check(&export, &Subject::of("acme")).await.unwrap().into_result().unwrap();
    listed(&fleet, 3).await;
    permit
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peek_tells_how_many_calls_are_running() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let one = begin(&seeded, HOUR).await;
    let admitted = console.run("peek export acme").expect(0);
    let row = "0   2 concurrent lease 1h   1 of 2 concurrent   leases end in ";
    assert!(admitted.out.starts_with(&format!("admitted\n{row}")), "{admitted:?}");
    let _other = begin(&seeded, HOUR).await;
    let denied = console.run("peek export acme").expect(1);
    let row = row.replace("1 of", "2 of");
    assert!(denied.out.starts_with(&format!("denied by rule 0 until a call is over\n{row}")), "{denied:?}");
    let json = console.run("peek export acme --json").expect(1).json();
    assert_eq!(json["denied"]["kind"], "concurrency");
    assert!((1..=3_600_000).contains(&json["denied"]["retry_after_ms"].as_u64().unwrap()), "{json}");
    let rule = &json["rules"][0];
    assert_eq!((&rule["limit"], &rule["concurrent"], &rule["remaining"]), (&2.into(), &2.into(), &0.into()));
    drop(one);
    until_found("the call is over", async || console.run("peek export acme").code == 0).await;
    let unused = console.run("peek export other").expect(0);
    assert_eq!(unused.out, "admitted\n0   2 concurrent lease 1h   0 of 2 concurrent   unused\n");
    assert!(console.run("peek login alice --json").expect(0).json()["rules"][0]["concurrent"].is_null());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_subjects_with_most_concurrent_calls_come_first() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let one = begin(&seeded, HOUR).await;
    let printed = console.run("top export").expect(0);
    assert_eq!(printed.out, "acme   50 %   1 of 2 concurrent\n1 of 1 subject\n");
    let _other = begin(&seeded, HOUR).await;
    for by in ["used", "wait"] {
        let printed = console.run(&format!("top export --by {by}")).expect(0);
        let row = "acme   100 %   2 of 2 concurrent   denied until a call is over\n1 of 1 subject\n";
        assert_eq!(printed.out, row);
    }
    let json = console.run("top export --json").expect(0).json();
    let rule = &json["top"][0]["rules"][0];
    assert_eq!((&rule["used"], &rule["limit"], &rule["rule"]), (&2.into(), &2.into(), &"2 concurrent lease 1h".into()));
    drop(one);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_on_concurrent_calls_are_overridden_and_reset() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let permits = [begin(&seeded, HOUR).await, begin(&seeded, HOUR).await];
    let words = ["override", "export", "10 concurrent lease 1h", "--yes"];
    assert_eq!(console.run_words(&words).expect(0).out, "export is overridden: 10 concurrent lease 1h\n");
    let printed = console.run("peek export acme").expect(0);
    assert!(printed.out.contains("0   10 concurrent lease 1h   2 of 10 concurrent"), "{printed:?}");
    assert!(printed.out.ends_with("override: 10 concurrent lease 1h\n"), "{printed:?}");
    let json = console.run("policies --json").expect(0).json();
    assert_eq!(json["policies"][0]["rules"][0]["rule"], "2 concurrent lease 1h");
    assert_eq!(json["policies"][0]["overrides"][0]["rules"][0]["rule"], "10 concurrent lease 1h");
    let refused = console.run_words(&["override", "export", "10 concurrent lease 3ms", "--yes"]).expect(2);
    assert!(refused.errors.contains("`lease`"), "{refused:?}");
    console.run("override export --clear --yes").expect(0);
    console.run("peek export acme").expect(1);
    console.run("reset export acme --yes").expect(0);
    let printed = console.run("peek export acme").expect(0);
    assert!(printed.out.contains("0 of 2 concurrent"), "{printed:?}");
    drop(permits);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_that_only_looks_sees_them_too() {
    let seeded = Seeded::start().await;
    let page = include_str!("../../../docs/cli.md");
    let (_, user) = page.split_once("redis-cli ACL SETUSER").unwrap();
    let user = user.split_once("```").unwrap().0.replace(['\\', '\''], "");
    seeded.server.ask::<()>(&format!("ACL SETUSER{user}"));
    let url = seeded.server.url().replace("://", "://watcher:password@");
    let console = Console { url: &url, ..seeded.console() };
    let _permits = [begin(&seeded, HOUR).await, begin(&seeded, HOUR).await];
    assert!(console.run("peek export acme").expect(1).out.contains("2 of 2 concurrent"));
    assert!(console.run("top export").expect(0).out.contains("2 of 2 concurrent"));
    assert!(console.run("top").expect(0).out.contains("3 of 3 subjects"));
    assert!(console.run("bans").expect(0).out.starts_with("nobody is banned"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_leases_need_is_missed_where_a_policy_takes_some() {
    let seeded = Seeded::start().await;
    let page = include_str!("../../../runtime/guide/production.md");
    let (_, user) = page.split_once("ACL SETUSER").unwrap();
    let user = user.split_once("```").unwrap().0.replace(['\\', '\''], "");
    seeded.server.ask::<()>(&format!("ACL SETUSER{user} -zadd"));
    let url = seeded.server.url().replace("://", "://tallygate:password@");
    let console = Console { url: &url, ..seeded.console() };
    let printed = console.run("doctor").expect(0);
    assert!(printed.out.contains("which no listed policy has, also need zadd"), "{printed:?}");
    let _permit = begin(&seeded, HOUR).await;
    let printed = console.run("doctor").expect(1);
    assert!(printed.out.contains("may not send zadd, so calls of policies that limit concurrent calls"), "{printed:?}");
    // The keys of leases are the library's own, also to a user who may look for them.
    let printed = seeded.console().run("doctor --json").expect(0);
    assert!(!printed.out.contains("not of this library"), "{printed:?}");
    assert_eq!(seeded.server.ask::<u64>("EXISTS tallygate:export/leases:acme"), 1);
}
