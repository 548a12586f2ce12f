//! One case, measured once.

use tallygate::{Decision, Limiter, Permit, Policy, Subject};
use tokio::task::JoinSet;

use super::cases::{Asked, Case, HOUR};
use super::log::Log;
use crate::server::Server;
use crate::tally::replace_logs;

pub(super) struct Trial<'a> {
    pub(super) server: &'a Server,
    pub(super) limiter: &'a Limiter,
    pub(super) case: &'a Case,
}

impl Trial<'_> {
    /// Makes the calls that are measured.
    pub(super) async fn run(&self) {
        let mut permits = Vec::new();
        for caller in self.callers() {
            let decision = caller.call(1, false).await;
            permits.push(decision.into_result().expect("the first call is admitted"));
        }
        self.write_logs();
        self.server.forget_logged_commands();
        let mut asking = JoinSet::new();
        for (caller, permit) in self.callers().zip(permits) {
            asking.spawn(caller.ask(self.case.asked, permit));
        }
        asking.join_all().await;
    }

    fn callers(&self) -> impl Iterator<Item = Caller> {
        (0..self.case.together).map(|number| Caller {
            limiter: self.limiter.clone(),
            policy: self.case.policy.clone(),
            others: self.case.others,
            subject: Subject::of(number),
        })
    }

    fn write_logs(&self) {
        let (log, reach_us, now_us) = (self.case.log, self.case.reach_us(), self.server.now_us());
        if log != Log::AsItIs {
            replace_logs(self.server, |called| log.calls(called.time_us, now_us, reach_us));
        }
    }
}

/// Whoever calls for one subject, which is also that of all labels.
struct Caller {
    limiter: Limiter,
    policy: Policy,
    others: u32,
    subject: Subject,
}

impl Caller {
    async fn ask(self, asked: Asked, permit: Permit) {
        match asked {
            Asked::Call { cost } => drop(self.call(cost, false).await),
            Asked::Report => drop(self.call(1, true).await),
            Asked::Refund => drop(permit.refund().await.expect("the server answers")),
            Asked::Ban => self.limiter.check(&self.policy, &self.subject).ban(HOUR).await.expect("the server answers"),
        }
    }

    async fn call(&self, cost: u64, report: bool) -> Decision {
        let call = self.limiter.check(&self.policy, &self.subject).cost(cost).refundable();
        let labelled = |call, label: u32| tallygate::Check::subject(call, &label.to_string(), &self.subject);
        let call = (1..=self.others).fold(call, labelled);
        let call = if report { call.report() } else { call };
        call.await.expect("the server answers")
    }
}
