//! Calls whose subjects are in several slots, in a cluster or behind a proxy in front of one.
//!
//! First, all parts of a call are peeked at. They are charged only if all admit the call, so a denied call takes
//! nothing from other calls. If another call comes in between, a part may be denied when it is charged; then the other
//! parts are refunded. A part is decided again when it is charged, so no subject ever exceeds its rules.
//!
//! A part is what of the call is in one slot: the calls and the units of one subject, or those of several.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::join_all;
use tallygate_rules::{Role, Rule};
use tokio::sync::oneshot;

use crate::call::{Call, CallOptions, OwnedCall, Slot};
use crate::decision::{AdmittedAt, PauseSource, Recount, Report, Wait};
use crate::error::BackendError;
use crate::observe::report;
use crate::policy::Policy;
use crate::store::answer::{Answer, Outcome};
use crate::store::outcome_builder::OutcomeBuilder;
use crate::store::redis::connection::connect::late;
use crate::store::redis::connection::fault::{is_cross_slot, is_try_again};
use crate::store::redis::connection::real_time;
use crate::store::redis::deployment::Deployment;
use crate::system::under_way::TaskKind;
use crate::system::{Instant, sleep};

/// How long to wait before a lease is given back again after a failure.
const PAUSE: Duration = Duration::from_millis(500);

/// A call that has to be counted, even if its caller gives up.
struct CountedCall {
    deployment: Deployment,
    request: OwnedCall,
    division: Division,
    until: Instant,
    /// How long each request to undo a count may take.
    patience: Duration,
}

/// What is left to do for a call that was not admitted.
struct Undo {
    /// The parts that were charged, by their index, and the time of each.
    charged: Vec<(usize, u64)>,
    /// Whether the denial is still to be counted towards a ban.
    counts_denial: bool,
}

type SlotAnswer = Result<Answer, BackendError>;

/// How a call is divided into parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Division {
    /// Neighbours in one slot are one part.
    BySlot,
    /// Each subject is a part: while a slot moves, its keys are in two places, and a proxy may have other slots.
    BySubject,
}

impl Division {
    fn parts<'a>(self, request: Call<'a>, prefix: &str) -> Vec<Call<'a>> {
        if self == Self::BySubject {
            return request.parts().collect();
        }
        // Leases are given back and not refunded, so they are parts of their own.
        let slots = request.tally_ids().map(|id| (Slot::of(id.key(prefix).as_str()), id.group.lease_us.is_some()));
        let slots: Vec<_> = slots.enumerate().collect();
        let runs = slots.chunk_by(|(_, one), (_, next)| one == next);
        runs.filter_map(|run| Some(request.parts_between(run.first()?.0, run.last()?.0))).collect()
    }
}

impl Deployment {
    /// Decides a call: as a whole if all its subjects are in one slot, otherwise in parts.
    pub(super) async fn decide_by_slot(&self, request: Call<'_>, until: Instant, patience: Duration) -> SlotAnswer {
        match self.decide_in_slots(request, until, patience).await {
            // While a slot moves, a server does not look for keys that are apart, such as a tally and a pause.
            Err(error) if request.pause().is_some() && are_apart(&error) => {
                self.decide_behind_pause(request, until, patience).await
            }
            decided => decided,
        }
    }

    /// Decides a call after a question about its pause alone.
    async fn decide_behind_pause(&self, request: Call<'_>, until: Instant, patience: Duration) -> SlotAnswer {
        if let Some(id) = request.pause() {
            let key = id.key(&self.setup().prefix);
            let outcome = self
                .ask(
                    |_| Slot::of(key.as_str()),
                    until,
                    |step| step.pause(request.policy, id, 0, PauseSource::default()),
                )
                .await;
            match outcome.map_err(BackendError::into_refusal)?.0 {
                Outcome::Admitted => {}
                paused => return Ok(Answer::new(paused, Report::default(), 0)),
            }
        }
        let options = CallOptions { ignores_pause: true, ..request.options };
        self.decide_in_slots(Call { options, ..request }, until, patience).await
    }

