//! What a limiter decides, as simply as possible: every backend has to decide the same.
//!
//! A rule has the history of the calls that it has counted. One function decides whether one more call fits. All the rest
//! follows from it: the wait ends at the first moment at which the call fits, and what remains is the greatest cost that
//! fits. The model shares the types of rules and the ticks of schedules with the runtime, and nothing else.
//!
//! | file | what it decides |
//! | --- | --- |
//! | this one | the answer to a call, and everything else that callers do |
//! | `plan` | which rules count which subject, and how an override replaces them |
//! | `tally` | what one subject has done |
//! | `history` | what one rule has counted: all algorithms |
//! | `denials` | when a subject is banned |

mod denials;
mod history;
mod plan;
mod tally;

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use tallygate::{Role, Rule};

use self::history::History;
pub use self::plan::Plan;
use self::plan::{Share, Structure};
use self::tally::Tally;

/// What is asked about one call.
#[derive(Clone, Debug)]
pub struct Call {
    /// The rules that it is asked by.
    pub plan: Plan,
    /// Its subjects, the main one first: each rule counts one of them.
    pub subjects: [usize; 3],
    /// Its weight.
    pub cost: u64,
    /// Whether to tell where every rule stands.
    pub report: bool,
    /// Whether to count nothing.
    pub peek: bool,
}

/// What is answered to one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether it is admitted.
    pub verdict: Verdict,
    /// Where every rule stands after the call: the greatest cost that fits, and the microseconds until it is whole again.
    pub standings: Vec<(u128, u128)>,
}

/// Whether a call is admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Admitted,
    /// The position of the rule that is named, and the microseconds to wait; `None` is for ever.
    Denied(usize, Option<u128>),
    /// The main subject is banned; the microseconds to wait as above.
    Banned(Option<u128>),
}

/// Which subjects of a call are reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subjects {
    /// The main one.
    Main,
    /// All of them.
    All,
}

/// What it takes to refund an admitted call.
#[derive(Clone, Debug)]
pub struct Ticket {
    plan: Plan,
    subjects: [usize; 3],
    cost: u64,
    at: u128,
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subjects, cost, at, .. } = self;
        write!(f, "{subjects:?}, cost {cost}, of {at} µs")
    }
}

/// All tallies and overrides.
#[derive(Debug)]
pub struct Model {
    /// By the subject's place in the call and its number. Rules of another structure have a tally of their own.
    tallies: HashMap<(usize, usize), Vec<(Structure, Tally)>>,
    override_of_all: Option<Vec<Rule>>,
    overrides: HashMap<usize, Vec<Rule>>,
    /// How many times its largest count a log holds before it drops what is in no window any more. This makes no difference
    /// unless the clock is set back.
    spare: u128,
}

impl Model {
    /// Starts without tallies, as a store whose logs hold `spare` times their largest count.
    #[must_use]
    pub fn new(spare: u8) -> Self {
        Self { tallies: HashMap::new(), override_of_all: None, overrides: HashMap::new(), spare: spare.into() }
    }

    /// Decides one call.
    pub fn decide(&mut self, call: &Call, now_us: u64) -> Answer {
        let (plan, now) = (self.in_force(call), u128::from(now_us));
        let closed = self.override_of(call).and_then(|_| plan.closed());
        if let (Some(rule), false) = (closed, call.report) {
            return Answer { verdict: Verdict::Denied(rule, None), standings: Vec::new() };
        }
        let mut ban_ends = None;
        for share in plan.shares() {
            let tally = self.tally(share, call.subjects);
            tally.forget_future(&share.rules, now);
            ban_ends = ban_ends.max(tally.denials.ban_ends(now));
        }
        let verdict = self.verdict(&plan, call, ban_ends, now);
        if !call.peek && closed.is_none() {
            self.count(&plan, call, &verdict, now);
        }
        let standings = if call.report { self.standings(&plan, call, now) } else { Vec::new() };
        Answer { verdict: closed.map_or(verdict, |rule| Verdict::Denied(rule, None)), standings }
    }

    /// The wait ends when the call fits all rules and no subject is banned. The rule to report is the first duplicate rule
    /// that denies, or else the first of the rules with the longest wait.
    fn verdict(&self, plan: &Plan, call: &Call, ban_ends: Option<u128>, now: u128) -> Verdict {
        let cost = call.cost.into();
        let counted = self.counted(plan, call);
        let first_fits = counted.iter().map(|(_, rule, history)| history.first_fit(rule, cost, now));
        let first_fits: Vec<_> = first_fits.map(|first_fit| first_fit.unwrap_or(u128::MAX)).collect();
        let latest = first_fits.iter().copied().chain(ban_ends).max().unwrap_or(now);
        let all_fit = latest < u128::MAX && counted.iter().all(|(_, rule, history)| history.fits(rule, cost, latest));
        let wait = all_fit.then(|| latest - now);
        if ban_ends.is_some() {
            return Verdict::Banned(wait);
        }
        let duplicate =
            counted.iter().zip(&first_fits).position(|((_, rule, _), &first)| is_duplicate(rule) && first > now);
        let named = duplicate.or_else(|| first_fits.iter().position(|&first| first == latest && first > now));
        named.map_or(Verdict::Admitted, |named| Verdict::Denied(counted[named].0, wait))
    }

