//! What refunds, denials towards a ban and bans write in Redis, how long that lives, and what they leave as it was.

use std::sync::LazyLock;
use std::time::Duration;

use tallygate::{Ban, Check, Decision, Limiter, Permit, Policy, RejectionKind, Rule, Subject};
use tallygate_harness::clocked::{Clocked, START_US};
use tallygate_harness::server::{Server, key_of};
use tallygate_harness::stored::Stored;
use tallygate_lua::{ASK_AGAIN, CELL_BYTES, CRON, PROTOCOL, REFUND, at_callers_time};

const MINUTE: Duration = Duration::from_secs(60);
const BAN: Ban = Ban::new(3, Duration::from_secs(120), Duration::from_secs(600));

/// Policies that ban after three denials: of a log, of a cell, and of both.
fn policies() -> [Policy; 3] {
    let (log, cell) = (Rule::sliding_window(1, MINUTE), Rule::fixed_window(1, Duration::from_secs(90)));
    [vec![log.clone()], vec![cell.clone()], vec![log, cell]]
        .map(|rules| Policy::builder("p").rules(rules).ban(BAN).build().unwrap())
}

fn check<'a>(limiter: &'a Limiter, policy: &'a Policy) -> Check<'a> {
    static SUBJECT: LazyLock<Subject> = LazyLock::new(|| Subject::of("s"));
    limiter.check(policy, &SUBJECT)
}

async fn permit(limiter: &Limiter, policy: &Policy) -> Permit {
    check(limiter, policy).refundable().await.unwrap().into_result().unwrap()
}

async fn denied(limiter: &Limiter, policy: &Policy) -> RejectionKind {
    match check(limiter, policy).await.unwrap() {
        Decision::Denied(denial) => denial.kind(),
        allowed @ Decision::Allowed(_) => panic!("{allowed:?}"),
    }
}

/// Checks that a tally lives for that long, and at most twice as long; for more than an hour, an eighth longer.
fn assert_lives(stored: &mut Stored, needed: Duration) {
    let left = Duration::from_millis(u64::try_from(stored.ttl_ms()).unwrap());
    // The test itself takes some time.
    let most = if needed <= Duration::from_secs(3_600) { 2 * needed } else { needed * 9 / 8 };
    assert!(left + Duration::from_secs(5) > needed && left <= most, "{left:?} for {needed:?}");
}

#[tokio::test]
async fn denials_and_bans_live_as_long_as_they_count() {
    let clocked = Clocked::start();
    let limiter = clocked.limiter().await;
    for policy in policies() {
        let mut stored = Stored::on(clocked.server(), "p", "s");
        let _permit = permit(&limiter, &policy).await;
        assert_lives(&mut stored, BAN.duration());
        for _ in 0..3 {
            stored.persist();
            assert_eq!(denied(&limiter, &policy).await, RejectionKind::Limited);
            assert_lives(&mut stored, BAN.duration());
        }
        stored.persist();
        let digest = stored.digest();
        assert_eq!(denied(&limiter, &policy).await, RejectionKind::Banned);
        assert_eq!((stored.digest(), stored.ttl_ms()), (digest, -1), "a banned call writes nothing");
        check(&limiter, &policy).ban(10 * BAN.duration()).await.unwrap();
        assert_lives(&mut stored, 10 * BAN.duration());
        check(&limiter, &policy).ban(MINUTE).await.unwrap();
        assert_lives(&mut stored, 10 * BAN.duration());
        clocked.server().ask::<()>("FLUSHALL");
        check(&limiter, &policy).ban(10 * BAN.duration()).await.unwrap();
        assert_lives(&mut stored, 10 * BAN.duration());
        check(&limiter, &policy).unban().await.unwrap();
        check(&limiter, &policy).reset().await.unwrap();
        check(&limiter, &policy).unban().await.unwrap();
        assert_eq!(clocked.server().ask::<u64>("DBSIZE"), 0, "ending a ban creates no tally");
    }
}

#[tokio::test]
async fn a_refund_leaves_the_ttl_as_it_was() {
    let clocked = Clocked::start();
    let limiter = clocked.limiter().await;
    for policy in policies() {
        let mut stored = Stored::on(clocked.server(), "p", "s");
        let permit = permit(&limiter, &policy).await;
        let (bytes, ttl_ms) = (stored.bytes(), stored.ttl_ms());
        assert!(permit.refund().await.unwrap());
        assert!(stored.bytes() != bytes && (1..=ttl_ms).contains(&stored.ttl_ms()));
        assert!(check(&limiter, &policy).await.unwrap().is_allowed());
        clocked.server().ask::<()>("FLUSHALL");
    }
}

#[tokio::test]
async fn a_server_out_of_memory_counts_no_denial_refunds_nothing_and_bans_no_subject() {
    let clocked = Clocked::start();
    let (limiter, server) = (clocked.limiter().await, clocked.server());
    for policy in policies() {
        let mut stored = Stored::on(server, "p", "s");
        let permit = permit(&limiter, &policy).await;
        assert_eq!(denied(&limiter, &policy).await, RejectionKind::Limited);
        let before = stored.digest();
        server.ask::<()>("CONFIG SET maxmemory 1");
        let refused = [
            check(&limiter, &policy).await.map(drop),
            permit.refund().await.map(drop),
            check(&limiter, &policy).ban(MINUTE).await,
        ];
        assert!(refused.iter().all(|refused| refused.as_ref().unwrap_err().to_string().contains("OOM")), "{refused:?}");
        assert_eq!((stored.digest(), server.ask::<u64>("DBSIZE")), (before, 1), "{policy:?}");
        server.ask::<()>("CONFIG SET maxmemory 0");
        assert_eq!(denied(&limiter, &policy).await, RejectionKind::Limited);
        server.ask::<()>("FLUSHALL");
    }
}

