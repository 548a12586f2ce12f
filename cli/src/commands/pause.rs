//! `tallygate pause` and `tallygate resume`: close a subject for a while because the other side said so, or open it again.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use tallygate::Subject;
use tallygate::admin::__shared::{OpenPolicy, check_pause_length, held_pause};
use tallygate::admin::Subjects;

use crate::confirmation::Confirmation;
use crate::connection::Connection;
use crate::duration;
use crate::failure::Failure;
use crate::fleet::Fleet;
use crate::output::Output;
use crate::subject::{self, Main, MainTarget};

/// Pause somebody under a policy that can be paused, as the other side of the calls has said; asks first
///
/// It is of the main subject, or of the one that the policy lets be paused in its place. A pause does not shorten a longer one:
/// `resume` ends that.
#[derive(Args, Debug)]
#[command(after_help = PAUSE_EXAMPLES)]
pub(crate) struct PauseCommand {
    #[command(flatten)]
    target: MainTarget,

    /// For how long, at most the longest pause of the policy
    #[arg(long = "for", value_name = "DURATION", value_parser = duration::parse)]
    length: Duration,

    #[command(flatten)]
    confirmation: Confirmation,
}

const PAUSE_EXAMPLES: &str = "\
Examples:
  tallygate pause partner acme --for 30s --yes";

impl PauseCommand {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Output, Failure> {
        let fleet = Fleet::connect(connection).await?;
        let MainTarget { policy, who } = &self.target;
        let listed = fleet.find(policy)?;
        check_pause_length(self.length, listed.longest_pause()?, "--for", "tallygate resume")
            .map_err(Failure::usage)?;
        let (subjects, subject) = pausable(who, &fleet, &listed)?;
        let shown = duration::shown(self.length);
        let somebody = subject::name(&subject);
        self.confirmation.ask(&format!("Pause {somebody} under {policy} for {shown}?"))?;
        let check = || subjects.check(&fleet.limiter, &listed.policy);
        check().pause(self.length).await.map_err(Failure::amid_changes)?;
        let held = held_pause(check(), self.length).await;
        let json = json!({ "policy": policy, "paused": subject, "duration_ms": duration::ms(held) });
        let text = if held > self.length {
            format!("{somebody} stays paused under {policy} for {}, as a longer pause holds", duration::shown(held))
        } else {
            format!("{somebody} is paused under {policy} for {shown}")
        };
        Ok(Output::done(text, json))
    }
}

/// End the pause of somebody, if there is one; asks first
///
/// What the subject has used stays counted, so its rules may deny it still.
#[derive(Args, Debug)]
#[command(after_help = RESUME_EXAMPLES)]
pub(crate) struct ResumeCommand {
    #[command(flatten)]
    target: MainTarget,

    #[command(flatten)]
    confirmation: Confirmation,
}

const RESUME_EXAMPLES: &str = "\
Examples:
  tallygate resume partner acme --yes";

impl ResumeCommand {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Output, Failure> {
        let fleet = Fleet::connect(connection).await?;
        let MainTarget { policy, who } = &self.target;
        let listed = fleet.find(policy)?;
        listed.longest_pause()?;
        let (subjects, subject) = pausable(who, &fleet, &listed)?;
        let somebody = subject::name(&subject);
        self.confirmation.ask(&format!("End the pause of {somebody} under {policy}?"))?;
        let resumed = subjects.check(&fleet.limiter, &listed.policy).resume().await;
        resumed.map_err(Failure::amid_changes)?;
        let json = json!({ "policy": policy, "resumed": subject });
        Ok(Output::done(format!("{somebody} is not paused under {policy}"), json))
    }
}

/// Returns the subject that the policy lets be paused, among placeholders for the others, and its text.
fn pausable(who: &Main, fleet: &Fleet<'_>, listed: &OpenPolicy<'_>) -> Result<(Subjects, String), Failure> {
    let label = listed.policy.paused_label();
    let subjects = who.subjects(fleet, listed, label)?;
    let text = subjects.subject(label).map(Subject::to_string).unwrap_or_default();
    Ok((subjects, text))
}
