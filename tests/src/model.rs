//! What a limiter decides, said as plainly as possible: every backend has to say the same.
//!
//! A rule has the history of the calls it has counted, and all there is to say of it is whether one more [fits]. The rest
//! follows by asking that again: the time to wait ends at the first moment at which the call fits, what remains is the
//! greatest cost that fits. Nothing is shared with the runtime but the words for rules and the ticks of schedules.
//!
//! [fits]: History::fits

use tallygate::{Algorithm, Role, Rule, Schedule};

/// What is answered to one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Unless the call was admitted, the rule that is named and the microseconds to wait; `None` is for ever.
    pub denied: Option<(usize, Option<u128>)>,
    /// Where every rule stands after the call: the greatest cost that fits, and the microseconds until it is whole again.
    pub standings: Vec<(u128, u128)>,
}

/// What one subject has done: a history for every rule.
#[derive(Debug, Default)]
pub struct Tally(Vec<History>);

/// The calls that one rule has counted, in the order of their admission.
#[derive(Debug, Default)]
struct History(Vec<Hit>);

#[derive(Debug)]
struct Hit {
    at: u128,
    weight: u128,
    /// What it left in the bucket, in tokens times `per`.
    level: u128,
}

impl Tally {
    /// Decides one call, and tells where every rule stands if that is asked for.
    pub fn decide(&mut self, rules: &[Rule], cost: u64, report: bool, now_us: u64) -> Answer {
        let (cost, now) = (u128::from(cost), u128::from(now_us));
        self.0.resize_with(rules.len(), History::default);
        self.0.iter_mut().zip(rules).for_each(|(history, rule)| history.forget_future(rule, now));
        let denied = self.denial(rules, cost, now);
        if denied.is_none() && cost > 0 {
            self.charge(rules, cost, now);
        }
        let reported = self.histories(rules).filter(|_| report);
        Answer { denied, standings: reported.map(|(history, rule)| history.standing(rule, now)).collect() }
    }

    /// Names the first duplicate that denies, or else the first of the rules that deny longest; the wait ends when all fit.
    fn denial(&self, rules: &[Rule], cost: u128, now: u128) -> Option<(usize, Option<u128>)> {
        let first_fits = self.histories(rules).map(|(history, rule)| history.first_fit(rule, cost, now));
        let first_fits: Vec<_> = first_fits.map(|first_fit| first_fit.unwrap_or(u128::MAX)).collect();
        let latest = *first_fits.iter().max()?;
        let duplicate = rules.iter().zip(&first_fits).position(|(rule, &first)| is_duplicate(rule) && first > now);
        let named = duplicate.or_else(|| first_fits.iter().position(|&first| first == latest))?;
        let all_fit =
            latest < u128::MAX && self.histories(rules).all(|(history, rule)| history.fits(rule, cost, latest));
        (latest > now).then(|| (named, all_fit.then(|| latest - now)))
    }

    fn charge(&mut self, rules: &[Rule], cost: u128, now: u128) {
        let longest = rules.iter().filter(|rule| is_sliding(rule)).map(per).max().unwrap_or_default();
        for (history, rule) in self.0.iter_mut().zip(rules) {
            // What no sliding window holds when a hit comes is not remembered, in case that the clock is set back.
            history.0.retain(|hit| !is_sliding(rule) || hit.at + longest > now);
            let level = history.level(rule, now).saturating_sub(cost * per(rule));
            history.0.push(Hit { at: now, weight: cost, level });
        }
    }

    fn histories<'a>(&'a self, rules: &'a [Rule]) -> impl Iterator<Item = (&'a History, &'a Rule)> {
        self.0.iter().zip(rules)
    }
}

impl History {
    /// Forgets what lies in the future, which happens when the clock was set back.
    fn forget_future(&mut self, rule: &Rule, now: u128) {
        let begun = self.begun(rule);
        self.0.retain(|hit| if is_sliding(rule) { hit.at <= now } else { begun <= now });
    }

    /// Whether a call of that cost fits at that time, if nothing happens before.
    fn fits(&self, rule: &Rule, cost: u128, at: u128) -> bool {
        let (count, per) = (u128::from(rule.count()), per(rule));
        match rule.algorithm() {
            Algorithm::SlidingWindow { .. } if is_duplicate(rule) => self.weight(at + 1 - per, u128::MAX) < count,
            Algorithm::SlidingWindow { .. } => self.weight(at + 1 - per, u128::MAX) + cost <= count,
            Algorithm::SlidingCounter { .. } => {
                let (slot, elapsed) = (at - at % per, at % per);
                let (current, before) = (self.weight(slot, slot + per), self.weight(slot - per, slot));
                current * per + before * (per - elapsed) + cost * per <= count * per
            }
            Algorithm::FixedWindow { .. } => {
                let (opened, weight) = self.window(per);
                cost + if at < opened + per { weight } else { 0 } <= count
            }
            Algorithm::Cron { schedule } => self.weight(last_tick(schedule, at), u128::MAX) + cost <= count,
            Algorithm::TokenBucket(_) => cost * per <= self.level(rule, at),
            _ => unreachable!("{rule:?}"),
        }
    }