    async fn decide_in_slots(&self, request: Call<'_>, until: Instant, patience: Duration) -> SlotAnswer {
        if has_one_slot(request, &self.setup().prefix) {
            match self.decide_one(request, until).await {
                Err(error) if request.subjects.len() > 1 && are_apart(&error) => {}
                decided => return decided,
            }
        } else {
            match self.decide_parts(request, Division::BySlot, until, patience).await {
                // Nothing stays counted: see `finish`.
                Err(error) if are_apart(&error) => {}
                decided => return decided,
            }
        }
        self.decide_parts(request, Division::BySubject, until, patience).await
    }

    async fn decide_parts(
        &self,
        request: Call<'_>,
        division: Division,
        until: Instant,
        patience: Duration,
    ) -> SlotAnswer {
        let peeked = self.ask_parts(request.peeked(), division, until).await;
        // A peek charges nothing, so its error is a refusal.
        let peeked: Vec<_> = peeked.into_iter().collect::<Result<_, _>>().map_err(BackendError::into_refusal)?;
        let peek = combine(request.policy, &peeked);
        let is_counted = match peek.outcome {
            Outcome::Admitted => request.counts(),
            Outcome::Denied { .. } => request.policy.ban().is_some() && !request.options.provisional,
            Outcome::Banned { .. } | Outcome::Paused { .. } | Outcome::Probing { .. } => false,
        };
        if request.options.peek || !is_counted {
            return Ok(peek);
        }
        if request.is_abandoned() {
            return Err(late().into_refusal());
        }
        let request = Call { awaited: None, ..request };
        let request = OwnedCall::new(request);
        let count = CountedCall { deployment: self.clone(), request, division, until, patience };
        let (answer, answered) = oneshot::channel();
        let driver = &self.setup().driver;
        driver.spawn(driver.runtimes.counted(TaskKind::Correction, async move {
            match peek.outcome {
                Outcome::Admitted => count.charge(peeked, answer).await,
                _ => count.finish(Undo { charged: Vec::new(), counts_denial: true }, Ok(peek), answer).await,
            }
        }));
        answered.await.unwrap_or_else(|_| Err(BackendError::away("redis: the runtime was shut down")))
    }

    /// Asks about all parts of a call at once.
    async fn ask_parts(&self, request: Call<'_>, division: Division, until: Instant) -> Vec<SlotAnswer> {
        let ask = async |part: Call<'_>| {
            let answer = self.decide_one(part, until).await?;
            let times = part.subjects.iter().map(|_| answer.at.us(0)).collect();
            Ok(Answer { at: AdmittedAt::Each(times), ..answer })
        };
        join_all(division.parts(request, &self.setup().prefix).into_iter().map(ask)).await
    }

    /// Decides a request whose subjects are in one slot.
    async fn decide_one(&self, request: Call<'_>, until: Instant) -> SlotAnswer {
        self.ask(|cluster| cluster.slot_of(request), until, |step| step.decide(request)).await
    }
}

/// Whether a server has refused a request, because it does not have all keys of it in one slot.
fn are_apart(error: &BackendError) -> bool {
    is_try_again(error) || is_cross_slot(error)
}

fn has_one_slot(request: Call<'_>, prefix: &str) -> bool {
    let mut slots = request.keys(prefix).map(|key| Slot::of(key.as_str()));
    let first = slots.next();
    slots.all(|slot| Some(slot) == first)
}

impl CountedCall {
    /// Charges all parts after the peek, and refunds them if one is denied.
    async fn charge(self, peeked: Vec<Answer>, answer: oneshot::Sender<SlotAnswer>) {
        let request = self.request.as_call();
        let charged = self.deployment.ask_parts(request, self.division, self.until).await;
        if charged.iter().all(|part| was_charged(part).is_some()) {
            let parts: Vec<_> = charged.into_iter().flatten().collect();
            let _ = answer.send(Ok(combine(request.policy, &parts)));
            return;
        }
        let times = || charged.iter().map(was_charged).enumerate();
        let rest = Undo {
            charged: times().filter_map(|(index, us)| Some((index, us?))).collect(),
            // If the main subject denies the call, it has already counted the denial.
            counts_denial: request.policy.ban().is_some()
                && !request.options.provisional
                && times().next().is_some_and(|(_, us)| us.is_some())
                && charged.iter().flatten().any(|part| matches!(part.outcome, Outcome::Denied { .. })),
        };
        let answered = denied(request.policy, charged, peeked);
        self.finish(rest, answered, answer).await;
    }

