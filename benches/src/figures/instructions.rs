//! The cost of a decision for the server, in instructions: they do not depend on the load of the machine.

use std::time::Duration;

use tallygate::Policy;
use tokio::runtime::{self, Runtime};
use tokio::task::JoinSet;

use super::sliding;
use crate::callgrind::CountingServer;
use crate::duel::Duel;
use crate::figure::Figure;
use crate::load::{Caller, Checker};
use crate::peer::general::General;

const ROUNDS: usize = 5;
const GATHERED: usize = 128;

const PEER: &str = "the script of protocol 5";

const ADMITTED: &str = "server instructions of a lone call, two windows, admitted";
const DENIED: &str = "— denied";
const GATHERED_ADMITTED: &str = "— gathered by 128, admitted";
const GATHERED_DENIED: &str = "— gathered by 128, denied";

pub(crate) fn figures() -> Vec<Figure> {
    match CountingServer::start() {
        Ok(server) => Bench::new(server).figures(),
        Err(why) => {
            [ADMITTED, DENIED, GATHERED_ADMITTED, GATHERED_DENIED].map(|what| Figure::skipped(what, PEER, &why)).into()
        }
    }
}

struct Bench {
    server: CountingServer,
    /// One thread, so that all calls of a round are made before the first is sent.
    runtime: Runtime,
}

/// One policy, decided by both.
struct Contenders {
    ours: Checker,
    peer: General,
}

impl Bench {
    fn new(server: CountingServer) -> Self {
        Self { server, runtime: runtime::Builder::new_current_thread().enable_all().build().expect("a runtime") }
    }

    fn figures(&self) -> Vec<Figure> {
        let minute = Duration::from_secs(60);
        let open = self.contenders(&sliding("bench.admits", &[(100, minute), (200, 60 * minute)]), 20);
        let admitted = [self.lone(&open, GATHERED), self.gathered(&open, GATHERED)];
        let closed = self.contenders(&sliding("bench.denies", &[(10, 60 * minute), (20, 120 * minute)]), 10);
        let denied = [self.lone(&closed, 0), self.gathered(&closed, 0)];
        vec![
            Figure::ratio(ADMITTED, "Ir", PEER, &admitted[0]).at_most(0.75),
            Figure::ratio(DENIED, "Ir", PEER, &denied[0]).at_most(0.7),
            Figure::ratio(GATHERED_ADMITTED, "Ir", PEER, &admitted[1]).at_most(0.4),
            Figure::ratio(GATHERED_DENIED, "Ir", PEER, &denied[1]).at_most(0.35),
        ]
    }

    /// Each subject has made so many calls.
    fn contenders(&self, policy: &Policy, calls: usize) -> Contenders {
        let url = self.server.server().url();
        self.server.server().clear();
        let contenders = Contenders {
            ours: self.runtime.block_on(Checker::connect(&url, policy)),
            peer: self.runtime.block_on(General::load(self.server.server(), policy)),
        };
        for _ in 0..calls {
            assert_eq!(self.call_together(&contenders.ours), GATHERED);
            assert_eq!(self.runtime.block_on(contenders.peer.call_all(&subjects())), GATHERED);
        }
        contenders
    }

    fn lone(&self, contenders: &Contenders, admitted: usize) -> Duel {
        let of = |caller: &dyn Fn(usize) -> bool| {
            let count = self.server.count(|| {
                let calls = (0..GATHERED).filter(|&subject| caller(subject)).count();
                assert_eq!(calls, admitted);
            });
            count / GATHERED as f64
        };
        let ours = |subject| self.runtime.block_on(contenders.ours.call(subject));
        let peer = |subject| self.runtime.block_on(contenders.peer.call(subject));
        Duel::of(ROUNDS, || of(&ours), || of(&peer))
    }

    fn gathered(&self, contenders: &Contenders, admitted: usize) -> Duel {
        let each = |count: f64| count / GATHERED as f64;
        Duel::of(
            ROUNDS,
            || each(self.server.count(|| assert_eq!(self.call_together(&contenders.ours), admitted))),
            || {
                each(self.server.count(|| {
                    assert_eq!(self.runtime.block_on(contenders.peer.call_all(&subjects())), admitted);
                }))
            },
        )
    }

    /// Makes a call of each subject, and returns how many were admitted.
    fn call_together(&self, caller: &Checker) -> usize {
        self.runtime.block_on(async {
            let mut calls = JoinSet::new();
            for subject in subjects() {
                let caller = caller.clone();
                calls.spawn(async move { caller.call(subject).await });
            }
            calls.join_all().await.into_iter().filter(|&admitted| admitted).count()
        })
    }
}

fn subjects() -> Vec<usize> {
    (0..GATHERED).collect()
}
