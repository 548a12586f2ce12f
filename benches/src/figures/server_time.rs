//! What a decision costs the server.

use std::sync::Arc;
use std::time::Duration;

use tallygate::Policy;

use super::{SORTED_SET, sliding};
use crate::duel::Duel;
use crate::figure::Figure;
use crate::load::{Caller, Checker, drive, round};
use crate::peer::{Gcra, SortedSet};
use crate::server::Server;

const ROUNDS: usize = 15;
const SUBJECTS: usize = 1_000;
const CALLS: usize = 10 * SUBJECTS;

/// Each has a connection of its own and makes one call at a time, so nothing is gathered: like so many processes.
const PROCESSES: usize = 32;

/// They share a connection, so what they ask for at once is gathered into one call of the script.
const TASKS: usize = 256;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

pub(crate) async fn figures(server: &Server) -> Vec<Figure> {
    vec![
        admitted(server).await.at_most(0.45),
        admitted_together(server).await,
        denied(server).await.at_most(0.9),
        denied_together(server).await,
        large_count_admitted(server).await.at_most(1.3),
        large_count_denied(server).await.at_most(1.3),
        one_rule(server).await,
    ]
}

fn two_short_rules() -> Policy {
    sliding("bench.admitted", &[(100, Duration::from_millis(600)), (200, Duration::from_millis(1_200))])
}

async fn admitted(server: &Server) -> Figure {
    let policy = two_short_rules();
    let (ours, peers) = (checkers(server, &policy).await, sorted_sets(server, &policy).await);
    stagger(server, &ours).await;
    let duel = compare(server, &ours, &peers, Expect::Admitted).await;
    Figure::ratio("server time of an admitted call, two rules", "µs", SORTED_SET, &duel)
}

async fn admitted_together(server: &Server) -> Figure {
    let policy = two_short_rules();
    let ours = vec![Checker::connect(&server.url(), &policy).await; TASKS];
    let peers = vec![SortedSet::load(server, &policy).await; TASKS];
    stagger(server, &ours).await;
    let duel = compare(server, &ours, &peers, Expect::Admitted).await;
    Figure::ratio("— the same, ours gathered from 256 tasks", "µs", SORTED_SET, &duel)
}

fn two_long_rules() -> Policy {
    sliding("bench.denied", &[(10, MINUTE), (20, 2 * MINUTE)])
}

async fn denied(server: &Server) -> Figure {
    let policy = two_long_rules();
    let (ours, peers) = (checkers(server, &policy).await, sorted_sets(server, &policy).await);
    server.clear();
    let duel = compare(server, &ours, &peers, Expect::Denied).await;
    Figure::ratio("server time, mostly denied, two rules", "µs", SORTED_SET, &duel)
}

async fn denied_together(server: &Server) -> Figure {
    let policy = two_long_rules();
    let ours = vec![Checker::connect(&server.url(), &policy).await; TASKS];
    let peers = vec![SortedSet::load(server, &policy).await; TASKS];
    server.clear();
    let duel = compare(server, &ours, &peers, Expect::Denied).await;
    Figure::ratio("— the same, ours gathered from 256 tasks", "µs", SORTED_SET, &duel)
}

/// Both half full, so that there is something to read.
async fn large_count_admitted(server: &Server) -> Figure {
    const FEW: usize = 50;
    let (large, small) = large_and_small(server).await;
    server.clear();
    fill(&large, 0..FEW, 50_000).await;
    let calls = round(CALLS, FEW);
    let mut fresh = 0;
    let duel = Duel::of(
        ROUNDS,
        async || server_us(server, &large, &calls, Expect::Admitted).await,
        async || {
            // There is room for five calls of a subject: four are measured, then others take their place.
            let subjects = fresh..fresh + CALLS / 4;
            fresh = subjects.end;
            fill(&small, subjects.clone(), 5).await;
            let calls: Vec<_> = (0..4).flat_map(|_| subjects.clone()).collect();
            server_us(server, &small, &calls.into(), Expect::Admitted).await
        },
    );
    Figure::ratio("server time at 100,000 per hour, admitted", "µs", "10 per minute", &duel.await)
}

