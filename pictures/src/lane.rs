//! One algorithm, and what it decides.

use std::error::Error;
use std::time::{Duration, UNIX_EPOCH};

use tallygate::simulation::{Simulation, TraceCall};
use tallygate::{Policy, Rule, Schedule, Subject};

/// A full minute, at which windows of ten seconds start as well: the eighth hour of a day in 2027.
const START: Duration = Duration::from_secs(1_800_000_000);

/// When the burst begins and ends: around second 19, at which the fixed window ends, and 20, at which the schedule ticks.
pub(crate) const BURST_MS: [u64; 2] = [16_000, 22_500];

/// When the steady calls begin and end.
pub(crate) const STEADY_MS: [u64; 2] = [28_000, 48_000];

/// The limit of all algorithms: so many calls in so many milliseconds.
pub(crate) const COUNT: u64 = 5;
pub(crate) const PER_MS: u64 = 10_000;

/// One algorithm, and what it has decided.
pub(crate) struct Lane {
    pub(crate) name: &'static str,
    /// How it is written in the attribute.
    pub(crate) attribute: String,
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
        ("sliding window", Rule::sliding_window(COUNT, per), Edges::None),
        ("sliding counter", Rule::sliding_counter(COUNT, per), Edges::None),
        ("token bucket", Rule::token_bucket(COUNT, per), Edges::None),
        ("fixed window", Rule::fixed_window(COUNT, per), Edges::Calls),
        ("schedule", Rule::cron(COUNT, schedule), Edges::Clock),
    ];
    lanes.into_iter().map(|(name, rule, edges)| Lane::play(name, rule, &edges)).collect()
}

/// Returns the times of the calls: one alone, which opens a fixed window, then a burst, then one call each second.
fn calls_ms() -> Vec<u64> {
    let burst = (BURST_MS[0]..=BURST_MS[1]).step_by(500);
    let steady = (STEADY_MS[0]..=STEADY_MS[1]).step_by(1_000);
    [9_000].into_iter().chain(burst).chain(steady).collect()
}

/// Returns how a rule is written in the attribute.
fn attribute(algorithm: &str) -> String {
    let arguments = match algorithm {
        "sliding window" => r#"per = "10s""#.to_owned(),
        "schedule" => r#"cron = "*/10 * * * * *""#.to_owned(),
        other => format!(r#"per = "10s", algorithm = "{}""#, other.replace(' ', "_")),
    };
    format!("rule(count = {COUNT}, {arguments})")
}

impl Lane {
    fn play(name: &'static str, rule: Rule, edges: &Edges) -> Result<Self, Box<dyn Error>> {
        let mut simulation = Simulation::new(&Policy::builder("picture").rule(rule).build()?);
        let decide = |ms| {
            let call = TraceCall::new(UNIX_EPOCH + START + Duration::from_millis(ms), Subject::everyone());
            simulation.call(&call).map(|decision| Decided { ms, is_admitted: decision.is_allowed() })
        };
        let calls: Vec<_> = calls_ms().into_iter().map(decide).collect::<Result<_, _>>()?;
        let edges_ms = edges.starts_ms(&calls);
        Ok(Self { name, attribute: attribute(name), calls, edges_ms })
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
    fn starts_ms(&self, calls: &[Decided]) -> Vec<u64> {
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
