//! The known state of the fleet: policies, denials per second, subjects, servers, and the outages that were seen.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use tallygate::Override;
use tallygate::admin::{__shared as shared, Finding, Level, Registered, ServerReport};

use crate::commands::top::usage::Usage;
use crate::duration;

#[derive(Debug)]
pub(super) struct Board {
    pub(super) prefix: String,
    policies: Vec<WatchedPolicy>,
    pub(super) rates: Rates,
    /// The result of the last walk; `None` until the first one ends.
    pub(super) walked: Option<Walked>,
    /// How much of a walk is done, from 0 to 1; `None` between two walks.
    pub(super) progress: Option<f64>,
    servers: Vec<WatchedServer>,
    pub(super) outages: Outages,
}

#[derive(Clone, Debug)]
pub(super) struct WatchedPolicy {
    pub(super) name: String,
    pub(super) rules: String,
    pub(super) overrides: usize,
}

/// The result of a walk over all subjects.
#[derive(Debug, Default)]
pub(super) struct Walked {
    pub(super) busiest: Vec<Usage>,
    pub(super) subjects: u64,
    /// How many subjects of each policy are denied.
    pub(super) denied: BTreeMap<String, u64>,
}

#[derive(Clone, Debug)]
pub(super) struct WatchedServer {
    pub(super) server: String,
    pub(super) level: Level,
    /// The findings of that level, if anything is wrong.
    pub(super) findings: Vec<String>,
}

impl Board {
    pub(super) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            policies: Vec::new(),
            rates: Rates::default(),
            walked: None,
            progress: None,
            servers: Vec::new(),
            outages: Outages::default(),
        }
    }

    pub(super) fn set_policies(&mut self, registered: &Registered, overrides: &[Override]) {
        let mut of_policies: BTreeMap<&str, usize> = BTreeMap::new();
        for one in overrides {
            *of_policies.entry(one.policy()).or_default() += 1;
        }
        let policies = registered.policies().iter().map(|policy| {
            let shadow = (shared::shadow(policy, overrides) == Some(true)).then(|| "shadow".to_owned());
            WatchedPolicy {
                name: policy.name().to_owned(),
                rules: policy.rules().iter().map(ToString::to_string).chain(shadow).collect::<Vec<_>>().join(" · "),
                overrides: of_policies.get(policy.name()).copied().unwrap_or_default(),
            }
        });
        self.policies = policies.collect();
    }

    /// Returns the policies, those with the most denials first.
    pub(super) fn policies(&self) -> Vec<&WatchedPolicy> {
        let mut policies: Vec<_> = self.policies.iter().collect();
        // A rate is a float, which has no total order. Whole thousandths have one.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate is not negative")]
        let rate = |policy: &str| (self.rates.per_second(policy).unwrap_or_default() * 1_000.0) as u64;
        policies.sort_by_cached_key(|policy| {
            (Reverse(rate(&policy.name)), Reverse(self.denied(&policy.name)), policy.name.clone())
        });
        policies
    }

    /// Returns how many subjects of a policy are denied; `None` before the end of the first walk.
    pub(super) fn denied(&self, policy: &str) -> Option<u64> {
        self.walked.as_ref().map(|walked| walked.denied.get(policy).copied().unwrap_or_default())
    }

    /// Sets the reports of the servers. If one of several is away, that is an outage of its own.
    pub(super) fn set_servers(&mut self, reports: &[ServerReport], now: Instant) {
        self.servers = reports.iter().map(WatchedServer::of).collect();
        for report in reports.iter().filter(|_| reports.len() > 1) {
            let is_away = |finding: &&Finding| finding.topic() == "connection" && finding.level() == Level::Problem;
            let problem = report.findings().iter().find(is_away);
            self.outages.note(report.server(), problem.map(Finding::text), now);
        }
    }

    pub(super) fn servers(&self) -> &[WatchedServer] {
        &self.servers
    }
}

impl WatchedServer {
    fn of(report: &ServerReport) -> Self {
        let level = report.level();
        let worst = report.findings().iter().filter(|finding| finding.level() == level && level > Level::Ok);
        let findings = worst.map(|finding| format!("{}: {finding}", finding.topic())).collect();
        Self { server: report.server().to_owned(), level, findings }
    }
}

/// The time over which denials are counted. Programs publish them about every ten seconds.
const SPAN: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(super) struct Rates(BTreeMap<String, VecDeque<(Instant, u64)>>);

