//! Waiting for admission.

use std::future::{Future, poll_fn};
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use tallygate_rules::Role;

use super::Check;
use super::attempt::Attempt;
use crate::call::{Call, CallOptions, Demand, TallyKey, WaitLimit};
use crate::decision::{Decision, Denial, RejectionKind, RuleStatus};
use crate::error::BackendError;
use crate::limiter::core::Core;
use crate::limiter::wait_queue::{QueueDemand, QueueHead, QueuePlace, QueueTurn, WaitSpan};
use crate::micros;
use crate::observe::WaitRefusal;
use crate::policy::{Policy, SubjectCost};
use crate::sleepers::{AwaitedRoom, Sleeper};
use crate::system::home::in_runtime;
use crate::system::is_own_thread;

/// `Continue` if the wait goes on; `Break` with the decision that ends it.
type Waiting<T> = Result<ControlFlow<Decision, T>, BackendError>;

impl Check<'_> {
    /// Decides until the call is admitted, or until it cannot be admitted by the deadline.
    pub(super) async fn wait_for_admission(&self, limit: WaitLimit) -> Result<Decision, BackendError> {
        in_runtime()?;
        let core = &self.limiter().core;
        let deadline_us = match limit {
            WaitLimit::Within(duration) => core.clock.now_us().checked_add(micros::from_duration(duration)),
            WaitLimit::Unlimited => None,
        };
        let key = self.queue_key()?;
        let mut retry = None;
        // Callers that find no queue ask at once, in parallel.
        if !core.wait_queues.has(&key) {
            match self.try_once(deadline_us).await? {
                ControlFlow::Break(decision) => return Ok(decision),
                ControlFlow::Continue(next) => retry = Some(next),
            }
        }
        let place = match self.join_queue(key, retry, deadline_us).await? {
            ControlFlow::Break(decision) => return Ok(decision),
            ControlFlow::Continue(place) => place,
        };
        let _waiting = self.policy().observed().waiting();
        // On timeout, a queued caller checks once more and returns that result.
        let Some(turn) = place.turn(&core.clock, deadline_us).await else { return self.attempt().await };
        self.wait_as_first(&turn, deadline_us).await
    }

    /// Joins the queue. A caller that cannot be served in time, or finds no place, asks once and returns that result.
    async fn join_queue(
        &self,
        key: Arc<str>,
        retry: Option<Retry>,
        deadline_us: Option<u64>,
    ) -> Waiting<QueuePlace<'_>> {
        let core = &self.limiter().core;
        let (own, denied) = (self.demand(), retry.map_or_else(QueueHead::default, Retry::head));
        let attempt = Attempt::new(self)?;
        let can_be_served = |needed: &QueueDemand, head: QueueHead| {
            let Some(deadline_us) = deadline_us else { return true };
            let span = core.wait_span(&attempt.policy, head, deadline_us);
            span.has_room(&attempt.policy, needed, head)
        };
        let refused = match core.wait_queues.join(Arc::clone(&key), own.clone(), denied, can_be_served) {
            Ok(place) => return Ok(ControlFlow::Continue(place)),
            Err(refused) => refused,
        };
        // The caller may be cheaper than the first one, and have room at its own deadline.
        let is_cheaper = refused == WaitRefusal::Late && core.wait_queues.is_before_head(&key, deadline_us);
        let decision = if is_cheaper {
            match self.try_once(deadline_us).await? {
                ControlFlow::Break(decision) => decision,
                ControlFlow::Continue(_) => match core.wait_queues.join(key, own, denied, |_, _| true) {
                    Ok(place) => return Ok(ControlFlow::Continue(place)),
                    Err(_) => self.attempt().await?,
                },
            }
        } else {
            self.attempt().await?
        };
        if !decision.is_allowed() {
            self.policy().observed().wait_refused(refused);
        }
        Ok(ControlFlow::Break(decision))
    }

    /// What the call needs to be admitted.
    fn demand(&self) -> QueueDemand {
        let units = if self.options.peek { Vec::new() } else { self.inputs.costs().into_owned() };
        QueueDemand { calls: Demand::of(self.options), units }
    }

    /// Waits as the first caller of a queue, the only one that asks.
    async fn wait_as_first(&self, turn: &QueueTurn<'_>, deadline_us: Option<u64>) -> Result<Decision, BackendError> {
        let core = &self.limiter().core;
        // From now on, whatever makes room wakes this caller. The first question notices room that was made before.
        let mut sleeper = core.sleepers.join(self.limit_keys()?);
        let (mut retry, mut awaits_lease, mut looks) = (None, false, false);
        loop {
            let rules_changed = pin!(core.overrides.changed());
            // If Redis is away, a question ends the wait with the error; a look is made again later.
            let looked = if looks { self.look(deadline_us).await.unwrap_or(retry) } else { None };
            let next = match looked {
                Some(next) => next,
                None => match self.try_once(deadline_us).await? {
                    ControlFlow::Break(decision) => return Ok(decision),
                    ControlFlow::Continue(next) => next,
                },
            };
            retry = Some(next);
            if next.room == AwaitedRoom::Lease && !awaits_lease {
                sleeper.add(self.lease_keys()?);
                awaits_lease = true;
                continue;
            }
            turn.set_head(next.head());
            let now_us = core.clock.now_us();
            let wake_us = next.at_us.min(core.sleepers.look_us(next.room, now_us)).min(core.overrides.next_end_us());
            let wake = core.clock.timeout_at(wake_us, first_wake(&sleeper, rules_changed)).await.unwrap_or(Wake::Time);
            looks = wake == Wake::Time && wake_us < next.at_us;
            if !looks {
                turn.clear_head();
            }
            if wake == Wake::Room {
                self.forget_denials()?;
            }
            if wake == Wake::Rules {
                // The rules in force now may use other tallies.
                sleeper = core.sleepers.join(self.limit_keys()?);
                awaits_lease = false;
            }
        }
    }

    /// Returns the decision, or when to try again.
    async fn try_once(&self, deadline_us: Option<u64>) -> Waiting<Retry> {
        // A denial that is retried while waiting does not count towards a ban.
        let provisional = self.policy().ban().is_some() && !self.options.peek;
        let asked_us = self.limiter().core.clock.now_us();
        let decision = self.with_options(CallOptions { provisional, ..self.options }).attempt().await?;
        if let Some(retry) = self.retry(&decision, asked_us, deadline_us).await? {
            return Ok(ControlFlow::Continue(retry));
        }
        if !provisional || decision.is_allowed() {
            return Ok(ControlFlow::Break(decision));
        }
        // This denial is final, as waiting does not help. It is asked for once more, so that it counts; meanwhile there
        // may be room again.
        let answer = self.attempt().await?;
        Ok(self.retry(&answer, asked_us, deadline_us).await?.map_or(ControlFlow::Break(answer), ControlFlow::Continue))
    }

    /// Returns when to retry a denied call, if it may be admitted by the deadline. It was asked for at `asked_us`.
    async fn retry(
        &self,
        decision: &Decision,
        asked_us: u64,
        deadline_us: Option<u64>,
    ) -> Result<Option<Retry>, BackendError> {
        let Decision::Denied(denial) = decision else { return Ok(None) };
        // An override may have put the policy in shadow meanwhile.
        if self.is_shadow() {
            return Ok(None);
        }
        // Other kinds of denials do not say whether a lease is the reason for the wait, which is then only a bound.
        let is_clear =
            |kind| matches!(kind, RejectionKind::Limited | RejectionKind::Concurrency | RejectionKind::Paused);
        let is_unclear = !is_clear(denial.kind());
        let reported = if is_unclear && denial.policy().has_leases() { Some(self.reported().await?) } else { None };
        let now_us = self.limiter().core.clock.now_us();
        let retry = Retry {
            room: AwaitedRoom::Limit,
            at_us: now_us,
            earliest_us: now_us,
            rule: None,
            needed: self.options.cost,
        };
        Ok(match reported.as_ref().unwrap_or(decision) {
            Decision::Allowed(_) => retry.by(now_us, deadline_us),
            Decision::Denied(denial) => denial.retry_after().and_then(|wait| {
                let wait_us = micros::from_duration(wait);
                let rule = denial.rule().map(|rule| rule.position());
                let unit = denial.rule().and_then(|denying| denying.rule().unit());
                let cost = unit.map_or(SubjectCost::Calls, |unit| SubjectCost::in_unit(unit, &self.inputs.costs()));
                let retry = Retry { needed: cost.needed(self.options.cost), ..retry };
                let at_us = now_us.checked_add(wait_us)?;
                if waits_for_lease(denial) {
                    Retry { room: AwaitedRoom::Lease, at_us, earliest_us: 0, rule, ..retry }
                        .freed_by(now_us, deadline_us)
                } else {
                    Retry { at_us, earliest_us: asked_us.saturating_add(wait_us), rule, ..retry }
                        .by(now_us, deadline_us)
                }
            }),
        })
    }

    async fn reported(&self) -> Result<Decision, BackendError> {
        let options = CallOptions { peek: true, report: true, refundable: false, ..self.options };
        self.with_options(options).attempt().await
    }

    fn with_options(&self, options: CallOptions) -> Self {
        Self { options, ..self.clone() }
    }

    /// Peeks whether there is room. Returns when to try again; `None` if the caller has to ask, because there is room,
    /// or because there will be none by the deadline.
    async fn look(&self, deadline_us: Option<u64>) -> Result<Option<Retry>, BackendError> {
        let asked_us = self.limiter().core.clock.now_us();
        let options = CallOptions { peek: true, report: false, refundable: false, ..self.options };
        let decision = self.with_options(options).attempt().await?;
        let retry = self.retry(&decision, asked_us, deadline_us).await?;
        if retry.is_none() {
            self.forget_denials()?;
        }
        Ok(retry)
    }

    fn forget_denials(&self) -> Result<(), BackendError> {
        let attempt = Attempt::new(self)?;
        self.limiter().core.stack.forget(attempt.call());
        Ok(())
    }

    /// The tallies whose limits decide this call, by its own rules and by those in force, as the store has them.
    fn limit_keys(&self) -> Result<Vec<TallyKey>, BackendError> {
        let (core, attempt, subjects) = (&self.limiter().core, Attempt::new(self)?, self.inputs.subjects()?);
        let own = Call::new(self.policy(), &subjects, self.options);
        let calls = [own, attempt.call(), attempt.call().stored()];
        let limits = calls.iter().flat_map(|call| call.tally_ids()).filter(|id| id.group.lease_us.is_none());
        Ok(limits.chain(self.pause_id()).map(|id| id.key(&core.prefix)).collect())
    }

    /// The tallies of the leases that this call needs. A peek takes no lease, but it waits for one like other calls.
    fn lease_keys(&self) -> Result<Vec<TallyKey>, BackendError> {
        let (core, attempt) = (&self.limiter().core, Attempt::new(self)?);
        // Where calls are taken ahead and units counted, the server has the leases in another slot than the standby.
        let calls = [attempt.call(), attempt.call().stored()];
        let leases = calls.iter().flat_map(|call| call.tally_ids()).filter(|id| id.group.lease_us.is_some());
        Ok(leases.map(|id| id.key(&core.prefix)).collect())
    }

    /// Returns the key of the call in the wait queues: the keys of all its tallies, joined by line breaks, which no key
    /// contains. A caller that blocks its thread has a key of its own: behind a caller that awaits, it would wait
    /// forever.
    fn queue_key(&self) -> Result<Arc<str>, BackendError> {
        let (prefix, subjects) = (&self.limiter().core.prefix, self.inputs.subjects()?);
        let keys = Call::new(self.policy(), &subjects, self.options).keys(prefix);
        let joined = keys.fold(String::new(), |joined, key| joined + key.as_str() + "\n");
        Ok(if is_own_thread() { joined + "blocking" } else { joined }.into())
    }
}

