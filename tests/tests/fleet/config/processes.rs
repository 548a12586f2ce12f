//! Several processes, and processes without Redis.

use tallygate::{DecidedBy, OnOutage, Policy, Rule};
use tallygate_harness::log::Log;
use tallygate_harness::server::{Server, away};

use super::{HOUR, apply, file, hourly, room, subject};

#[tokio::test]
async fn a_file_sets_what_becomes_of_calls_while_redis_is_away() {
    let limiter = away(|builder| builder);
    let policy = Policy::builder("config.outage").rule(hourly(1)).on_outage(OnOutage::Deny).build().unwrap();
    let decide = async || limiter.check(&policy, &subject()).await;
    apply(&limiter, "[policy.'config.outage']\non_outage = 'allow'");
    for _ in 0..3 {
        let decision = decide().await.unwrap();
        assert!(decision.is_allowed() && decision.decided_by() == DecidedBy::Nobody, "{decision:?}");
    }
    apply(&limiter, "[policy.'config.outage']\non_outage = 'local'\nrules = ['2 per 1h']");
    for allowed in [true, true, false] {
        let decision = decide().await.unwrap();
        assert_eq!((decision.is_allowed(), decision.decided_by()), (allowed, DecidedBy::Standby));
    }
    apply(&limiter, "");
    assert!(decide().await.is_err());
}

#[tokio::test]
async fn a_file_sets_what_becomes_of_rules_in_shadow_while_redis_is_away() {
    let limiter = away(|builder| builder);
    let tried = Rule::fixed_window(1, HOUR).shadow();
    let policy = Policy::builder("config.tried").rule(hourly(9)).rule(tried).on_outage(OnOutage::Deny).build().unwrap();
    apply(&limiter, "[policy.'config.tried']\non_outage = 'local'");
    let (log, _listening) = Log::listen();
    let denied = || log.lines().iter().filter(|line| line.contains("denied in shadow")).count();
    for expected in [0, 1, 2] {
        let decision = limiter.check(&policy, &subject()).await.unwrap();
        assert_eq!((decision.is_allowed(), decision.decided_by()), (true, DecidedBy::Standby));
        assert_eq!(denied(), expected);
    }
    // Rules of the file have its settings, too.
    apply(&limiter, "[policy.'config.tried']\non_outage = 'local'\nrules = ['9 per 1h', '4 per fixed 1h shadow']");
    for expected in [2, 3] {
        assert!(limiter.check(&policy, &subject()).cost(2).await.unwrap().is_allowed());
        assert_eq!(denied(), expected, "one of four was used");
    }
    apply(&limiter, "[policy.'config.tried']\non_outage = 'allow'");
    let decision = limiter.check(&policy, &subject()).await.unwrap();
    assert_eq!((decision.decided_by(), denied()), (DecidedBy::Nobody, 3), "nobody tries it, either");
}

#[tokio::test]
async fn processes_with_different_files_share_their_tallies() {
    let server = Server::start();
    let [strict, generous] = [server.limiter().await, server.limiter().await];
    let policy = Policy::builder("config.shared").rule(hourly(1)).build().unwrap();
    apply(&strict, &file("config.shared", "'3 per 1h'"));
    apply(&generous, &file("config.shared", "'5 per 1h'"));
    assert_eq!(room(&strict, &policy).await, 3);
    assert_eq!(room(&generous, &policy).await, 2);
}