    /// Undoes what is left, and answers when that is done, or at the deadline. A call of which something may stay counted
    /// is not decided once more.
    async fn finish(self, rest: Undo, answered: SlotAnswer, answer: oneshot::Sender<SlotAnswer>) {
        let mut undone = pin!(self.undo(rest));
        let undoing = real_time::wait_for_bounded(self.until, undone.as_mut()).await;
        let _ = answer.send(if undoing == Some(true) { answered } else { answered.map_err(as_last) });
        if undoing.is_none() {
            undone.await;
        }
    }

    /// Refunds a part, or gives its lease back.
    async fn undo_one(&self, part: Call<'_>, charged_us: u64, until: Instant) -> Result<(), BackendError> {
        if let Some(lease_us) = part.groups().iter().find_map(|group| group.lease_us) {
            return self.give_back(part, Duration::from_micros(lease_us)).await;
        }
        let refunded = self
            .deployment
            .ask(|cluster| cluster.slot_of(part), until, |step| step.refund(part, &Recount::REFUND, charged_us))
            .await;
        let background = &self.deployment.setup().driver.runtimes.background;
        refunded.map(drop).inspect_err(|_| background.note_failed_correction())
    }

    /// Gives a lease back, and repeats that after failures until the lease ends by itself.
    async fn give_back(&self, part: Call<'_>, lease: Duration) -> Result<(), BackendError> {
        let ends = Instant::now() + lease;
        loop {
            let until = Instant::now() + self.patience;
            let leases = part.returned_leases(&self.deployment.setup().prefix);
            let given_back = self.deployment.give_back(&leases, until).await;
            if given_back.is_ok() || Instant::now() >= ends {
                return given_back;
            }
            sleep(PAUSE).await;
        }
    }

    /// Returns whether nothing stays counted.
    async fn undo(&self, rest: Undo) -> bool {
        let request = self.request.as_call();
        let until = Instant::now() + self.patience;
        let charged = |index: &usize| rest.charged.iter().find(|(charged, _)| charged == index);
        let parts = self.division.parts(request, &self.deployment.setup().prefix).into_iter().enumerate();
        let parts = parts.filter_map(|(index, part)| Some((part, charged(&index)?.1)));
        let refunded = join_all(parts.map(|(part, us)| self.undo_one(part, us, until))).await;
        let failed: Vec<_> = refunded.into_iter().filter_map(Result::err).collect();
        let is_undone = failed.is_empty();
        for error in failed {
            report(move || tracing::debug!(%error, "a call that was denied stays counted by one of its subjects"));
        }
        if let Some(denial) = request.as_denial().filter(|_| rest.counts_denial)
            && let Err(error) = self.deployment.decide_one(denial, until).await
        {
            report(move || tracing::debug!(%error, "a denial is not counted towards a ban"));
        }
        is_undone
    }
}

/// When a part was charged; `None` if it was not.
fn was_charged(part: &SlotAnswer) -> Option<u64> {
    let answer = part.as_ref().ok().filter(|answer| answer.outcome == Outcome::Admitted)?;
    Some(answer.at.us(0))
}

/// Returns the error without its mark that the call may be decided once more.
fn as_last(error: BackendError) -> BackendError {
    if !are_apart(&error) {
        return error;
    }
    BackendError::away(format!("{error}; what another server has counted of the call may stay counted"))
}

