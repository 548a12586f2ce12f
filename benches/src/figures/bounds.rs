//! The longest script calls, at the documented limits. During such a call, the server serves nobody else.

mod cases;
mod leases;
mod log;
mod overrides;
mod trial;

use std::collections::BTreeMap;

use tallygate::Limiter;
use tokio::runtime::{Builder, Runtime};

use self::cases::{Case, KINDS};
use self::trial::Trial;
use crate::duel::Spread;
use crate::figure::Figure;
use crate::load::patient;
use crate::server::Server;

/// The bound for every script call, in microseconds.
const MOST_US: f64 = 2_000.0;

/// How often each case is measured.
const REPEATS: usize = 9;

pub(crate) fn figures() -> Vec<Figure> {
    let server = Server::start();
    server.log_all_commands();
    // One thread, so that calls that are made at once are all gathered.
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let limiter = runtime.block_on(patient(&server.url()));
    let bench = Bench { server, runtime, limiter };
    KINDS.iter().map(|(kind, cases)| bench.worst(kind, cases())).chain([bench.leases(), bench.overrides()]).collect()
}

struct Bench {
    server: Server,
    runtime: Runtime,
    limiter: Limiter,
}

impl Bench {
    /// Measures the cases of a kind, and reports the one that takes longest.
    fn worst(&self, kind: &str, cases: Vec<Case>) -> Figure {
        let measured = cases.into_iter().map(|case| {
            let trial = Trial { server: &self.server, limiter: &self.limiter, case: &case };
            let us = self.longest_us(async || trial.run().await);
            eprintln!("  {kind}, {}: {:.0} µs ({:.0} to {:.0})", case.name, us.median, us.low, us.high);
            (us, case.name)
        });
        longest(kind, measured)
    }

    fn leases(&self) -> Figure {
        const KIND: &str = "concurrent calls";
        let measured = leases::CASES.iter().map(|case| {
            let us = self.longest_us(async || case.run(&self.server, &self.limiter).await);
            eprintln!("  {KIND}, {}: {:.0} µs ({:.0} to {:.0})", case.name, us.median, us.low, us.high);
            (us, case.name)
        });
        longest(KIND, measured)
    }

    fn overrides(&self) -> Figure {
        let us = self.longest_us(async || overrides::run(&self.server, &self.limiter).await);
        Figure::amount("the longest script call: overrides", "µs", "a change that removes expired ones", us)
            .at_most(MOST_US)
    }

    /// Returns the microseconds of the calls that take longest, of those of the same number of keys: one call alone may
    /// have been interrupted by the machine. What a run returns is dropped once its calls are counted.
    fn longest_us<H>(&self, run: impl AsyncFn() -> H) -> Spread {
        let mut measured = BTreeMap::<_, Vec<_>>::new();
        for _ in 0..REPEATS {
            self.server.clear();
            let _held = self.runtime.block_on(run());
            for (keys, us) in self.server.logged_scripts() {
                measured.entry(keys).or_default().push(us);
            }
        }
        let spreads = measured.into_values().map(Spread::of);
        spreads.max_by(|one, other| one.median.total_cmp(&other.median)).expect("scripts were called")
    }
}

/// Reports the case that takes longest.
fn longest(kind: &str, measured: impl Iterator<Item = (Spread, &'static str)>) -> Figure {
    let (us, name) = measured.max_by(|(one, _), (other, _)| one.median.total_cmp(&other.median)).expect("a case");
    Figure::amount(&format!("the longest script call: {kind}"), "µs", name, us).at_most(MOST_US)
}