    /// The first moment from now on at which the call fits, if nothing happens before.
    fn first_fit(&self, rule: &Rule, cost: u128, now: u128) -> Option<u128> {
        let over = self.over(rule).max(now);
        if over > now && self.fits(rule, cost, over - 1) {
            // Until all is over, a call that fits goes on fitting.
            return Some(first(now, over - 1, |at| self.fits(rule, cost, at)));
        }
        self.fits(rule, cost, over).then_some(over)
    }

    fn standing(&self, rule: &Rule, now: u128) -> (u128, u128) {
        let limit = limit(rule);
        let remaining = if is_duplicate(rule) {
            limit.saturating_sub(self.weight(now + 1 - per(rule), u128::MAX))
        } else {
            first(0, limit + 1, |cost| cost > limit || !self.fits(rule, cost, now)).saturating_sub(1)
        };
        let missing = (limit * per(rule)).saturating_sub(self.level(rule, now));
        let filled = if is_bucket(rule) { missing.div_ceil(u128::from(rule.count().max(1))) } else { u128::MAX };
        (remaining, self.over(rule).saturating_sub(now).min(filled))
    }

    /// When the rule is as if it had never counted, if nothing happens before.
    fn over(&self, rule: &Rule) -> u128 {
        let Some(last) = self.0.last() else { return 0 };
        match rule.algorithm() {
            Algorithm::SlidingCounter { .. } => self.begun(rule) + 2 * per(rule),
            Algorithm::Cron { schedule } => next_tick(schedule, last.at),
            Algorithm::TokenBucket(bucket) => last.at + bucket.reset_after_or(rule.count()).as_micros(),
            _ => self.begun(rule) + per(rule),
        }
    }

    /// Since when the rule counts what it counts now.
    fn begun(&self, rule: &Rule) -> u128 {
        let last = self.0.last().map_or(0, |hit| hit.at);
        match rule.algorithm() {
            Algorithm::SlidingCounter { per } => last - last % per.as_micros(),
            Algorithm::FixedWindow { per } => self.window(per.as_micros()).0,
            _ => last,
        }
    }

    /// When the last fixed window opened, and its weight.
    fn window(&self, per: u128) -> (u128, u128) {
        self.0.iter().fold((0, 0), |(opened, weight), hit| {
            if hit.at < opened + per { (opened, weight + hit.weight) } else { (hit.at, hit.weight) }
        })
    }

    /// What is in the bucket, in tokens times `per`.
    fn level(&self, rule: &Rule, at: u128) -> u128 {
        let Algorithm::TokenBucket(bucket) = rule.algorithm() else { return 0 };
        match self.0.last() {
            Some(hit) if at < self.over(rule) => {
                let flown = (at - hit.at) * u128::from(rule.count());
                (hit.level + flown).min(limit(rule) * per(rule))
            }
            _ => u128::from(bucket.initial_or(rule.count())) * per(rule),
        }
    }

    fn weight(&self, from: u128, until: u128) -> u128 {
        self.0.iter().filter(|hit| (from..until).contains(&hit.at)).map(|hit| hit.weight).sum()
    }
}

/// The first of these numbers of which it is true; it is of the last, and of all behind the first.
fn first(mut low: u128, mut high: u128, is_true: impl Fn(u128) -> bool) -> u128 {
    while low < high {
        let middle = u128::midpoint(low, high);
        if is_true(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

fn per(rule: &Rule) -> u128 {
    rule.per().map_or(0, |per| per.as_micros())
}

fn limit(rule: &Rule) -> u128 {
    rule.capacity().unwrap_or(rule.count()).into()
}

fn is_sliding(rule: &Rule) -> bool {
    matches!(rule.algorithm(), Algorithm::SlidingWindow { .. })
}

fn is_bucket(rule: &Rule) -> bool {
    matches!(rule.algorithm(), Algorithm::TokenBucket(_))
}

fn is_duplicate(rule: &Rule) -> bool {
    rule.role() == Role::Duplicate
}

fn last_tick(schedule: &Schedule, at: u128) -> u128 {
    schedule.last_tick(u64::try_from(at).unwrap()).unwrap().into()
}

fn next_tick(schedule: &Schedule, at: u128) -> u128 {
    schedule.next_tick(u64::try_from(at).unwrap()).unwrap().into()
}
