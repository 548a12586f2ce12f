//! What a limiter decides, as simply as possible: every backend has to decide the same.
//!
//! A rule has the calls that it has counted. One function decides whether one more call fits. All the rest
//! follows from it: the wait ends at the first moment at which the call fits, and what remains is the greatest cost that
//! fits. The model shares the types of rules and the ticks of schedules with the runtime, and nothing else.
//!
//! | file | what it decides |
//! | --- | --- |
//! | this one | the answer to a call, and everything else that callers do |
//! | `call` | nothing: what is asked about a call, and answered |
//! | `plan` | which rules count which subject, and how an override replaces them |
//! | `overrides` | which override is in force for a call |
//! | `tally` | what one subject has done |
//! | `counted` | when a call fits into what one rule has counted |
//! | `log` | what sliding windows have counted |
//! | `history` | what any other rule has counted |
//! | `concurrency` | which calls are running |
//! | `denials` | when a subject is banned |
//! | `ticket` | nothing: what it takes to refund or settle a call |

mod call;
mod concurrency;
mod counted;
mod denials;
mod history;
mod log;
mod overrides;
mod plan;
mod tally;
mod ticket;

use std::collections::HashMap;
use std::time::Duration;

use tallygate::{Role, Rule};
use tallygate_rules::MAX_EXACT;

pub use self::call::{Answer, Call, Costs, Standing, UNITS, Used, Verdict};
use self::counted::Counted;
use self::history::is_sliding;
use self::overrides::Overrides;
pub use self::plan::Plan;
use self::plan::{Share, Structure};
use self::tally::{Tally, is_set_back};
pub use self::ticket::Ticket;

/// Which subjects of a call are reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subjects {
    /// The main one.
    Main,
    /// All of them.
    All,
}

/// All tallies and overrides.
#[derive(Debug)]
pub struct Model {
    /// By the position of the subject in the call and its number. Rules of another structure have a tally of their own.
    tallies: HashMap<(usize, usize), Vec<(Structure, Tally)>>,
    overrides: Overrides,
    drops: Drops,
    /// The time of the last decision.
    decided_at: u128,
    /// The number of decisions.
    decisions: u64,
}

/// When a log removes entries that are in no window any more. This makes no difference unless the clock is set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drops {
    /// With each call.
    AtOnce,
    /// With the first call after all of it, or that it has no room for.
    Together,
}

impl Model {
    /// Starts without tallies.
    #[must_use]
    pub fn new(drops: Drops) -> Self {
        Self { tallies: HashMap::new(), overrides: Overrides::default(), drops, decided_at: 0, decisions: 0 }
    }

    /// Decides one call.
    pub fn decide(&mut self, call: &Call, now_us: u64) -> Answer {
        self.decisions += 1;
        let plan = self.in_force(call);
        let closed = self.overrides.in_force(call).and_then(|_| plan.closed(&call.costs));
        if let (Some(rule), false) = (closed, call.report) {
            return Answer { verdict: Verdict::Denied(rule, None), standings: Vec::new() };
        }
        let now = self.settle_time(&plan, call, now_us);
        let mut ban_ends = None;
        for share in plan.shares() {
            ban_ends = ban_ends.max(self.tally(share, call.subjects).denials.ban_ends(now));
        }
        let verdict = self.verdict(&plan, call, ban_ends, now);
        if !call.peek && closed.is_none() {
            self.count(&plan, call, &verdict, now);
        }
        let standings = if call.report { self.standings(&plan, call, now) } else { Vec::new() };
        Answer { verdict: closed.map_or(verdict, |rule| Verdict::Denied(rule, None)), standings }
    }

    /// Returns the time at which a call is decided: a clock that goes back a little stands still.
    fn settle_time(&mut self, plan: &Plan, call: &Call, now_us: u64) -> u128 {
        let mut now = now_us.into();
        loop {
            let begun = now;
            for share in plan.shares() {
                now = self.tally(share, call.subjects).settle_time(&share.rules, now);
            }
            if now == begun {
                self.decided_at = now;
                return now;
            }
        }
    }

    /// The wait ends when the call fits all rules and no subject is banned. The rule to report is the first duplicate rule
    /// that denies, or else the first of the rules with the longest wait.
    fn verdict(&self, plan: &Plan, call: &Call, ban_ends: Option<u128>, now: u128) -> Verdict {
        let cost = |rule: &Rule| call.costs.needed(rule).into();
        let counted = self.counted(plan, call);
        let first_fits = counted.iter().map(|(_, rule, counted)| counted.first_fit(rule, cost(rule), now));
        let first_fits: Vec<_> = first_fits.map(|first_fit| first_fit.unwrap_or(u128::MAX)).collect();
        let latest = first_fits.iter().copied().chain(ban_ends).max().unwrap_or(now);
        // A wait for the end of calls is only an upper bound.
        let is_bound =
            counted.iter().zip(&first_fits).any(|((_, rule, _), &first)| rule.lease().is_some() && first > now);
        let fit_then = || is_bound || counted.iter().all(|(_, rule, counted)| counted.fits(rule, cost(rule), latest));
        let all_fit = latest < u128::MAX && fit_then();
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
        let (drops, number) = (self.drops, self.decisions);
        for share in plan.shares() {
            let cost = share.cost(&call.costs);
            let tally = self.tally(share, call.subjects);
            match (verdict, &share.ban) {
                (Verdict::Admitted, _) if cost > 0 && share.rules.iter().any(|rule| rule.lease().is_some()) => {
                    tally.running.begin(number, &share.rules[0], now);
                }
                (Verdict::Admitted, _) if cost > 0 => tally.charge(&share.rules, cost.into(), now, drops),
                (Verdict::Denied(..), Some(ban)) => tally.denials.add(ban, now),
                _ => {}
            }
        }
    }

