//! Distinct arguments never share a tally, whatever is in them.

use std::collections::{HashMap, HashSet};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use tallygate::{Limiter, Policy, Rule, Subject};
use tallygate_harness::cluster::Cluster;
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

/// The keys of one call under a policy with units and a concurrency limit, the shortest first.
async fn keys_with_units(subject: impl Fn(&Limiter) -> Subject) -> Vec<String> {
    let server = Server::start();
    let limiter = server.limiter().await;
    let hour = Duration::from_secs(3_600);
    let builder = Policy::builder("chat").rule(Rule::sliding_window(5, hour)).rule(Rule::concurrency(5, hour));
    let policy = builder.rule(Rule::sliding_window(500, hour).counting("tokens")).build().unwrap();
    let check = limiter.check(&policy, &subject(&limiter)).cost_of("tokens", 7).await.unwrap();
    let mut keys: Vec<String> = ask(&mut server.connection(), "KEYS *");
    drop(check);
    keys.retain(|key| key.contains(":chat"));
    keys.sort_by_key(String::len);
    keys
}

#[tokio::test]
async fn units_and_leases_of_a_subject_lie_in_the_slot_of_its_calls() {
    let long = "x".repeat(300);
    let plain = ["alice", "", "a:b", "{}", "{a}b{c}", "é{é}", &long];
    for value in plain {
        let calls = format!("tallygate:chat/w1h:{}", Subject::of(value));
        let keys = keys_with_units(|_| Subject::of(value)).await;
        let leases = format!("tallygate:chat/leases:{{{calls}}}");
        let tokens = format!("tallygate:chat=7d27cf62/w1h:{{{calls}}}");
        assert_eq!(keys, [calls, leases, tokens], "{value}");
        assert!(!keys[0].contains('{'), "the tally of calls keeps its key");
    }
}

/// Returns the keys of calls that are taken ahead, the shortest first.
async fn keys_ahead(units: Option<Rule>, calls: &str) -> Vec<String> {
    let server = Server::start();
    let limiter = server.limiter().await;
    let minute = Duration::from_secs(60);
    let builder = Policy::builder("busy").rule(Rule::sliding_window(600, minute)).rules(units);
    let policy = builder.prefetch(Duration::from_millis(100)).build().unwrap();
    let alice = Subject::of("alice");
    let check = async || {
        let check = limiter.check(&policy, &alice);
        let check = policy.units().fold(check, |check, unit| check.cost_of(unit, 7));
        assert!(check.await.unwrap().is_allowed());
    };
    check().await;
    if !calls.is_empty() {
        limiter.override_policy("busy").text(calls).set().await.unwrap();
        check().await;
    }
    let mut keys: Vec<String> = ask(&mut server.connection(), "KEYS *:busy*");
    keys.sort_by_key(String::len);
    keys
}

#[tokio::test]
async fn calls_that_are_taken_ahead_keep_their_key_when_a_unit_is_added() {
    let calls = keys_ahead(None, "").await;
    let tokens = Rule::sliding_window(60_000, Duration::from_secs(60)).counting("tokens");
    let beside = keys_ahead(Some(tokens.clone()), "").await;
    assert_eq!((calls.len(), beside.len()), (1, 2));
    assert_eq!(beside[0], calls[0]);
    assert!(beside[1].ends_with(&format!(":{{{}}}", calls[0])), "tokens lie in the slot of calls: {beside:?}");
    // Whatever windows an override gives the calls, all keys stay in that slot.
    let overridden = keys_ahead(Some(tokens), "600 per 30s").await;
    assert!(overridden.len() == 3 && beside.iter().all(|key| overridden.contains(key)), "{overridden:?}");
    assert!(overridden[1..].iter().all(|key| key.ends_with(&format!(":{{{}}}", calls[0]))), "{overridden:?}");
}

#[tokio::test]
async fn a_subject_with_a_hash_tag_gets_no_other() {
    // By the specification of the cluster, the first pair of braces counts, if there is text between them.
    for (text, has_tag) in [("{a}b{c}", true), ("x{org}", true), ("{a", false)] {
        let keys = keys_with_units(|limiter| limiter.subject().text(text).build()).await;
        let calls = format!("tallygate:chat/w1h:{text}");
        let beside = if has_tag { text.to_owned() } else { format!("{{{calls}}}") };
        let leases = format!("tallygate:chat/leases:{beside}");
        assert_eq!(keys, [calls, leases, format!("tallygate:chat=7d27cf62/w1h:{beside}")], "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subject_with_braces_that_are_no_tag_has_its_units_in_the_slot_of_its_calls() {
    let cluster = Cluster::shared();
    let cut = format!("{{{}}}", "a".repeat(120));
    for text in ["{}", "a}b", "}{", "{}{a}", "}", &cut] {
        let keys = keys_with_units(|limiter| limiter.subject().text(text).build()).await;
        let slots: HashSet<_> = keys.iter().map(|key| cluster.slot_of(key)).collect();
        assert_eq!((keys.len(), slots.len()), (3, 1), "{keys:?}");
        let subject = keys[0].strip_prefix("tallygate:chat/w1h:").unwrap();
        assert!(text == cut || keys.iter().all(|key| key.ends_with(text)), "{subject}");
    }
}
