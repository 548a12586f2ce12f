//! Answers that are streamed: what they count as, and when.

use serde_json::json;
use tallygate_harness::server::Server as Redis;

use super::{LONG, admitted, ask, ask_next, error, field, read, start};

#[tokio::test]
async fn an_answer_reserves_its_longest_form_and_counts_as_the_tokens_that_it_has_used() {
    let redis = Redis::start();
    for url in ["memory://", &redis.url()] {
        let gateway = start(url);
        let answer = ask(&gateway, "alice", 4, 5_000).await;
        assert_eq!([field(&answer, "limit-requests"), field(&answer, "remaining-requests")], [3, 2]);
        assert_eq!([field(&answer, "limit-tokens"), field(&answer, "remaining-tokens")], [10_000, 4_996]);
        assert_eq!(
            [&answer.headers()["x-ratelimit-reset-requests"], &answer.headers()["x-ratelimit-reset-tokens"]],
            ["1m0s"; 2]
        );
        assert_eq!(read(answer).await, 4);

        let next = ask_next(&gateway, "alice", 1, 9_900).await;
        assert_eq!(field(&next, "remaining-tokens"), 10_000 - 8 - 9_901);
        assert_eq!(read(next).await, 1);
    }
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_its_place_and_pays_for_what_was_written_until_then() {
    let redis = Redis::start();
    for url in ["memory://", &redis.url()] {
        let gateway = start(url);
        let mut first = admitted(ask(&gateway, "dave", LONG, 10_000).await);
        let _others =
            [ask(&gateway, "dave", LONG, 10_000).await, ask(&gateway, "dave", LONG, 10_000).await].map(admitted);
        let fourth = error(ask(&gateway, "dave", 1, 1).await, 429).await;
        assert_eq!(
            (&fourth["type"], &fourth["message"]),
            (&json!("requests"), &json!("wait until one of your answers has ended"))
        );
        assert!(first.chunk().await.unwrap().is_some_and(|chunk| chunk.starts_with(b"data: {")));

        drop(first);
        // As long as all of it is reserved, 15,000 are left.
        let next = ask_next(&gateway, "dave", 1, 20_000).await;
        let used = 60_000 - 2 * 15_000 - 20_001 - field(&next, "remaining-tokens");
        assert!((5_001..10_000).contains(&used), "{used}");
    }
}