    fn standings(&self, plan: &Plan, call: &Call, now: u128) -> Vec<Standing> {
        let mut counted = self.counted(plan, call);
        counted.sort_by_key(|(position, ..)| *position);
        counted.into_iter().map(|(_, rule, counted)| counted.standing(rule, now)).collect()
    }

    /// Returns all rules, subject by subject, each with its position and what it has counted.
    fn counted<'a>(&'a self, plan: &'a Plan, call: &Call) -> Vec<(usize, &'a Rule, Counted<'a>)> {
        let of_share = |share: &'a Share| {
            let tally = self.known(share, call.subjects).expect("deciding creates tallies");
            let counted = tally.counted(&share.rules).zip(&share.rules);
            share.positions.iter().zip(counted).map(|(&position, (counted, rule))| (position, rule, counted))
        };
        plan.shares().iter().flat_map(of_share).collect()
    }

    /// Returns what is needed to refund the last call. A peek has counted nothing.
    #[must_use]
    pub fn ticket(&self, call: &Call) -> Ticket {
        let costs = if call.peek { Costs::of_calls(0) } else { call.costs };
        let (plan, at, number) = (self.in_force(call), self.decided_at, self.decisions);
        Ticket { plan, subjects: call.subjects, costs, is_peek: call.peek, at, number }
    }

    /// Removes what a call still counts, and returns whether there was anything. It finds the call by its time: calls
    /// of one instant cannot be told apart.
    pub fn refund(&mut self, ticket: &Ticket, now_us: u64) -> bool {
        self.recount(ticket, &Used::NOTHING, |_| true, now_us)
    }

    /// Removes what a call still counts on one of its subjects, and returns whether there was anything.
    pub fn refund_on(&mut self, ticket: &Ticket, subject: usize, now_us: u64) -> bool {
        self.recount(ticket, &Used::NOTHING, |share| share.subject == subject, now_us)
    }

    /// Counts a call as what it used, if it still counts, and returns whether anything changed. What was used is at
    /// most the greatest number that is exact everywhere. Where the call has cost nothing, that counts from now on.
    pub fn settle(&mut self, ticket: &Ticket, used: &Used, now_us: u64) -> bool {
        self.recount(ticket, used, |_| true, now_us)
    }

    fn recount(&mut self, ticket: &Ticket, used: &Used, is_meant: impl Fn(&Share) -> bool, now_us: u64) -> bool {
        let (drops, now) = (self.drops, now_us.into());
        let now = if is_set_back(ticket.at, now) { now } else { ticket.at.max(now) };
        let mut found = false;
        for share in ticket.plan.shares().iter().filter(|share| is_meant(share)) {
            let Some(used) = share.used(used) else { continue };
            let costs = (share.cost(&ticket.costs).into(), used.min(MAX_EXACT).into());
            if costs.0 == 0 && costs.1 > 0 {
                self.tally(share, ticket.subjects).charge_late(&share.rules, costs.1, now, drops);
                found = true;
            } else if self.known(share, ticket.subjects).is_some() {
                let tally = self.tally(share, ticket.subjects);
                found |= tally.recount(&share.rules, costs, ticket.at, now);
            }
        }
        found
    }

    /// Ends a concurrent call.
    pub fn end(&mut self, ticket: &Ticket) {
        for share in ticket.plan.shares() {
            if self.known(share, ticket.subjects).is_some() {
                self.tally(share, ticket.subjects).running.end(ticket.number);
            }
        }
    }

    /// Forgets what is counted for the subjects of a call, under its own rules and under those of an override.
    pub fn reset(&mut self, call: &Call, subjects: Subjects) {
        for plan in [call.plan.clone(), self.in_force(call)] {
            let is_reset = |share: &&Share| subjects == Subjects::All || share.subject == 0;
            for share in plan.shares().iter().filter(is_reset) {
                let tallies = self.tallies.entry((share.subject, call.subjects[share.subject])).or_default();
                tallies.retain(|(structure, _)| *structure != share.structure);
            }
        }
    }

    /// Bans the main subject of a call for that long, or ends its ban, also under an override.
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

    /// Overrides the rules on the main subject, for all calls or for those of one subject, or clears the override.
    pub fn override_rules(&mut self, subject: Option<usize>, rules: Option<Vec<Rule>>) {
        self.overrides.set(subject, rules);
    }

    /// Returns whether an override for the main subject decides the call, and whether one for all subjects does.
    #[must_use]
    pub fn overridden(&self, call: &Call) -> (bool, bool) {
        let (own, of_all) = self.overrides.of(call);
        (own.is_some(), own.is_none() && of_all.is_some())
    }

    /// Returns the rules that decide a call, each with the position of its subject.
    #[must_use]
    pub fn rules(&self, call: &Call) -> Vec<(usize, Rule)> {
        self.in_force(call).rules().to_vec()
    }

    /// Returns whether only sliding windows decide the call, and it may fit all of them. Redis has special scripts for such
    /// calls, so their order among concurrent calls of other kinds is not fixed.
    #[must_use]
    pub fn is_plain(&self, call: &Call) -> bool {
        let is_plain = |share: &Share| {
            let cost = share.cost(&call.costs);
            let may_fit = |rule: &Rule| if is_duplicate(rule) { rule.count() > 0 } else { cost <= rule.count() };
            cost > 0 && share.ban.is_none() && share.rules.iter().all(|rule| is_sliding(rule) && may_fit(rule))
        };
        !call.report && !call.peek && self.in_force(call).shares().iter().all(is_plain)
    }

    fn in_force(&self, call: &Call) -> Plan {
        self.overrides.in_force(call).map_or_else(|| call.plan.clone(), |rules| call.plan.overridden(rules))
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
