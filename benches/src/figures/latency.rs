//! How long a call takes when there is no other.

use std::time::Instant;

use super::throughput::Annotated;
use crate::duel::{Duel, Spread};
use crate::figure::Figure;
use crate::load::{Caller, patient};
use crate::peer::Empty;
use crate::server::Server;

const ROUNDS: usize = 61;
const SUBJECTS: usize = 1_000;

pub(crate) async fn figures(server: &Server) -> Vec<Figure> {
    server.clear();
    let ours = Annotated { limiter: patient(&server.url()).await };
    let peer = Empty::load(server).await;
    let duel = Duel::of(ROUNDS, async || in_a_task(&ours).await, async || in_a_task(&peer).await).await;
    vec![Figure::ratio("latency of a lone call, median", "µs", "empty script", &duel).at_most(1.15)]
}

/// Calls from where a server's handlers run, too.
async fn in_a_task<C: Caller>(caller: &C) -> f64 {
    tokio::spawn(median_us(caller.clone())).await.expect("nobody aborts it")
}

async fn median_us<C: Caller>(caller: C) -> f64 {
    let mut taken = Vec::with_capacity(SUBJECTS);
    for subject in 0..SUBJECTS {
        let started = Instant::now();
        assert!(caller.call(subject).await);
        taken.push(started.elapsed().as_secs_f64() * 1e6);
    }
    Spread::of(taken).median
}
