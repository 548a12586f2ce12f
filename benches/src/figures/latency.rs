//! The duration of a call when there is no other.

use std::time::Instant;

use super::runtime;
use super::throughput::TwoRules;
use crate::duel::{Duel, Spread};
use crate::figure::Figure;
use crate::load::{Caller, patient};
use crate::peer::Empty;
use crate::server::Server;

const ROUNDS: usize = 101;
const CALLS: usize = 500;

pub(crate) fn figures(server: &Server) -> Vec<Figure> {
    let runtime = runtime(2);
    let ours = TwoRules(runtime.block_on(patient(&server.url())));
    let peer = runtime.block_on(Empty::load(server));
    // In a task, like the handlers of a server.
    let duel = Duel::of(
        ROUNDS,
        || runtime.block_on(runtime.spawn(median_us(ours.clone()))).expect("nobody aborts it"),
        || runtime.block_on(runtime.spawn(median_us(peer.clone()))).expect("nobody aborts it"),
    );
    vec![Figure::ratio("latency of a lone call, median", "µs", "an empty script", &duel)]
}

async fn median_us<C: Caller>(caller: C) -> f64 {
    let mut taken = Vec::with_capacity(CALLS);
    for subject in 0..CALLS {
        let started = Instant::now();
        assert!(caller.call(subject).await);
        taken.push(started.elapsed().as_secs_f64() * 1e6);
    }
    Spread::of(taken).median
}
