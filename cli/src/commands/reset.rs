//! `tallygate reset`: clears a subject.

use clap::Args;
use serde_json::json;

use crate::confirmation::Confirmation;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::fleet::Fleet;
use crate::live;
use crate::output::Output;
use crate::subject::{self, Who};

/// Forget what somebody has done under a policy, a ban included; asks first
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ResetCommand {
    /// The name of the policy
    #[arg(add = live::policies())]
    policy: String,

    #[command(flatten)]
    who: Who,

    /// Also forget what its other subjects have done, which others may share
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    confirmation: Confirmation,
}

const EXAMPLES: &str = "\
Examples:
  tallygate reset sms.send 13800000000 --yes
  tallygate reset sms.send --subject sms:13800000000 --yes";

impl ResetCommand {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Output, Failure> {
        if self.who.has_others() && !self.all {
            return Err(Failure::usage(
                "`--on` says other subjects, which are left alone; write `--all`, or leave it out",
            ));
        }
        let fleet = Fleet::connect(connection).await?;
        let listed = fleet.find(&self.policy)?;
        let policy = &self.policy;
        let has_main = listed.described.has_main_subject();
        if !has_main && !self.all {
            return Err(Failure::usage(format!(
                "the policy `{policy}` counts no main subject; write `--all` to forget what its other subjects have done"
            )));
        }
        let subjects = if self.all {
            self.who.subjects(&fleet, &listed)?
        } else {
            self.who.main.subjects(&fleet, &listed, None)?
        };
        let main = has_main.then(|| subjects.main());
        let others = subjects.others().filter(|_| self.all).map(|(_, subject)| subject);
        let names: Vec<_> = main.into_iter().chain(others).map(ToString::to_string).collect();
        let shown = names.iter().map(|subject| subject::name(subject)).collect::<Vec<_>>().join(", ");
        self.confirmation.ask(&format!("Forget what {shown} has done under {policy}?"))?;
        let check = subjects.check(&fleet.limiter, &listed.policy);
        let reset = if self.all { check.reset_all().await } else { check.reset().await };
        reset.map_err(Failure::amid_changes)?;
        let json = json!({ "policy": policy, "reset": names });
        Ok(Output::done(format!("{shown} starts again under {policy}"), json))
    }
}
