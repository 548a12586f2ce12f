//! `tallygate ban`: rejects all calls of somebody for a while.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use tallygate_rules::{MAX_PER, format_duration};

use crate::confirmation::Confirmation;
use crate::connection::Connection;
use crate::duration;
use crate::failure::Failure;
use crate::fleet::Fleet;
use crate::output::Output;
use crate::subject::{self, Main};

/// Ban somebody under a policy that has a ban; asks first
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BanCommand {
    /// The name of the policy
    policy: String,

    #[command(flatten)]
    who: Main,

    /// For how long; the duration of the policy's ban unless it is said
    #[arg(long = "for", value_name = "DURATION", value_parser = duration::parse)]
    duration: Option<Duration>,

    #[command(flatten)]
    confirmation: Confirmation,
}

const EXAMPLES: &str = "\
Examples:
  tallygate ban login alice --for 1h --yes
  tallygate ban login alice --yes";

impl BanCommand {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Output, Failure> {
        let fleet = Fleet::connect(connection).await?;
        let listed = fleet.find(&self.policy)?;
        let policy = &self.policy;
        let Some(ban) = listed.policy.ban() else {
            return Err(Failure::usage(format!("the policy `{policy}` has no ban, so nobody can be banned under it")));
        };
        let subjects = self.who.subjects(&fleet, &listed)?;
        let (time, subject) = (self.duration.unwrap_or(ban.duration()), subjects.main().to_string());
        if time.is_zero() {
            return Err(Failure::usage("a ban of no time ends the one that there is; write `tallygate unban`"));
        }
        if time > MAX_PER {
            let longest = format_duration(MAX_PER);
            return Err(Failure::usage(format!("a ban lasts {longest} at most; write `--for {longest}` or less")));
        }
        let (shown, somebody) = (duration::shown(time), subject::name(&subject));
        self.confirmation.ask(&format!("Ban {somebody} under {policy} for {shown}?"))?;
        let banned = subjects.check(&fleet.limiter, &listed.policy).ban(time).await;
        banned.map_err(|error| Failure::from(error).amid_changes())?;
        let json = json!({ "policy": policy, "banned": subject, "duration_ms": duration::ms(time) });
        Ok(Output::done(format!("{somebody} is banned under {policy} for {shown}"), json))
    }
}