impl Core {
    /// The time in which a caller behind `head` can be served, until `deadline_us`. A decision that begins at
    /// `deadline_us` may still take the deadline of the store.
    fn wait_span(&self, policy: &Policy, head: QueueHead, deadline_us: u64) -> WaitSpan {
        let now_us = self.clock.now_us();
        let patience = self.stack.store().deadline_of(policy).unwrap_or_default();
        WaitSpan {
            from_us: now_us.max(head.us),
            until_us: deadline_us.saturating_add(micros::from_duration(patience)),
            store_ahead: self.stack.store().now_us().cast_signed().wrapping_sub(now_us.cast_signed()),
        }
    }
}

/// Why a caller that sleeps wakes up.
#[derive(Clone, Copy, PartialEq)]
enum Wake {
    Time,
    Room,
    Rules,
}

/// Waits until there may be room, or until other rules are in force.
async fn first_wake(sleeper: &Sleeper<'_>, mut rules_changed: Pin<&mut impl Future<Output = ()>>) -> Wake {
    let mut woken = pin!(sleeper.woken());
    poll_fn(|context| match rules_changed.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(Wake::Rules),
        Poll::Pending => woken.as_mut().poll(context).map(|()| Wake::Room),
    })
    .await
}

/// Whether a denied call waits for a lease, or for the place of the one call that is tried after a pause.
fn waits_for_lease(denial: &Denial) -> bool {
    let is_full = |status: &RuleStatus| status.rule().role() == Role::Concurrency && status.remaining() == 0;
    match denial.kind() {
        RejectionKind::Concurrency => true,
        // If several limits deny the call, the one with the longest wait is reported, and it is not the lease.
        RejectionKind::Limited => false,
        RejectionKind::Paused => denial.is_by_probe(),
        _ => denial.report().iter().any(is_full),
    }
}

