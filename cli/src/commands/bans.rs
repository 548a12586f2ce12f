//! `tallygate bans`: who is banned.

use clap::Args;
use serde_json::json;
use tallygate::Subject;
use tallygate::admin::__shared::{OpenPolicy, json};
use tallygate::admin::BannedSubject;

use crate::connection::Connection;
use crate::duration;
use crate::failure::Failure;
use crate::fleet::Fleet;
use crate::live;
use crate::number::{counted, grouped};
use crate::output::Output;
use crate::progress::ProgressBar;
use crate::subject;
use crate::table::TextTable;

/// List who is banned, under one policy or under all
///
/// Each line begins with the words that `unban` takes. The server is looked through in small steps with pauses, so that other
/// calls go on meanwhile.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BansCommand {
    /// The name of the policy; all policies unless it is given
    #[arg(add = live::policies())]
    policy: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  tallygate bans
  tallygate bans login --json";

pub(super) struct FoundBans {
    /// Ordered by policy, then by how long they are banned, the longest first.
    pub(super) bans: Vec<BannedSubject>,
    /// How many subjects were looked at.
    subjects: u64,
}

impl BansCommand {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Output, Failure> {
        let fleet = Fleet::connect(connection).await?;
        let (listed, left_out) = match &self.policy {
            Some(policy) => (vec![find_with_ban(&fleet, policy)?], Vec::new()),
            None => fleet.all()?,
        };
        let found = find(&fleet, &listed).await?;
        let bans: Vec<_> = found.bans.iter().map(json::banned).collect();
        let json = json!({ "bans": bans, "subjects": found.subjects, "left_out": left_out });
        Ok(Output::done(self.text(&fleet, &listed, &found) + &Fleet::left_out(&left_out), json))
    }

    fn text(&self, fleet: &Fleet<'_>, listed: &[OpenPolicy<'_>], found: &FoundBans) -> String {
        let all = counted(found.subjects, "subject");
        let (Some(first), banned) = (found.bans.first(), found.bans.len() as u64) else {
            let under = self.policy.as_ref().map(|policy| format!(" under {policy}")).unwrap_or_default();
            return format!("nobody is banned{under}; {all} looked at\n");
        };
        let words = |banned: &BannedSubject| {
            let listed = listed.iter().find(|listed| listed.described.name() == banned.policy());
            words(fleet, listed, banned.policy(), banned.subject())
        };
        let mut table = TextTable::default();
        for banned in &found.bans {
            let wait = banned.retry_after().map(|wait| format!("banned for {}", duration::shown(wait)));
            table.push([words(banned), wait.unwrap_or_else(|| "banned for good".to_owned())]);
        }
        let count = format!("{} of {all} banned; to end a ban: tallygate unban {}\n", grouped(banned), words(first));
        table.text() + &count
    }
}

/// Returns the policy of that name. Fails if it has no ban.
pub(super) fn find_with_ban<'a>(fleet: &'a Fleet<'_>, policy: &str) -> Result<OpenPolicy<'a>, Failure> {
    let listed = fleet.find(policy)?;
    listed.ban_duration()?;
    Ok(listed)
}

pub(super) async fn find(fleet: &Fleet<'_>, listed: &[OpenPolicy<'_>]) -> Result<FoundBans, Failure> {
    let mut steps = fleet.limiter.bans(listed.iter().map(|listed| &listed.policy));
    let mut progress = ProgressBar::by_share("subjects");
    let mut found = FoundBans { bans: Vec::new(), subjects: 0 };
    while let Some(page) = steps.next_page().await? {
        found.subjects += page.subjects() as u64;
        found.bans.extend_from_slice(page.bans());
        progress.set(found.subjects, page.progress());
    }
    let longest = |banned: &BannedSubject| banned.retry_after().map_or(u64::MAX, duration::ms);
    found.bans.sort_by_cached_key(|banned| {
        (banned.policy().to_owned(), u64::MAX - longest(banned), banned.subject().to_string())
    });
    Ok(found)
}

/// Returns the arguments of `unban` for this subject.
fn words(fleet: &Fleet<'_>, listed: Option<&OpenPolicy<'_>>, policy: &str, subject: &Subject) -> String {
    let subject = listed.map(|listed| subject::words(fleet, listed, subject)).unwrap_or_default();
    subject::target(policy, &subject)
}
