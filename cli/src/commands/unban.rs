//! `tallygate unban`: ends a ban.

use clap::Args;
use serde_json::json;

use crate::confirmation::Confirmation;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::fleet::Fleet;
use crate::output::Output;
use crate::subject::{self, Main};

/// End the ban of somebody, if there is one; asks first
///
/// What the subject has used stays counted, so its rules may deny it still. `reset` ends the ban, too, and lets it start again.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct UnbanCommand {
    /// The name of the policy
    policy: String,

    #[command(flatten)]
    who: Main,

    #[command(flatten)]
    confirmation: Confirmation,
}

const EXAMPLES: &str = "\
Examples:
  tallygate unban login alice --yes";

impl UnbanCommand {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Output, Failure> {
        let fleet = Fleet::connect(connection).await?;
        let listed = fleet.find(&self.policy)?;
        let policy = &self.policy;
        if listed.policy.ban().is_none() {
            return Err(Failure::usage(format!("the policy `{policy}` has no ban, so nobody is banned under it")));
        }
        let subjects = self.who.subjects(&fleet, &listed)?;
        let subject = subjects.main().to_string();
        let somebody = subject::name(&subject);
        self.confirmation.ask(&format!("End the ban of {somebody} under {policy}?"))?;
        let unbanned = subjects.check(&fleet.limiter, &listed.policy).unban().await;
        unbanned.map_err(|error| Failure::from(error).amid_changes())?;
        let json = json!({ "policy": policy, "unbanned": subject });
        // An empty subject is the one of a policy that counts all calls together.
        let reset = format!("tallygate reset {policy} {subject}");
        let remains = format!("what it has used stays counted; to let it start again: {}", reset.trim_end());
        Ok(Output::done(format!("{somebody} is not banned under {policy}\n{remains}"), json))
    }
}
