//! One call of a process, from its beginning to what becomes of its permit.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tallygate::config::{ConfigError, Policies};
use tallygate::{BackendError, BackendErrorKind, Check, Decision, Error, Permit, Rule, Subject};

use super::note::Note;
use super::paced;
use super::process::{Limits, Running};
use crate::fleet::{Member, sleeping};
use crate::history::{Answer, History};
use crate::partner::{PartnerAnswer, Partners};
use crate::workload::{Action, CallPlan, PolicyPlan};

pub(super) async fn perform(call: usize, plan: CallPlan, running: Running, partners: Arc<Partners>, history: History) {
    let Some(limits) = running.limits() else { return };
    let member = running.member;
    let mut note = Note::begin(call, &plan, Arc::clone(&member), history);
    if let Action::Stop(us) = plan.action {
        let left = limits.limiter.drain(Duration::from_micros(us)).await;
        note.answer(Answer::Drained(left));
        note.kill(plan.process);
        return;
    }
    if plan.is_administration() {
        let done = administer(&limits, &plan).await;
        note.answer(done.map_or_else(Answer::Failed, |()| Answer::Done));
        return;
    }
    let policy = &limits.policies[plan.policy];
    if let (Some(pace), Some(partner), true) = (&policy.pace, &policy.plan.partner, paced::makes(&plan)) {
        paced::call(pace, plan, partner.clone(), partners, note).await;
        return;
    }
    let decision = match plan.action {
        Action::Drop(us) => match before(sleeping(&member, us), decide(&limits, &plan)).await {
            Some(decision) => decision,
            None => return,
        },
        _ => decide(&limits, &plan).await,
    };
    note.answer(answer(&decision));
    if let Ok(Decision::Allowed(permit)) = decision {
        let policy = &policy.plan;
        if plan.action != Action::Peek
            && let Some(answer) = partners.call(plan.policy, plan.subject).await
        {
            hear(&answer, policy, &permit, &note).await;
        }
        use_permit(&plan, permit, &member).await;
    }
}

/// Reads the answer of a partner, and pauses the subject of the call if it says so.
async fn hear(answer: &PartnerAnswer, policy: &PolicyPlan, permit: &Permit, note: &Note) {
    let Some(partner) = &policy.partner else { return };
    // If it is not stored, this process honours a pause all the same, and another call is tried after one.
    let _ = match note.hear(answer, partner) {
        Some(wait) => permit.pause(wait).await,
        None => permit.succeeded().await,
    };
}

/// Awaits a future, until another one ends.
async fn before<F: Future>(end: impl Future<Output = ()>, future: F) -> Option<F::Output> {
    let (mut future, mut end) = (pin!(future), pin!(end));
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => end.as_mut().poll(context).map(|()| None),
    })
    .await
}

async fn decide(limits: &Limits, plan: &CallPlan) -> Result<Decision, BackendError> {
    let subjects = Subjects::of(plan);
    let check = subjects.check(limits, plan).cost(plan.cost);
    let check = plan.units.named().fold(check, |check, (unit, cost)| check.cost_of(unit, cost));
    match plan.action {
        Action::Report => check.report().await,
        Action::Peek => check.peek().await,
        _ if plan.is_recounted() => check.refundable().await,
        Action::Wait(us) => check.wait(Duration::from_micros(us)).await,
        _ => check.await,
    }
}

async fn administer(limits: &Limits, plan: &CallPlan) -> Result<(), BackendErrorKind> {
    let subjects = Subjects::of(plan);
    let check = subjects.check(limits, plan);
    let done = match plan.action {
        Action::Close(us) | Action::CloseUnit(us, _) => {
            return close(limits, plan, us).await.map_err(|_| BackendErrorKind::Unknown);
        }
        Action::Apply(divisor) => return apply(limits, plan, divisor).map_err(|_| BackendErrorKind::Unknown),
        Action::Ban(us) => check.ban(Duration::from_micros(us)).await,
        Action::Unban => check.unban().await.map(|_| ()),
        Action::Pause(us) => check.pause(Duration::from_micros(us)).await,
        Action::Resume => check.resume().await,
        _ => check.reset().await.map(|_| ()),
    };
    done.map_err(|error| error.kind())
}

/// Closes a policy, or what it counts in a unit, by an override that ends by itself.
async fn close(limits: &Limits, plan: &CallPlan, us: u64) -> Result<(), Error> {
    let name = limits.policies[plan.policy].policy.name();
    let closed = Rule::sliding_window(0, Duration::from_secs(1));
    let closed = if let Action::CloseUnit(_, unit) = plan.action { closed.counting(unit) } else { closed };
    limits.limiter.override_policy(name).rules([closed]).expires_in(Duration::from_micros(us)).set().await
}

fn apply(limits: &Limits, plan: &CallPlan, divisor: u64) -> Result<(), ConfigError> {
    let file = limits.policies[plan.policy].plan.file(divisor);
    limits.limiter.apply(&Policies::from_toml(&file)?).map(drop)
}

async fn use_permit(plan: &CallPlan, mut permit: Permit, member: &Arc<Member>) {
    match plan.action {
        Action::Refund(us) => {
            sleeping(member, us).await;
            let _ = permit.refund().await;
        }
        Action::Settle(us, used) => {
            sleeping(member, us).await;
            let _ = permit.settle(used).await;
        }
        Action::SettleUnits(us, used) => {
            sleeping(member, us).await;
            let _ = permit.settle_units(&used.named().collect::<Vec<_>>()).await;
        }
        Action::Meter(us, used) => {
            let meters: Vec<_> = used.named().map(|(unit, used)| (permit.meter(unit), used)).collect();
            drop(permit);
            sleeping(member, us).await;
            for (meter, used) in meters {
                if let Ok(meter) = meter {
                    meter.add(used);
                }
            }
        }
        Action::Hold(us) => {
            sleeping(member, us).await;
            drop(permit);
        }
        _ => {}
    }
}

fn answer(decision: &Result<Decision, BackendError>) -> Answer {
    match decision {
        Ok(Decision::Allowed(permit)) => Answer::Admitted(permit.decided_by()),
        Ok(Decision::Denied(denial)) => Answer::denied(denial),
        Err(error) => Answer::Failed(error.kind()),
    }
}

/// The subjects of a call.
pub(super) struct Subjects {
    user: Subject,
    net: Subject,
}

impl Subjects {
    fn of(plan: &CallPlan) -> Self {
        Self::numbered(plan.subject)
    }

    pub(super) fn numbered(number: usize) -> Self {
        Self { user: Subject::of(format!("user{number}")), net: Subject::of(format!("net{number}")) }
    }

    fn check<'a>(&'a self, limits: &'a Limits, plan: &CallPlan) -> Check<'a> {
        self.check_under(limits, plan.policy)
    }

    /// A check under the policy of that number, which has to be one of these.
    pub(super) fn check_under<'a>(&'a self, limits: &'a Limits, policy: usize) -> Check<'a> {
        let policy = &limits.policies[policy];
        let check = limits.limiter.check(&policy.policy, &self.user);
        if policy.plan.has_net() { check.subject("net", &self.net) } else { check }
    }
}
