//! `tallygate ban` and `tallygate unban`: reject all calls of a subject for a while, or no longer.

use std::slice;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tallygate::admin::__shared::{OpenPolicy, check_ban_duration};

use crate::commands::bans;
use crate::confirmation::Confirmation;
use crate::connection::Connection;
use crate::duration;
use crate::failure::Failure;
use crate::fleet::Fleet;
use crate::number::counted;
use crate::output::Output;
use crate::subject::{self, MainTarget};

/// Ban somebody under a policy that has a ban; asks first
#[derive(Args, Debug)]
#[command(after_help = BAN_EXAMPLES)]
pub(crate) struct BanCommand {
    #[command(flatten)]
    target: MainTarget,

    /// For how long; the duration of the policy's ban unless it is given
    #[arg(long = "for", value_name = "DURATION", value_parser = duration::parse)]
    duration: Option<Duration>,

    #[command(flatten)]
    confirmation: Confirmation,
}

const BAN_EXAMPLES: &str = "\
Examples:
  tallygate ban login alice --for 1h --yes
  tallygate ban login alice --yes";

impl BanCommand {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Output, Failure> {
        let fleet = Fleet::connect(connection).await?;
        let MainTarget { policy, who } = &self.target;
        let listed = fleet.find(policy)?;
        let own = listed.ban_duration()?;
        let subjects = who.subjects(&fleet, &listed, None)?;
        let (time, subject) = (self.duration.unwrap_or(own), subjects.main().to_string());
        check_ban_duration(time, "--for", "tallygate unban").map_err(Failure::usage)?;
        let (shown, somebody) = (duration::shown(time), subject::name(&subject));
        self.confirmation.ask(&format!("Ban {somebody} under {policy} for {shown}?"))?;
        let banned = subjects.check(&fleet.limiter, &listed.policy).ban(time).await;
        banned.map_err(Failure::amid_changes)?;
        let json = json!({ "policy": policy, "banned": subject, "duration_ms": duration::ms(time) });
        Ok(Output::done(format!("{somebody} is banned under {policy} for {shown}"), json))
    }
}

/// End the ban of somebody, if there is one, or all bans of a policy; asks first
///
/// What the subject has used stays counted, so its rules may deny it still. `reset` ends the ban, too, and lets it start again.
#[derive(Args, Debug)]
#[command(after_help = UNBAN_EXAMPLES)]
pub(crate) struct UnbanCommand {
    #[command(flatten)]
    target: MainTarget,

    /// End the bans of all that `bans` lists under the policy
    #[arg(long, conflicts_with_all = ["values", "subject"])]
    all: bool,

    #[command(flatten)]
    confirmation: Confirmation,
}

const UNBAN_EXAMPLES: &str = "\
Examples:
  tallygate unban login alice --yes
  tallygate unban login --all --yes";

impl UnbanCommand {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Output, Failure> {
        let fleet = Fleet::connect(connection).await?;
        let listed = bans::find_with_ban(&fleet, &self.target.policy)?;
        if self.all { self.unban_all(&fleet, &listed).await } else { self.unban_one(&fleet, &listed).await }
    }

    async fn unban_one(&self, fleet: &Fleet<'_>, listed: &OpenPolicy<'_>) -> Result<Output, Failure> {
        let MainTarget { policy, who } = &self.target;
        let subjects = who.subjects(fleet, listed, None)?;
        let subject = subjects.main().to_string();
        let somebody = subject::name(&subject);
        self.confirmation.ask(&format!("End the ban of {somebody} under {policy}?"))?;
        let unbanned = subjects.check(&fleet.limiter, &listed.policy).unban().await;
        unbanned.map_err(Failure::amid_changes)?;
        let json = json!({ "policy": policy, "unbanned": [subject] });
        // The subject is empty where the policy counts all calls together.
        let target = subject::target(policy, &subject::words(fleet, listed, subjects.main()));
        let remains = format!("what it has used stays counted; to let it start again: tallygate reset {target}");
        Ok(Output::done(format!("{somebody} is not banned under {policy}\n{remains}"), json))
    }

    async fn unban_all(&self, fleet: &Fleet<'_>, listed: &OpenPolicy<'_>) -> Result<Output, Failure> {
        let policy = &self.target.policy;
        let found = bans::find(fleet, slice::from_ref(listed)).await?;
        let names: Vec<_> = found.bans.iter().map(|banned| banned.subject().to_string()).collect();
        if names.is_empty() {
            return Ok(Output::done(
                format!("nobody is banned under {policy}"),
                json!({ "policy": policy, "unbanned": names }),
            ));
        }
        let all = counted(names.len() as u64, "subject");
        self.confirmation.ask(&format!("End the bans of {all} under {policy}?"))?;
        for banned in &found.bans {
            let unbanned = fleet.limiter.check(&listed.policy, banned.subject()).unban().await;
            unbanned.map_err(Failure::amid_changes)?;
        }
        let json = json!({ "policy": policy, "unbanned": names });
        Ok(Output::done(format!("no longer banned under {policy}: {all}"), json))
    }
}
