//! A count of zero closes the door, in Redis too.

use std::time::Duration;

use tallygate::{Limiter, Policy, Rule, Subject, TokenBucket};
use tallygate_tests::server::Server;

#[tokio::test(flavor = "multi_thread")]
async fn a_count_of_zero_closes_the_door_on_redis() {
    let server = Server::start();
    let limiter = Limiter::connect(&server.url()).await.unwrap();
    let minute = Duration::from_secs(60);
    let bucket = TokenBucket::new(1, minute).capacity(5).initial(3).reset_after(minute);
    let windows = [Rule::sliding_window(9, minute), Rule::sliding_counter(9, minute), Rule::fixed_window(9, minute)];
    for (index, rule) in windows.into_iter().chain([bucket.into_rule()]).enumerate() {
        let policy = Policy::builder(format!("closed{index}")).rule(rule).build().unwrap();
        for used in [false, true] {
            if used {
                assert!(limiter.check(&policy, &Subject::of("a")).await.unwrap().is_allowed());
            }
            let decision = limiter.check(&policy.with_counts([0]), &Subject::of("a")).report().await.unwrap();
            assert_eq!(decision.permit().unwrap_err().retry_after(), None, "rule {index}, used {used}");
        }
    }
}
