//! Decisions about concurrent calls, with as many leases as there may be.

use tallygate::{Check, Decision, Limiter, Policy, Rule, Subject};
use tokio::task::JoinSet;

use super::cases::{HOUR, RULES};
use crate::server::Server;
use crate::tally::add_leases;

/// The documented limit.
const MOST: u64 = 100_000;

/// More than one call forgets.
const ENDED: u64 = 200;

/// What is measured once.
pub(super) struct Case {
    pub(super) name: &'static str,
    limit: u64,
    /// How many leases each subject has: some that last, and some that have ended.
    held: u64,
    ended: u64,
    /// How many calls are made at once, each of a subject of its own.
    together: usize,
    /// How many tallies a call has.
    tallies: u32,
}

const ONE: Case =
    Case { name: "denied by the largest limit", limit: MOST, held: MOST, ended: 0, together: 1, tallies: 1 };

pub(super) const CASES: [Case; 7] = [
    ONE,
    Case { name: "the last lease of the largest limit", held: MOST - 2, ..ONE },
    Case { name: "the largest limit, lowered to 1", limit: 1, ..ONE },
    Case { name: "leases that have ended", held: MOST / 2, ended: ENDED, ..ONE },
    Case { name: "leases that have ended, of 32 subjects", held: 100, ended: ENDED, tallies: RULES, ..ONE },
    Case { name: "many that forget leases that have ended", held: 100, ended: ENDED, together: 512, ..ONE },
    Case { name: "many that are denied", limit: 100, held: 100, together: 512, ..ONE },
];

impl Case {
    /// Makes the calls that are measured, each with a report, and returns what was decided: no lease is given back before that
    /// is dropped.
    pub(super) async fn run(&self, server: &Server, limiter: &Limiter) -> Vec<Decision> {
        let mut decisions = self.calls(limiter).await;
        for key in server.ask::<Vec<String>>(&["KEYS", "*/leases:*"]) {
            add_leases(server, &key, self.ended, self.held);
        }
        server.forget_logged_commands();
        decisions.extend(self.calls(limiter).await);
        decisions
    }

    /// Makes one call of each subject.
    async fn calls(&self, limiter: &Limiter) -> Vec<Decision> {
        let mut calls = JoinSet::new();
        for subject in (0..self.together).map(Subject::of) {
            let (limiter, policy, tallies) = (limiter.clone(), self.policy(), self.tallies);
            calls.spawn(async move {
                let labelled = |call, label: u32| Check::subject(call, &label.to_string(), &subject);
                let call = (1..tallies).fold(limiter.check(&policy, &subject), labelled);
                call.report().await.expect("the server answers")
            });
        }
        calls.join_all().await
    }

    fn policy(&self) -> Policy {
        let rule = || Rule::concurrency(self.limit, HOUR);
        let first = Policy::builder("bench.bounds").rule(rule());
        let all = (1..self.tallies).fold(first, |builder, label| builder.rule_on(label.to_string(), rule()));
        all.build().expect("a valid policy")
    }
}