/// One rule on the main subject and one on a network, and a ban.
fn several() -> Policy {
    let builder = Policy::builder("p").rule(Rule::sliding_window(9, MINUTE));
    builder.rule_on("network", Rule::fixed_window(1, MINUTE)).ban(BAN).build().unwrap()
}

#[tokio::test]
async fn a_denial_by_another_subject_is_written_to_the_main_ones_tally_alone() {
    let server = Server::start();
    let (limiter, policy, network) = (server.limiter().await, several(), Subject::of("net"));
    let call = async || check(&limiter, &policy).subject("network", &network).await.unwrap().is_allowed();
    assert!(call().await);
    let (mut main, mut other) = (Stored::on(&server, "p", "s"), Stored::on(&server, "p=*", "net"));
    other.persist();
    let (of_main, of_other) = (main.digest(), other.digest());
    assert!(!call().await);
    assert!(main.digest() != of_main);
    assert_eq!((other.digest(), other.ttl_ms()), (of_other, -1));
}

#[tokio::test]
async fn several_subjects_are_charged_together_or_not_at_all_when_memory_is_out() {
    let server = Server::start();
    let (limiter, policy) = (server.limiter().await, several());
    let call = async || check(&limiter, &policy).subject("network", &Subject::of("net")).await;
    // The server knows the script.
    assert!(call().await.unwrap().is_allowed());
    server.ask::<()>("FLUSHALL");
    server.ask::<()>("CONFIG SET maxmemory 1");
    assert!(call().await.unwrap_err().to_string().contains("OOM"));
    assert_eq!(server.ask::<u64>("DBSIZE"), 0);
    server.ask::<()>("CONFIG SET maxmemory 0");
    assert!(call().await.unwrap().is_allowed());
}

#[tokio::test]
async fn a_refund_with_a_tally_that_cannot_be_read_removes_nothing_from_the_other() {
    let server = Server::start();
    let (limiter, policy) = (server.limiter().await, several());
    let check = || check(&limiter, &policy).subject("network", &Subject::of("net")).refundable();
    let permit = check().await.unwrap().into_result().unwrap();
    let key = key_of(&mut server.connection(), "p=*", "net");
    let digest = Stored::on(&server, "p", "s").digest();
    server.ask::<()>(&format!("DEL {key}"));
    server.ask::<()>(&format!("LPUSH {key} foreign"));
    assert!(permit.refund().await.unwrap_err().to_string().contains("WRONGTYPE"));
    assert_eq!(Stored::on(&server, "p", "s").digest(), digest);
}

#[tokio::test]
async fn neither_a_refund_nor_a_ban_touches_what_is_no_tally() {
    let server = Server::start();
    let limiter = server.limiter().await;
    for policy in policies() {
        for foreign in ["12345678", "1234567"] {
            let permit = permit(&limiter, &policy).await;
            let key = key_of(&mut server.connection(), "p", "s");
            server.ask::<()>(&format!("SET {key} {foreign}"));
            assert!(!permit.refund().await.unwrap());
            let refused = check(&limiter, &policy).ban(MINUTE).await.unwrap_err();
            assert!(refused.to_string().contains("no tally"), "{refused}");
            assert_eq!(server.ask::<String>(&format!("GET {key}")), foreign);
            server.ask::<()>("FLUSHALL");
        }
    }
}

/// Seven bytes, big endian.
fn integer(number: u64) -> [u8; 7] {
    *number.to_be_bytes().last_chunk().unwrap()
}

/// Packs a request of one scheduled rule with these ticks, as the script's header says.
fn scheduled(ticks: &[u64]) -> Vec<u8> {
    let numbers = [5, ticks.len() as u64];
    let head = [&[1, 0][..], &integer(2), &[1, 0, 1, 0, 0], &integer(0), &integer(0), &[0, 3], b"-21\0", b"60000\0"];
    let rule = numbers.iter().chain(ticks).flat_map(|&number| integer(number));
    head.concat().into_iter().chain([CRON]).chain(rule).collect()
}

#[tokio::test]
async fn a_refund_with_stale_ticks_removes_nothing_and_says_so() {
    let server = Server::start();
    let cell = [START_US, 4, 0].map(integer).concat();
    assert_eq!(cell.len(), CELL_BYTES);
    redis::cmd("SET").arg("k").arg(&cell).exec(&mut server.connection()).unwrap();
    let second = 1_000_000;
    let refund = |ticks: &[u64]| {
        let mut command = redis::cmd("EVAL");
        command.arg(at_callers_time(REFUND)).arg(1).arg("k").arg(PROTOCOL).arg(scheduled(ticks)).arg(START_US).arg(0);
        let reply: Vec<u8> = command.arg(START_US).query(&mut server.connection()).unwrap();
        (reply, server.ask::<Vec<u8>>("GET k"))
    };
    let replied = |code: i64| [START_US, code.cast_unsigned()].map(integer).concat();
    for ticks in [[START_US + second, START_US + 2 * second], [START_US - 2 * second, START_US - second]] {
        assert_eq!(refund(&ticks), (replied(ASK_AGAIN), cell.clone()));
    }
    let refunded = [START_US, 2, 0].map(integer).concat();
    assert_eq!(refund(&[START_US - second, START_US + second]), (replied(1), refunded));
}
