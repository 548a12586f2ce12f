//! Several processes, and processes without Redis.

use tallygate::{DecidedBy, OnOutage, Policy};
use tallygate_harness::server::{Server, away};

use super::{apply, file, hourly, room, subject};

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
async fn processes_with_different_files_share_their_tallies() {
    let server = Server::start();
    let [strict, generous] = [server.limiter().await, server.limiter().await];
    let policy = Policy::builder("config.shared").rule(hourly(1)).build().unwrap();
    apply(&strict, &file("config.shared", "'3 per 1h'"));
    apply(&generous, &file("config.shared", "'5 per 1h'"));
    assert_eq!(room(&strict, &policy).await, 3);
    assert_eq!(room(&generous, &policy).await, 2);
}
