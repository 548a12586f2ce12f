//! A change of the overrides, which also removes some that have expired.

use std::time::Duration;

use tallygate::{Limiter, Rule, Subject};
use tokio::time::sleep;

use crate::server::Server;

/// As many as one change removes.
const EXPIRED: u64 = 250;

const HOLDS: Duration = Duration::from_secs(2);

/// Makes the change that is measured.
pub(super) async fn run(server: &Server, limiter: &Limiter) {
    for number in 0..EXPIRED {
        set(limiter, number, HOLDS).await;
    }
    sleep(HOLDS).await;
    server.forget_logged_commands();
    set(limiter, EXPIRED, HOLDS).await;
}

async fn set(limiter: &Limiter, number: u64, holds: Duration) {
    let rule = Rule::sliding_window(1 + number, Duration::from_secs(60));
    let change = limiter.override_policy("bench.bounds").subject(&Subject::of(number)).rules([rule]);
    change.expires_in(holds).allow_unknown().set().await.expect("the server stores it");
}