    /// Counts an admitted call by all its rules, and a denied one towards a ban.
    fn count(&mut self, plan: &Plan, call: &Call, verdict: &Verdict, now: u128) {
        let spare = self.spare;
        for share in plan.shares() {
            let tally = self.tally(share, call.subjects);
            match (verdict, &share.ban) {
                (Verdict::Admitted, _) if call.cost > 0 => tally.charge(&share.rules, call.cost.into(), now, spare),
                (Verdict::Denied(..), Some(ban)) => tally.denials.add(ban, now),
                _ => {}
            }
        }
    }

    fn standings(&self, plan: &Plan, call: &Call, now: u128) -> Vec<(u128, u128)> {
        let mut counted = self.counted(plan, call);
        counted.sort_by_key(|(position, ..)| *position);
        counted.into_iter().map(|(_, rule, history)| history.standing(rule, now)).collect()
    }

    /// All rules, subject by subject, each with its position and what it has counted.
    fn counted<'a>(&'a self, plan: &'a Plan, call: &Call) -> Vec<(usize, &'a Rule, &'a History)> {
        let of_share = |share: &'a Share| {
            let tally = self.known(share, call.subjects).expect("deciding creates tallies");
            let counted = tally.histories(&share.rules).zip(&share.rules);
            share.positions.iter().zip(counted).map(|(&position, (history, rule))| (position, rule, history))
        };
        plan.shares().iter().flat_map(of_share).collect()
    }

    /// Returns what it takes to refund a call that is admitted now. A peek has counted nothing.
    #[must_use]
    pub fn ticket(&self, call: &Call, now_us: u64) -> Ticket {
        let cost = if call.peek { 0 } else { call.cost };
        Ticket { plan: self.in_force(call), subjects: call.subjects, cost, at: now_us.into() }
    }

    /// Removes what a call still counts for, and returns whether there was anything. It goes by the time of the call: calls of
    /// one instant cannot be distinguished.
    pub fn refund(&mut self, ticket: &Ticket, now_us: u64) -> bool {
        let mut found = false;
        for share in ticket.plan.shares() {
            if self.known(share, ticket.subjects).is_some() {
                let tally = self.tally(share, ticket.subjects);
                found |= tally.refund(&share.rules, ticket.cost.into(), ticket.at, now_us.into());
            }
        }
        found
    }

    /// Forgets what subjects of a call have done, under its own rules and under those of an override.
    pub fn reset(&mut self, call: &Call, subjects: Subjects) {
        for plan in [call.plan.clone(), self.in_force(call)] {
            let is_reset = |share: &&Share| subjects == Subjects::All || share.subject == 0;
            for share in plan.shares().iter().filter(is_reset) {
                let tallies = self.tallies.entry((share.subject, call.subjects[share.subject])).or_default();
                tallies.retain(|(structure, _)| *structure != share.structure);
            }
        }
    }

    /// Bans the main subject of a call for that long, or ends its ban: behind an override, too.
    ///
    /// # Panics
    ///
    /// The plan has no ban.
    pub fn ban(&mut self, call: &Call, duration: Duration, now_us: u64) {
        for plan in [call.plan.clone(), self.in_force(call)] {
            let share = plan.shares().first().filter(|share| share.ban.is_some()).expect("the plan has a ban");
            self.tally(share, call.subjects).denials.ban(duration, now_us.into());
        }
    }

    /// Puts rules in the place of those on the main subject, for all calls or for those of one subject; or takes them away.
    pub fn override_rules(&mut self, subject: Option<usize>, rules: Option<Vec<Rule>>) {
        match (subject, rules) {
            (None, rules) => self.override_of_all = rules,
            (Some(subject), Some(rules)) => _ = self.overrides.insert(subject, rules),
            (Some(subject), None) => _ = self.overrides.remove(&subject),
        }
    }

    /// Whether the rules of an override for its main subject, or those of one for all, decide a call.
    #[must_use]
    pub fn overridden(&self, call: &Call) -> (bool, bool) {
        let is_any = self.override_of(call).is_some();
        let is_own = is_any && self.overrides.contains_key(&call.subjects[0]);
        (is_own, is_any && !is_own)
    }

    /// The rules that decide a call, each with the place of its subject.
    #[must_use]
    pub fn rules(&self, call: &Call) -> Vec<(usize, Rule)> {
        self.in_force(call).rules().to_vec()
    }

    fn in_force(&self, call: &Call) -> Plan {
        self.override_of(call).map_or_else(|| call.plan.clone(), |rules| call.plan.overridden(rules))
    }

    /// Those of its main subject go first.
    fn override_of(&self, call: &Call) -> Option<&Vec<Rule>> {
        let own = || self.overrides.get(&call.subjects[0]);
        if call.plan.counts_the_main_subject() { own().or(self.override_of_all.as_ref()) } else { None }
    }

    fn known(&self, share: &Share, subjects: [usize; 3]) -> Option<&Tally> {
        let tallies = self.tallies.get(&(share.subject, subjects[share.subject]))?;
        tallies.iter().find(|(structure, _)| *structure == share.structure).map(|(_, tally)| tally)
    }

    fn tally(&mut self, share: &Share, subjects: [usize; 3]) -> &mut Tally {
        let tallies = self.tallies.entry((share.subject, subjects[share.subject])).or_default();
        let known = tallies.iter().position(|(structure, _)| *structure == share.structure);
        let index = known.unwrap_or_else(|| {
            tallies.push((share.structure.clone(), Tally::new(&share.rules)));
            tallies.len() - 1
        });
        &mut tallies[index].1
    }
}

fn is_duplicate(rule: &Rule) -> bool {
    rule.role() == Role::Duplicate
}
