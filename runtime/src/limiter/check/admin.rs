//! Administration of a call's subjects: removing their tallies, banning by hand, and pausing.

use std::time::Duration;

use super::attempt::Attempt;
use super::{Check, CheckSubjects};
use crate::context;
use crate::decision::{Pausable, PauseStatus};
use crate::error::BackendError;
use crate::observe::log;

/// How long a trace may deny the subjects of a change.
type Traced = Result<Option<Duration>, BackendError>;

const BAN_ENDED: &str = "a ban of a subject was ended, if there was one";

impl Check<'_> {
    /// Removes everything that the main subject of this call has done under this policy, its ban included.
    ///
    /// Other subjects of the call stay as they are, because they may be shared, like a network; the call need not name
    /// them. [`reset_all`](Self::reset_all) removes their tallies, too.
    ///
    /// An [override](crate::Limiter::override_policy) in force may have a tally of its own: both tallies are removed.
    ///
    /// Returns how long [what replaced subjects share](crate::guide::limitations#memory) in the memory of this process may deny the
    /// subject all the same, if nothing is added to that; `None` if it shares nothing. A [peek](crate::Limiter::peek) says whether it
    /// is denied now. With Redis, only the tallies for outages are in memory, so this is about calls in a next outage.
    ///
    /// # Errors
    ///
    /// The policy has no rule on the main subject, or the backend did not answer within the deadline. If only the
    /// overrides cannot be read, the tallies that this process knows of were removed.
    pub async fn reset(self) -> Result<Option<Duration>, BackendError> {
        self.inputs.subjects_filled_by_main()?;
        if self.policy().subject_labels().all(|label| label.is_some()) {
            let name = self.policy().name();
            return Err(BackendError::misuse(format!(
                "policy `{name}` has no rule on the main subject; `reset_all` resets the others"
            )));
        }
        let traced_for = self.reset_subjects(CheckSubjects::Main).await?;
        self.report_change("a subject was reset");
        Ok(traced_for)
    }

    /// Removes everything that every subject of this call has done under this policy, even of subjects that are shared
    /// with other callers. Returns the same as [`reset`](Self::reset), of all these subjects.
    ///
    /// # Errors
    ///
    /// The call left a subject of the policy out, or the backend did not answer within the deadline.
    pub async fn reset_all(self) -> Result<Option<Duration>, BackendError> {
        let traced_for = self.reset_subjects(CheckSubjects::All).await?;
        self.report_change("all subjects of a call were reset");
        Ok(traced_for)
    }

    async fn reset_subjects(&self, subjects: CheckSubjects) -> Traced {
        let mut reset = self.adopt_overrides().await.map(|()| None);
        let core = &self.limiter().core;
        for attempt in Attempt::in_force_and_own(self, subjects)? {
            // If one reset fails, the others still run: in an outage, this process has tallies of its own.
            for call in attempt.calls(subjects).into_iter().chain(attempt.trial_calls(subjects)) {
                reset = longest(core.reset(call).await, reset);
            }
        }
        reset
    }

    /// Bans the call's main subject for `duration`, as if its denials had led to it: for 3,660 days at most. A duration
    /// of zero ends the ban.
    ///
    /// # Errors
    ///
    /// The policy has no ban, the duration is too long, or the backend did not answer within the deadline.
    pub async fn ban(self, duration: Duration) -> Result<(), BackendError> {
        self.set_ban(duration).await?;
        self.report_change(if duration.is_zero() { BAN_ENDED } else { "a subject was banned" });
        Ok(())
    }

    /// Returns the same as [`reset`](Self::reset).
    async fn set_ban(&self, duration: Duration) -> Traced {
        let mut banned = self.adopt_overrides().await.map(|()| None);
        let core = &self.limiter().core;
        for attempt in Attempt::in_force_and_own(self, CheckSubjects::Main)? {
            banned = longest(core.ban(attempt.call(), duration).await, banned);
        }
        banned
    }

    /// Ends the ban of the call's main subject, if there is one. Its denials are counted anew.
    ///
    /// Its calls stay counted, so a subject that was banned for too many calls is still denied by the rules:
    /// [`reset`](Self::reset) ends the ban and removes the counts. Returns for how long what was left of replaced subjects,
    /// this one included, may still deny it.
    ///
    /// # Errors
    ///
    /// The policy has no ban, or the backend did not answer within the deadline.
    pub async fn unban(self) -> Result<Option<Duration>, BackendError> {
        let traced_for = self.set_ban(Duration::ZERO).await?;
        self.report_change(BAN_ENDED);
        Ok(traced_for)
    }

    /// Pauses the call's main subject for `length`: closed until then, because the other side said so. See
    /// [`PolicyBuilder::pausable`](crate::PolicyBuilder::pausable). If the policy lets [another
    /// subject](crate::PolicyBuilder::pausable_on) be paused, the call names all of its subjects, and that one is paused.
    ///
    /// A pause does not shorten a longer one, so that it may be said again by all who hear of it. It lasts no longer than
    /// the policy's [longest pause](crate::PolicyBuilder::longest_pause). This process honours it at once, also while Redis is
    /// away and whatever `on_outage` says, until its end or until Redis knows of no pause any more; others hear of it with
    /// their next question to Redis.
    ///
    /// # Errors
    ///
    /// * The policy cannot be paused, or the call left out a subject.
    /// * The backend did not answer within the deadline. This process honours the pause all the same, and sends it again with
    ///   later calls.
    pub async fn pause(self, length: Duration) -> Result<(), BackendError> {
        self.limiter().core.pause_by_hand(&self.pausable()?, length.into()).await?;
        self.report_change("a subject was paused");
        Ok(())
    }

    /// Ends the pause of the subject that [`pause`](Self::pause) pauses, if there is one, and opens it for all calls. They stay counted.
    /// Other processes may deny calls until their [cached denials](crate::LimiterBuilder::denial_cache) end.
    ///
    /// A pause that is stored later closes the subject again, also one that was said to another process before and could not be
    /// stored.
    ///
    /// # Errors
    ///
    /// The policy cannot be paused, the call left out a subject, or the backend did not answer within the deadline.
    pub async fn resume(self) -> Result<(), BackendError> {
        self.limiter().core.resume(&self.pausable()?).await?;
        self.report_change("the pause of a subject was ended, if there was one");
        Ok(())
    }

    /// Returns the pause of the subject that [`pause`](Self::pause) pauses, with who has said it; `None` if it is not paused. It asks
    /// the backend once. While that is away, it is what this process knows.
    ///
    /// # Errors
    ///
    /// The policy cannot be paused, or the call left out a subject; or the backend did not answer within the deadline, and no
    /// pause was said to this process.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tallygate::context::{self, Context};
    /// use tallygate::{Limiter, Policy, Rule, Subject};
    ///
    /// let (limiter, partner, second) = (Limiter::in_memory(), Subject::of("partner"), Duration::from_secs(1));
    /// let policy = Policy::builder("calls").rule(Rule::sliding_window(50, second)).pausable().build()?;
    /// let check = || limiter.check(&policy, &partner);
    /// assert_eq!(check().pause_status().await?, None);
    ///
    /// context::scope(Context::new().with("operator", "zoe"), check().pause(30 * second)).await?;
    /// let status = check().pause_status().await?.unwrap();
    /// assert_eq!((status.left(), status.operator(), status.field()), (30 * second, Some("zoe"), None));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn pause_status(self) -> Result<Option<PauseStatus>, BackendError> {
        self.limiter().core.pause_status(&self.pausable()?).await
    }

    fn pausable(&self) -> Result<Pausable, BackendError> {
        // The main subject stands in for those that the call left out.
        match self.policy().paused_label() {
            Some(_) => self.inputs.subjects()?,
            None => self.inputs.subjects_filled_by_main()?,
        };
        Pausable::new(self.policy(), self.inputs.paused_subject())
    }

    /// Reports a change to the log if the context names an operator. Without one, the program makes the change, perhaps
    /// often.
    fn report_change(&self, change: &str) {
        if let Some(operator) = context::operator() {
            log::changed_by_operator(self.policy().name(), change, Some(&operator));
        }
    }

    /// Returns the label of the subject that each rule counts, in the order of the
    /// [positions](crate::RuleStatus::position) of the rules; `None` is the main subject. The rules are those that
    /// decide this call, as far as this process knows now: the policy's own, or those of an
    /// [override](crate::Limiter::override_policy).
    ///
    /// # Errors
    ///
    /// The call left a subject of the policy out.
    #[cfg(feature = "admin")]
    pub fn labels(&self) -> Result<Vec<Option<String>>, BackendError> {
        let rules = Attempt::new(self)?.policy.effective_rules();
        Ok(rules.into_iter().map(|rule| rule.label).collect())
    }

    /// Adopts the overrides that are in force now: they may have tallies of their own, and a process that has decided
    /// nothing yet knows none of them.
    ///
    /// If that fails, the caller still changes the tallies that are known. Then the error says that there may be more.
    async fn adopt_overrides(&self) -> Result<(), BackendError> {
        self.limiter().core.overrides.adopt_for(self.policy()).await
    }
}

/// Joins the results of two changes: the longer time, or the first error.
fn longest(one: Traced, other: Traced) -> Traced {
    Ok(one?.max(other?))
}
