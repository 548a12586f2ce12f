//! The list where there are several servers.

use std::collections::BTreeSet;

use tallygate::Subject;
use tallygate_harness::cluster::Cluster;
use tallygate_harness::sentinels::Sentinels;
use tallygate_harness::server::{connected, patient};

use super::{call, hourly, until_listed};

#[tokio::test(flavor = "multi_thread")]
async fn in_a_cluster_policies_are_listed_and_tallies_found_on_every_master() {
    let cluster = Cluster::shared();
    let builder = patient().registry(true).prefix("listing");
    let limiter = connected(&builder, &cluster.url()).await;
    let policy = hourly("spread", 5);
    let subjects: BTreeSet<_> = (0..300).map(|number| Subject::of("user").and(number).to_string()).collect();
    for subject in &subjects {
        let subject = Subject::from_rendered(subject).unwrap();
        assert!(limiter.check(&policy, &subject).await.unwrap().is_allowed());
    }
    let listed = until_listed(&limiter, "spread", |_| true).await;
    let mut tallies = limiter.tallies(&listed.policy().unwrap(), None).unwrap();
    let (mut found, mut progress) = (Vec::new(), 0.0);
    while let Some(page) = tallies.next_page().await.unwrap() {
        found.extend(page.subjects().iter().map(ToString::to_string));
        assert!(page.progress() >= progress && page.progress() <= 1.0, "{} after {progress}", page.progress());
        progress = page.progress();
    }
    assert!(progress >= 1.0, "{progress}");
    assert_eq!((found.len(), found.into_iter().collect::<BTreeSet<_>>()), (300, subjects));
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_sentinels_policies_are_listed_at_the_primary() {
    let servers = Sentinels::shared();
    let limiter = connected(&patient().registry(true).prefix("listing"), &servers.url()).await;
    assert!(call(&limiter, &hourly("replicated", 5)).await);
    until_listed(&limiter, "replicated", |_| true).await;
    assert_eq!(servers.primary().ask::<usize>("HLEN listing:!policies"), 1);
}