/// The answer to a call of which some parts could not be charged. Refunded parts report what the peek has found.
fn denied(policy: &Policy, charged: Vec<SlotAnswer>, peeked: Vec<Answer>) -> SlotAnswer {
    // An error comes first if it is unknown whether something was executed.
    let is_open = |error: &&BackendError| !error.is_refusal() && !are_apart(error);
    if let Some(error) = charged.iter().find_map(|part| part.as_ref().err().filter(is_open)) {
        return Err(error.clone());
    }
    let is_denied = charged.iter().flatten().any(|part| part.outcome != Outcome::Admitted);
    let parts = charged.into_iter().zip(peeked).map(|(charged, peeked)| {
        let charged = match charged {
            // Another part has denied the call, and counted that where there is a ban: it is not decided once more.
            Err(error) if is_denied && are_apart(&error) => return Ok(peeked),
            charged => charged?,
        };
        let is_refunded = charged.outcome == Outcome::Admitted;
        Ok(if is_refunded { Answer { report: peeked.report, ..charged } } else { charged })
    });
    Ok(combine(policy, &parts.collect::<Result<Vec<_>, BackendError>>()?))
}

/// Combines the answers to all parts of a call, in the order of the policy's groups, into the answer of a single
/// server.
fn combine(policy: &Policy, parts: &[Answer]) -> Answer {
    let at = AdmittedAt::Each(parts.iter().flat_map(|part| part.at.times()).copied().collect());
    let report: Vec<_> = parts.iter().flat_map(|part| part.report.rules()).cloned().collect();
    Answer { outcome: outcome(policy, parts), report: report.into(), at, lapse: Wait::NEVER }
}