impl Rates {
    /// Adds the total of a policy's denials.
    pub(super) fn add(&mut self, policy: &str, denials: u64, now: Instant) {
        let known = self.0.entry(policy.to_owned()).or_default();
        // A total falls when an hour ends and its denials are forgotten.
        if known.back().is_some_and(|(_, last)| *last > denials) {
            known.clear();
        }
        known.push_back((now, denials));
        // One older value stays, so that the span is covered.
        while known.get(1).is_some_and(|(second, _)| now.saturating_duration_since(*second) >= SPAN) {
            known.pop_front();
        }
    }

    /// Returns the denials per second; `None` if there are none, or if they are not known for long enough.
    pub(super) fn per_second(&self, policy: &str) -> Option<f64> {
        let known = self.0.get(policy)?;
        let ((from, before), (to, after)) = (known.front()?, known.back()?);
        let time = to.saturating_duration_since(*from);
        if *after == 0 || time.is_zero() {
            return None;
        }
        let denials = u32::try_from(after - before).unwrap_or(u32::MAX);
        Some(f64::from(denials) / time.as_secs_f64())
    }
}

/// The most outages that are kept once they are over.
const MOST_OVER: usize = 4;

/// The outages that were seen, the latest first.
#[derive(Debug, Default)]
pub(super) struct Outages(VecDeque<WatchedOutage>);

#[derive(Debug)]
struct WatchedOutage {
    place: String,
    reason: String,
    since: Instant,
    /// `None` while it goes on.
    until: Option<Instant>,
}

impl Outages {
    /// Notes whether that place is away now. `problem` says why.
    pub(super) fn note(&mut self, place: &str, problem: Option<&str>, now: Instant) {
        let known = self.0.iter_mut().find(|outage| outage.place == place && outage.until.is_none());
        match (known, problem) {
            (Some(known), Some(reason)) => reason.clone_into(&mut known.reason),
            (Some(known), None) => known.until = Some(now),
            (None, Some(reason)) => {
                let (place, reason) = (place.to_owned(), reason.to_owned());
                self.0.push_front(WatchedOutage { place, reason, since: now, until: None });
            }
            (None, None) => {}
        }
        let mut over = 0;
        self.0.retain(|outage| {
            over += usize::from(outage.until.is_some());
            outage.until.is_none() || over <= MOST_OVER
        });
    }

    /// Returns a line for each outage, and whether it goes on.
    pub(super) fn lines(&self, now: Instant) -> impl Iterator<Item = (bool, String)> {
        self.0.iter().map(move |WatchedOutage { place, reason, since, until }| {
            let lasted = duration::shown(until.unwrap_or(now).saturating_duration_since(*since));
            match until {
                None => (true, format!("{place} is away for {lasted}: {reason}")),
                Some(until) => {
                    let ago = duration::shown(now.saturating_duration_since(*until));
                    (false, format!("{place} was away for {lasted}, until {ago} ago: {reason}"))
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn denials_are_counted_over_the_last_half_minute() {
        let (mut rates, start) = (Rates::default(), Instant::now());
        let mut add = |second, denials| {
            rates.add("p", denials, start + Duration::from_secs(second));
            rates.per_second("p").map(|rate| format!("{rate:.1}"))
        };
        assert_eq!(add(0, 100), None);
        assert_eq!(add(10, 120).as_deref(), Some("2.0"));
        assert_eq!(add(30, 160).as_deref(), Some("2.0"));
        assert_eq!(add(60, 160).as_deref(), Some("0.0"));
        // The hour before is forgotten.
        assert_eq!(add(70, 10), None);
        assert_eq!(add(80, 15).as_deref(), Some("0.5"));
    }

    #[test]
    fn without_denials_nothing_is_known() {
        let (mut rates, start) = (Rates::default(), Instant::now());
        rates.add("p", 0, start);
        rates.add("p", 0, start + SPAN);
        assert_eq!((rates.per_second("p"), rates.per_second("q")), (None, None));
    }

    #[test]
    fn an_outage_is_shown_while_it_goes_on_and_for_a_while_after_it() {
        let (mut outages, start) = (Outages::default(), Instant::now());
        let at = |second| start + Duration::from_secs(second);
        outages.note("a", None, at(0));
        outages.note("a", Some("no answer"), at(1));
        outages.note("a", Some("no connection"), at(3));
        outages.note("b", Some("no answer"), at(4));
        outages.note("a", None, at(11));
        let lines: Vec<_> = outages.lines(at(71)).collect();
        assert_eq!(lines[0], (true, "b is away for 1m 7s: no answer".to_owned()));
        assert_eq!(lines[1], (false, "a was away for 10s, until 1m ago: no connection".to_owned()));
        for second in 100..110 {
            outages.note("a", (second % 2 == 0).then_some("again"), at(second));
        }
        assert_eq!(outages.lines(at(110)).count(), 1 + MOST_OVER);
    }
}
