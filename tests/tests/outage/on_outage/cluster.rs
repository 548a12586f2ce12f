//! In a cluster, the outage of a node concerns its slots alone.

use std::collections::HashSet;

use tallygate::{DecidedBy, Limiter, OnOutage, Subject};
use tallygate_harness::cluster::Cluster;
use tallygate_harness::server::connected;

use super::{builder, hourly, patient, policy};

const SUBJECTS: u64 = 30;

/// The subjects whose calls this process decides.
async fn by_standby(limiter: &Limiter) -> HashSet<u64> {
    let policy = policy(hourly(1_000_000));
    let mut found = HashSet::new();
    for subject in 0..SUBJECTS {
        let decision = limiter.check(&policy, &Subject::of(subject)).await.unwrap();
        assert!(decision.is_allowed());
        if decision.decided_by() == DecidedBy::Standby {
            found.insert(subject);
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_subjects_of_a_node_that_is_away_are_decided_by_this_process() {
    let mut cluster = Cluster::start();
    for master in cluster.masters() {
        master.ask::<()>("CONFIG SET cluster-require-full-coverage no");
    }
    let limiter = connected(&patient().on_outage(OnOutage::Local), &cluster.url()).await;
    assert!(by_standby(&limiter).await.is_empty());
    cluster.masters_mut()[1].kill();
    let lost = by_standby(&limiter).await;
    assert!(lost.len() > 3 && lost.len() < 20, "{lost:?}");
    assert_eq!(by_standby(&limiter).await, lost);
    // A call of several subjects, one of which is lost, is decided by this process as a whole. Its slot is that of the name
    // of the policy, too.
    let several = builder(hourly(1_000_000)).rule_on("other", hourly(1)).build().unwrap();
    let lost = Subject::of(lost.iter().next().unwrap());
    for is_allowed in [true, false] {
        let decision = limiter.check(&several, &lost).subject("other", &Subject::of("other")).await.unwrap();
        assert_eq!((decision.is_allowed(), decision.decided_by()), (is_allowed, DecidedBy::Standby));
    }
}