fn outcome(policy: &Policy, parts: &[Answer]) -> Outcome {
    if let Some(paused) = parts.iter().map(|part| part.outcome).find(|outcome| outcome.is_by_pause()) {
        return paused;
    }
    // The index of a part stands for the place of its rule: the parts are in the order of the policy's groups.
    let mut builder = OutcomeBuilder::new();
    for (index, part) in parts.iter().enumerate() {
        builder.add_lapse(part.lapse);
        match part.outcome {
            Outcome::Denied { rule, retry_after } => match policy.rules().get(rule as usize).map(Rule::role) {
                Some(Role::Duplicate) => builder.add_duplicate_wait(index, retry_after),
                Some(Role::Concurrency) => builder.add_bound(index, retry_after),
                _ => builder.add_wait(index, retry_after),
            },
            Outcome::Banned { retry_after } => builder.add_ban(retry_after),
            _ => {}
        }
    }
    match (builder.build(), parts.get(builder.denying()).map(|part| part.outcome)) {
        (Outcome::Denied { retry_after, .. }, Some(Outcome::Denied { rule, .. })) => {
            Outcome::Denied { rule, retry_after }
        }
        (outcome, _) => outcome,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::error::BackendErrorKind;

    const SECOND: Duration = Duration::from_secs(1);

    /// Rules on the main subject at the positions 1 and 2, the second a duplicate rule, and on two others at 0 and 3.
    fn policy() -> Policy {
        let rule = |seconds: u32| Rule::sliding_window(1, seconds * SECOND);
        let builder = Policy::builder("p").rule_on("a", rule(9)).rule(rule(1)).rule(Rule::duplicate(3 * SECOND));
        builder.rule_on("b", Rule::duplicate(2 * SECOND)).build().unwrap()
    }

    fn seconds(wait: Option<u64>) -> Wait {
        wait.map_or(Wait::NEVER, |seconds| Wait::us(seconds * 1_000_000))
    }

    fn part(outcome: Outcome, lapse: Option<u64>) -> Answer {
        Answer { lapse: seconds(lapse), ..Answer::new(outcome, Report::default(), 7) }
    }

    fn denied(rule: usize, wait: Option<u64>) -> Outcome {
        Outcome::denied(rule, seconds(wait))
    }

    fn banned(wait: Option<u64>) -> Outcome {
        Outcome::Banned { retry_after: seconds(wait) }
    }

    fn combined(parts: [(Outcome, Option<u64>); 3]) -> Outcome {
        combine(&policy(), &parts.map(|(outcome, lapse)| part(outcome, lapse))).outcome
    }

    const ADMITTED: (Outcome, Option<u64>) = (Outcome::Admitted, None);

    fn apart() -> BackendError {
        let error = ::redis::ServerErrorKind::TryAgain;
        let error = ::redis::RedisError::from((error.into(), "multiple keys request during rehashing of slot"));
        BackendError::with_source(BackendErrorKind::Away, "redis: the slot moves", error)
    }

    #[test]
    fn a_call_that_a_part_denies_is_denied_though_the_slot_of_another_moves() {
        let peeked = vec![part(Outcome::Admitted, None); 3];
        let charged = [Ok(part(Outcome::Admitted, None)), Ok(part(denied(0, Some(9)), None)), Err(apart())];
        let answer = super::denied(&policy(), charged.to_vec(), peeked.clone()).unwrap();
        assert_eq!(answer.outcome, denied(0, Some(9)));
        let charged = [Ok(part(Outcome::Admitted, None)), Ok(part(Outcome::Admitted, None)), Err(apart())];
        assert!(are_apart(&super::denied(&policy(), charged.to_vec(), peeked.clone()).unwrap_err()));
        let lost = BackendError::away("redis: no answer");
        let charged = [Err(lost), Ok(part(denied(0, Some(9)), None)), Err(apart())];
        let error = super::denied(&policy(), charged.to_vec(), peeked).unwrap_err();
        assert_eq!(error.to_string(), "redis: no answer");
    }

    #[test]
    fn a_call_of_which_something_may_stay_counted_is_not_decided_once_more() {
        assert!(are_apart(&apart()) && !are_apart(&as_last(apart())));
        assert_eq!(as_last(BackendError::away("redis: no answer")).to_string(), "redis: no answer");
    }

    #[test]
    fn a_call_is_admitted_if_all_parts_are() {
        assert_eq!(combined([ADMITTED; 3]), Outcome::Admitted);
        assert_eq!(combined([ADMITTED, (Outcome::Admitted, Some(1)), ADMITTED]), Outcome::Admitted);
        let answer = combine(&policy(), &[(); 3].map(|()| part(Outcome::Admitted, None)));
        assert_eq!(answer.at, AdmittedAt::Each([7; 3].into()));
    }

    #[test]
    fn the_rule_with_the_longest_wait_is_reported_and_of_equal_ones_the_first() {
        for (first, second, reported) in
            [(Some(1), Some(2), 0), (Some(2), Some(2), 1), (None, Some(2), 1), (Some(1), None, 0)]
        {
            let longest = [first, second].into_iter().max_by_key(|wait| wait.unwrap_or(9)).flatten();
            let parts = [(denied(1, first), None), (denied(0, second), None), ADMITTED];
            assert_eq!(combined(parts), denied(reported, longest), "{first:?} {second:?}");
        }
    }

    #[test]
    fn a_duplicate_is_reported_before_all_others_and_waits_as_long_as_they_do() {
        assert_eq!(combined([(denied(1, Some(9)), None), ADMITTED, (denied(3, Some(2)), None)]), denied(3, Some(9)));
        assert_eq!(combined([(denied(2, Some(1)), None), ADMITTED, (denied(3, Some(2)), None)]), denied(2, Some(2)));
    }

    #[test]
    fn a_ban_goes_before_all_rules_and_waits_for_them() {
        assert_eq!(combined([(banned(Some(5)), None), (denied(0, Some(9)), None), ADMITTED]), banned(Some(9)));
        assert_eq!(combined([(banned(Some(5)), None), (denied(0, None), None), ADMITTED]), banned(None));
    }

    #[test]
    fn a_wait_in_which_another_part_lapses_is_for_ever() {
        let lapsing = |seconds| (Outcome::Admitted, Some(seconds));
        assert_eq!(combined([(denied(1, Some(5)), None), lapsing(6), ADMITTED]), denied(1, Some(5)));
        assert_eq!(combined([(denied(1, Some(5)), None), lapsing(5), ADMITTED]), denied(1, None));
        assert_eq!(combined([(banned(Some(5)), None), lapsing(6), lapsing(2)]), banned(None));
    }
}
