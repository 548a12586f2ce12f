//! Distinct arguments never share a tally, whatever is in them.

use std::collections::{HashMap, HashSet};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use tallygate::{Policy, Rule, Subject};
use tallygate_harness::server::{Server, ask};

const PAIRS: u64 = 1_000_000;

/// Whatever a careless rendering would mistake for something of its own, and digits of escapes to mistake it with.
const ADVERSARIAL: [&str; 24] = [
    "a", "A", "1", "2", "3", "5", "B", "D", "7", ":", "%", "!", "{", "}", "/", " ", "\0", "\r\n", "é", "e\u{301}",
    "汉", "\u{FEFF}", "-", "%3A",
];

fn value(random: &mut Rng) -> String {
    let pieces = match random.u8(0..100) {
        // Long ones differ from each other in few places, and end in a digest.
        0 => return format!("{}{}", "x".repeat(random.usize(60..140)), piece(random)),
        1 => random.usize(20..60),
        _ => random.usize(0..5),
    };
    (0..pieces).map(|_| piece(random)).collect()
}

fn piece(random: &mut Rng) -> &'static str {
    ADVERSARIAL[random.usize(..ADVERSARIAL.len())]
}

fn pair(seed: u64) -> (String, String) {
    let random = &mut Rng::with_seed(seed);
    (value(random), value(random))
}

fn rendered((one, another): &(String, String)) -> String {
    Subject::of(one).and(another).to_string()
}

mod in_memory {
    use super::*;

    #[test]
    fn a_million_random_pairs_never_share_a_key() {
        let halves = [0..PAIRS / 2, PAIRS / 2..PAIRS];
        let rendering =
            halves.map(|seeds| thread::spawn(|| seeds.map(|seed| (rendered(&pair(seed)), seed)).collect::<Vec<_>>()));
        let mut seen = HashMap::new();
        for (key, seed) in rendering.into_iter().flat_map(|half| half.join().unwrap()) {
            assert!(key.len() <= 100 && key.bytes().all(|byte| byte.is_ascii_graphic()), "{key}");
            if let Some(earlier) = seen.insert(key, seed) {
                assert_eq!(pair(earlier), pair(seed), "only equal pairs share a key");
            }
        }
        assert!(seen.len() > 500_000, "most pairs were distinct: {}", seen.len());
    }
}

#[test]
fn pairs_that_are_easily_confused_are_distinct() {
    let pairs = [
        [("a:b", "c"), ("a", "b:c")],
        [("", "a"), ("a", "")],
        [("", ":"), (":", "")],
        [("%3A", ""), (":", "")],
        [("a%", "3Ab"), ("a", "%3Ab")],
        [("é", "x"), ("e\u{301}", "x")],
        [("a", "b"), ("A", "b")],
        [("a ", "b"), ("a", " b")],
    ];
    for [(a, b), (c, d)] in pairs {
        assert_ne!(Subject::of(a).and(b), Subject::of(c).and(d), "{a:?}, {b:?} and {c:?}, {d:?}");
    }
    assert_ne!(Subject::everyone(), Subject::of("").and(""));
    assert_ne!(Subject::of("a").and(""), Subject::of("a"));
}

#[tokio::test]
async fn each_pair_has_a_key_of_its_own_in_redis() {
    let server = Server::start();
    let limiter = server.limiter().await;
    let policy = Policy::builder("of: all").rule(Rule::sliding_window(1, Duration::from_secs(3_600))).build().unwrap();
    let pairs: HashSet<_> = (0..2_000).map(pair).collect();
    for (one, another) in &pairs {
        let subject = Subject::of(one).and(another);
        assert!(limiter.check(&policy, &subject).await.unwrap().is_allowed(), "{one:?}, {another:?}");
    }
    let keys: Vec<Vec<u8>> = ask(&mut server.connection(), "KEYS *");
    assert_eq!(keys.len(), pairs.len());
    for key in keys {
        assert!(key.len() <= 200 && key.starts_with(b"tallygate:of%3A%20all/w1h:"));
        assert!(!key.contains(&b'{') && !key.contains(&b'}'), "no part of a key is a hash tag");
    }
}
