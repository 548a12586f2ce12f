//! The memory of a tally on the server.

use std::time::Duration;

use super::{SORTED_SET, runtime, sliding};
use crate::duel::Duel;
use crate::figure::Figure;
use crate::load::{Caller, Checker};
use crate::peer::SortedSet;
use crate::server::Server;

const HITS: usize = 1_000;

pub(crate) fn figures(server: &Server) -> Vec<Figure> {
    let runtime = runtime(1);
    let policy = sliding("bench.storage", &[(2_000, Duration::from_secs(3_600))]);
    let ours = runtime.block_on(Checker::connect(&server.url(), &policy));
    let peer = runtime.block_on(SortedSet::load(server, &policy));
    let duel = Duel::once(
        || runtime.block_on(bytes_of_a_subject(server, &ours)),
        || runtime.block_on(bytes_of_a_subject(server, &peer)),
    );
    vec![Figure::ratio("`MEMORY USAGE` of a subject, 1,000 hits", "bytes", SORTED_SET, &duel).at_most(0.2)]
}

async fn bytes_of_a_subject<C: Caller>(server: &Server, caller: &C) -> f64 {
    server.clear();
    for _ in 0..HITS {
        assert!(caller.call(0).await);
    }
    let keys: Vec<String> = server.ask(&["KEYS", "*"]);
    let [key] = &keys[..] else { panic!("one subject has one key, not {keys:?}") };
    server.ask(&["MEMORY", "USAGE", key, "SAMPLES", "0"])
}
