//! One algorithm, and what it decides.

use std::error::Error;
use std::time::Duration;

use tallygate::simulation::{Call, Simulation};
use tallygate::{Policy, Rule, Schedule, Subject};

use crate::trace;

/// The limit of all algorithms: so many calls in so many milliseconds.
pub(crate) const COUNT: u64 = 5;
pub(crate) const PER_MS: u64 = 10_000;

/// One algorithm, and what it has decided.
pub(crate) struct Lane {
    pub(crate) name: &'static str,
    /// How it is written in the attribute.
    pub(crate) attribute: &'static str,
    pub(crate) calls: Vec<Decided>,
    /// When its windows start, if there are such moments.
    pub(crate) edges_ms: Vec<u64>,
}

/// A call, and whether it was admitted.
#[derive(Clone, Copy)]
pub(crate) struct Decided {
    pub(crate) ms: u64,
    pub(crate) is_admitted: bool,
}

/// When the windows of an algorithm start.
enum Edges {
    None,
    /// At the first call after the window before.
    Calls,
    /// At the ticks of a clock.
    Clock,
}

/// Lets every algorithm decide the same calls.
pub(crate) fn all() -> Result<Vec<Lane>, Box<dyn Error>> {
    let per = Duration::from_millis(PER_MS);
    let schedule = Schedule::parse("*/10 * * * * *", "UTC")?;
    let lanes = [
        ("sliding window", r#"rule(count = 5, per = "10s")"#, Rule::sliding_window(COUNT, per), Edges::None),
        (
            "sliding counter",
            r#"rule(count = 5, per = "10s", algorithm = "sliding_counter")"#,
            Rule::sliding_counter(COUNT, per),
            Edges::None,
        ),
        (
            "token bucket",
            r#"rule(count = 5, per = "10s", algorithm = "token_bucket")"#,
            Rule::token_bucket(COUNT, per),
            Edges::None,
        ),
        (
            "fixed window",
            r#"rule(count = 5, per = "10s", algorithm = "fixed_window")"#,
            Rule::fixed_window(COUNT, per),
            Edges::Calls,
        ),
        ("schedule", r#"rule(count = 5, cron = "*/10 * * * * *")"#, Rule::cron(COUNT, schedule), Edges::Clock),
    ];
    lanes.into_iter().map(|(name, attribute, rule, edges)| Lane::play(name, attribute, rule, &edges)).collect()
}

impl Lane {
    fn play(name: &'static str, attribute: &'static str, rule: Rule, edges: &Edges) -> Result<Self, Box<dyn Error>> {
        let mut simulation = Simulation::new(&Policy::builder("picture").rule(rule).build()?);
        let decide = |ms| {
            let call = Call::new(trace::time(ms), Subject::everyone());
            simulation.call(&call).map(|decision| Decided { ms, is_admitted: decision.is_allowed() })
        };
        let calls: Vec<_> = trace::calls_ms().into_iter().map(decide).collect::<Result<_, _>>()?;
        let edges_ms = edges.of(&calls);
        Ok(Self { name, attribute, calls, edges_ms })
    }

    /// The calls that were admitted.
    pub(crate) fn admitted_ms(&self) -> impl Iterator<Item = u64> {
        self.calls.iter().filter(|call| call.is_admitted).map(|call| call.ms)
    }

    /// How many calls were admitted in the window that ends then.
    pub(crate) fn in_window(&self, ends_ms: u64) -> u64 {
        let is_inside = |ms: &u64| *ms <= ends_ms && ends_ms < ms + PER_MS;
        self.admitted_ms().filter(is_inside).count() as u64
    }

    /// The most calls that were admitted in any window.
    pub(crate) fn most_in_any_window(&self) -> u64 {
        // The fullest windows end with a call.
        self.admitted_ms().map(|ms| self.in_window(ms)).max().unwrap_or_default()
    }
}

impl Edges {
    fn of(&self, calls: &[Decided]) -> Vec<u64> {
        let last_ms = calls.last().map_or(0, |call| call.ms);
        match self {
            Self::None => Vec::new(),
            Self::Clock => (PER_MS..=last_ms).step_by(10_000).collect(),
            Self::Calls => {
                let mut edges: Vec<u64> = Vec::new();
                for call in calls.iter().filter(|call| call.is_admitted) {
                    if edges.last().is_none_or(|edge| edge + PER_MS <= call.ms) {
                        edges.push(call.ms);
                    }
                }
                edges
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pictures_show_what_the_page_says_of_each_algorithm() {
        let lanes = all().unwrap_or_default();
        let most: Vec<_> = lanes.iter().map(|lane| (lane.name, lane.most_in_any_window())).collect();
        let expected =
            [("sliding window", 5), ("sliding counter", 6), ("token bucket", 8), ("fixed window", 9), ("schedule", 10)];
        assert_eq!(most, expected);
    }
}