/// When a denied call is tried again.
#[derive(Clone, Copy)]
struct Retry {
    room: AwaitedRoom,
    at_us: u64,
    /// The earliest time at which there is room, as far as the store knows; 0 if unknown.
    earliest_us: u64,
    /// The position of the rule that denies it.
    rule: Option<usize>,
    /// How much has to be left by that rule.
    needed: u64,
}

impl Retry {
    /// Returns the retry, no later than the deadline; `None` if the deadline has passed, or if there is no room by
    /// then.
    fn by(self, now_us: u64, deadline_us: Option<u64>) -> Option<Self> {
        let latest_us = deadline_us.unwrap_or(u64::MAX);
        (self.earliest_us.max(now_us) <= latest_us).then_some(Self { at_us: self.at_us.min(latest_us), ..self })
    }

    /// Returns the retry for a lease, no later than the deadline: the wait is only an upper bound. `None` if the deadline
    /// has passed.
    fn freed_by(self, now_us: u64, deadline_us: Option<u64>) -> Option<Self> {
        let latest_us = deadline_us.unwrap_or(u64::MAX);
        (now_us < latest_us).then_some(Self { at_us: self.at_us.min(latest_us), ..self })
    }

    /// Returns what the other callers of the queue know about this one.
    fn head(self) -> QueueHead {
        QueueHead { us: self.earliest_us, rule: self.rule, needed: self.needed }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tallygate_rules::Rule;

    use crate::limiter::Limiter;
    use crate::policy::Policy;
    use crate::subject::Subject;

    #[cfg(feature = "redis")]
    #[test]
    fn a_caller_that_waits_for_a_lease_waits_for_the_tally_that_the_server_has() {
        use super::Attempt;

        let limiter = Limiter::builder().connect_lazy("redis://127.0.0.1:1/").unwrap();
        let window = || Rule::sliding_window(1_000, Duration::from_secs(60));
        let rules = [window(), window().counting("tokens"), Rule::concurrency(1, Duration::from_secs(30))];
        let policy = Policy::builder("p").rules(rules).rule_on("org", window()).prefetch(Duration::from_millis(100));
        let (policy, alice, org) = (policy.build().unwrap(), Subject::of("alice"), Subject::of("org"));
        let check = limiter.check(&policy, &alice).subject("org", &org);
        let (awaited, attempt) = (check.lease_keys().unwrap(), Attempt::new(&check).unwrap());
        let mut taken = attempt.call().stored().leases().unwrap().keys(&limiter.core.prefix);
        assert!(taken.all(|key| awaited.contains(&key)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_queue_is_removed_with_its_last_caller_however_that_one_leaves() {
        let limiter = Limiter::in_memory();
        let policy = Policy::builder("p").rule(Rule::sliding_window(1, Duration::from_secs(10))).build().unwrap();
        let subject = Subject::of("s");
        let lengths = || limiter.core.wait_queues.lengths();
        let second = Duration::from_secs(1);

        assert!(limiter.check(&policy, &subject).await.unwrap().is_allowed());
        assert_eq!(lengths(), [0_usize; 0], "a caller that is admitted at once joins no queue");
        for leaves_first in [0, 1] {
            let call = || {
                let (limiter, policy, subject) = (limiter.clone(), policy.clone(), subject.clone());
                tokio::spawn(async move { limiter.check(&policy, &subject).wait(20 * second).await.map(drop) })
            };
            // One call sleeps, and the other one is queued behind it.
            let mut waiting = vec![call(), call()];
            tokio::time::sleep(second).await;
            assert_eq!(lengths(), [2]);
            for (leaves, left) in [(leaves_first, &[1][..]), (0, &[])] {
                let waiting = waiting.remove(leaves);
                waiting.abort();
                assert!(waiting.await.unwrap_err().is_cancelled());
                assert_eq!(lengths(), left);
            }
        }
        assert!(limiter.check(&policy, &subject).wait(10 * second).await.unwrap().is_allowed());
        assert_eq!(lengths(), [0_usize; 0]);
    }
}