async fn large_count_denied(server: &Server) -> Figure {
    const FEW: usize = 50;
    let (large, small) = large_and_small(server).await;
    server.clear();
    fill(&large, 0..FEW, 100_000).await;
    let (few, many) = (round(CALLS, FEW), round(CALLS, SUBJECTS));
    let duel = Duel::of(
        ROUNDS,
        async || server_us(server, &large, &few, Expect::Denied).await,
        async || {
            drive(&small, round(10 * SUBJECTS, SUBJECTS)).await;
            server_us(server, &small, &many, Expect::Denied).await
        },
    );
    Figure::ratio("server time at 100,000 per hour, denied", "µs", "10 per minute", &duel.await)
}

async fn large_and_small(server: &Server) -> (Vec<Checker>, Vec<Checker>) {
    let large = sliding("bench.large", &[(100_000, HOUR)]);
    let small = sliding("bench.small", &[(10, MINUTE)]);
    (checkers(server, &large).await, checkers(server, &small).await)
}

async fn one_rule(server: &Server) -> Figure {
    let policy = sliding("bench.one", &[(100, Duration::from_millis(600))]);
    let ours = checkers(server, &policy).await;
    let peers = vec![Gcra::load(server, &policy).await; PROCESSES];
    stagger(server, &ours).await;
    let duel = compare(server, &ours, &peers, Expect::Admitted).await;
    Figure::ratio("server time of an admitted call, one rule", "µs", "GCRA script (bursts twice)", &duel)
}

/// What the calls of a round come to, all but a few.
#[derive(Clone, Copy)]
enum Expect {
    Admitted,
    Denied,
}

async fn compare<P: Caller>(server: &Server, ours: &[Checker], peers: &[P], expect: Expect) -> Duel {
    let calls = round(CALLS, SUBJECTS);
    let duel = Duel::of(
        ROUNDS,
        async || server_us(server, ours, &calls, expect).await,
        async || server_us(server, peers, &calls, expect).await,
    );
    duel.await
}

/// Returns the microseconds that the server spends on one of these calls.
async fn server_us<C: Caller>(server: &Server, callers: &[C], subjects: &Arc<[usize]>, expect: Expect) -> f64 {
    server.forget_statistics();
    let outcome = drive(callers, Arc::clone(subjects)).await;
    let us = server.script_us();
    let share = outcome.admitted as f64 / subjects.len() as f64;
    match expect {
        Expect::Admitted => assert!(share > 0.99, "only {share} of the calls were admitted"),
        Expect::Denied => {}
    }
    us / subjects.len() as f64
}

async fn checkers(server: &Server, policy: &Policy) -> Vec<Checker> {
    let mut checkers = Vec::new();
    for _ in 0..PROCESSES {
        checkers.push(Checker::connect(&server.url(), policy).await);
    }
    checkers
}

async fn sorted_sets(server: &Server, policy: &Policy) -> Vec<SortedSet> {
    let mut peers = Vec::new();
    for _ in 0..PROCESSES {
        peers.push(SortedSet::load(server, policy).await);
    }
    peers
}

async fn fill(callers: &[Checker], subjects: std::ops::Range<usize>, cost: u64) {
    for subject in subjects {
        callers[0].fill(subject, cost).await;
    }
}

/// Brings the logs of all subjects to different lengths, so that they are not all rewritten in the same round.
async fn stagger(server: &Server, callers: &[Checker]) {
    /// A log is rewritten when it holds twice the largest count.
    const LONGEST: usize = 2 * 200;
    server.clear();
    for pass in 0..LONGEST {
        // Short logs begin late: a subject that has begun never pauses, lest its log end.
        let begun = SUBJECTS * (pass + 1) / LONGEST;
        drive(callers, (0..begun).collect()).await;
    }
}
