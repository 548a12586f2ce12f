//! What a pause does to an attempt: it denies the call, or lets it be the one that is tried.

use super::Attempt;
use crate::call::{Call, CallOptions, LeaseName, TallyId};
use crate::decision::{DecidedBy, PauseSource, PauseTicket, ProbeName, Recount, RecountTicket, Report};
use crate::error::BackendError;
use crate::limiter::stack::Layers;
use crate::store::{Answer, Decider as _, KnownPause, LayeredAnswer, Outcome, PauseDue, ProbeStep};
use crate::system::under_way::TaskKind;
use crate::wait::Wait;

/// What the store has answered, and the place that the call has taken if it is tried after a pause.
type Asked = (Result<LayeredAnswer, BackendError>, Option<PauseTicket>);

/// The outcome of the next call that is tried after a pause.
const PLACE_IS_FREE: Outcome = Outcome::Probing { retry_after: Wait::NONE };

impl Attempt<'_> {
    /// What is to be done about the pause of the subject, unless the call is denied anyway.
    pub(super) fn due(&self) -> PauseDue {
        match (self.foregone, self.known) {
            (None | Some(Outcome::Paused { .. } | Outcome::Probing { .. }), Some(known)) => known.due,
            _ => PauseDue::Nothing,
        }
    }

    /// Sends the pause to the store once more.
    pub(super) fn send_pause_again(&self) {
        if let Some(id) = self.pause {
            self.core.send_pause_again(&self.policy, id);
        }
    }

    /// Denies the call by the pause that the store cannot be asked about.
    pub(super) fn believe_in_pause(&mut self) {
        if let Some(known) = self.known {
            self.deny_by(known.outcome());
        }
    }

    /// Tries the call after a pause that only this process can know of, or denies it because another one is tried.
    pub(super) fn try_here(&mut self) {
        let (Some(id), Some(known), None) = (self.pause, self.known, &self.probe) else { return };
        let name = LeaseName::next();
        let outcome = match known.outcome() {
            // A peek takes no place.
            PLACE_IS_FREE if self.options.peek => return,
            taken if self.options.peek => taken,
            _ => self.core.probe_here(id, name, ProbeStep::Take),
        };
        if outcome == PLACE_IS_FREE {
            self.probe = self.place(ProbeName::Here(name));
        } else if outcome.is_by_pause() {
            self.deny_by(outcome);
        }
    }

    /// Denies the call, and charges nothing.
    fn deny_by(&mut self, paused: Outcome) {
        self.foregone = Some(paused);
        self.options = CallOptions { peek: true, ignores_pause: true, lease: None, ..self.options };
    }

    /// Asks the store through the layers.
    pub(super) async fn ask(&self, layers: &Layers, call: Call<'_>) -> Asked {
        loop {
            let answered = match self.pause {
                // No rule in force counts the subject of the pause, so no script looks for that. Boxed, as this is rare.
                Some(id) if self.foregone.is_none() && call.pause().is_none() => {
                    Box::pin(ask_behind_pause(layers, call, id)).await
                }
                _ => layers.below().decide(call).await,
            };
            // The other futures are boxed, as they are rare.
            return match (self.pause, answered) {
                (Some(id), Ok(answered)) if answered.answer.outcome == PLACE_IS_FREE => {
                    match Box::pin(self.ask_as_probe(layers, call, id)).await {
                        Some(asked) => asked,
                        // It may have been paused again since it was opened.
                        None => continue,
                    }
                }
                (_, Ok(answered)) if needs_report(answered.answer.outcome, call.options) => {
                    (Ok(Box::pin(reported(layers, call, answered)).await), None)
                }
                (_, answered) => (answered, None),
            };
        }
    }

    /// Asks the store about a call that is tried after a pause; `None` if the subject was opened meanwhile. A peek takes no
    /// place.
    async fn ask_as_probe(&self, layers: &Layers, call: Call<'_>, id: TallyId<'_>) -> Option<Asked> {
        let options = CallOptions { ignores_pause: true, ..call.options };
        let tried = Call { options, ..call };
        if call.options.peek {
            return Some((layers.below().decide(tried).await, None));
        }
        let name = LeaseName::next();
        // If this future is dropped, or it is not known whether the call has the place, it is given back.
        let place = self.place(ProbeName::Stored(name));
        let taken = layers.server().probe(call.policy, id, name, ProbeStep::Take, call.until()).await;
        if let (Ok(before), Some(place)) = (&taken, &place)
            && *before != PLACE_IS_FREE
        {
            place.lose();
        }
        match taken {
            Ok(PLACE_IS_FREE) => Some((layers.below().decide(tried).await, place)),
            Ok(outcome) if outcome.is_by_pause() => {
                let paused = Answer::new(outcome, Report::default(), 0).into();
                let is_reported = needs_report(outcome, call.options);
                Some((Ok(if is_reported { reported(layers, call, paused).await } else { paused }), None))
            }
            Ok(_) => None,
            Err(error) => Some((Err(error), None)),
        }
    }

    /// Notes what the store has answered of the pause, and returns the outcome after that, or after what decides in its place.
    pub(super) fn hear_and_settle(&self, outcome: Outcome, decided_by: DecidedBy) -> Outcome {
        // If the outcome was known, the store was only asked for a report.
        let (None, Some(id)) = (self.foregone, self.pause) else { return self.foregone.unwrap_or(outcome) };
        if let (Some(asked_at), DecidedBy::Backend) = (self.asked_at, decided_by) {
            // A call that is tried is decided whatever is stored of the pause, which is over.
            let heard = if self.probe.is_some() { PLACE_IS_FREE } else { outcome };
            self.core.hear_of_pause(id, asked_at, heard);
        }
        if outcome.is_by_pause() {
            return outcome;
        }
        // A pause may have been said to this process while the call waited for the store.
        let known = self.core.known_pause(id).filter(|known| known.due != PauseDue::Probe);
        known.map_or(outcome, KnownPause::outcome)
    }

    /// Takes back, in the background, what was counted of a call that is not made.
    #[cold]
    pub(super) fn put_back(&self, mut ticket: RecountTicket) {
        self.core.runtimes.spawn_begun(TaskKind::Correction, async move {
            // If this fails, the call stays counted until it is out of its windows.
            let _ = ticket.recount(&Recount::REFUND).await;
        });
    }

    /// Returns what the permit needs to pause the subject; `None` if the call heeds no pause.
    pub(super) fn pause_ticket(&self) -> Option<PauseTicket> {
        Some(self.core.pause_ticket(&self.policy, self.pause?))
    }

    /// Returns what the permit of a call that is tried needs, too.
    fn place(&self, name: ProbeName) -> Option<PauseTicket> {
        let is_stored = matches!(name, ProbeName::Stored(_));
        let counted = is_stored.then(|| self.core.runtimes.background.begin(TaskKind::Lease));
        Some(self.pause_ticket()?.of_probe(name, counted))
    }
}

/// Whether a report is asked for that the answer does not have, because it is about a pause alone.
fn needs_report(outcome: Outcome, options: CallOptions) -> bool {
    outcome.is_by_pause() && options.report && !options.report_is_optional
}

/// Returns the answer to a paused call, with where its rules stand if the store says that.
async fn reported(layers: &Layers, call: Call<'_>, paused: LayeredAnswer) -> LayeredAnswer {
    let options = CallOptions { peek: true, ignores_pause: true, lease: None, ..call.options };
    match layers.below().decide(Call { options, ..call }).await {
        Ok(peeked) => {
            let answer = Answer { outcome: paused.answer.outcome, ..peeked.answer };
            LayeredAnswer { answer, ..paused }
        }
        Err(_) => paused,
    }
}

/// Asks whether the subject is paused, and decides the call if not: no script looks for this pause.
async fn ask_behind_pause(layers: &Layers, call: Call<'_>, id: TallyId<'_>) -> Result<LayeredAnswer, BackendError> {
    match layers.server().pause(call.policy, id, 0, PauseSource::default()).await?.0 {
        Outcome::Admitted => layers.below().decide(call).await,
        paused => Ok(Answer::new(paused, Report::default(), 0).into()),
    }
}
