//! `tallygate top`: who has used most.

mod denied;
mod usage;

use clap::Args;
use futures_util::future::try_join_all;
use serde_json::json;
use tallygate::{BackendError, Subject};

use self::usage::{Best, By, Usage};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::fleet::{Fleet, FleetPolicy};
use crate::number::{self, counted, grouped};
use crate::output::Output;
use crate::progress::ProgressBar;

/// How many subjects are asked for at once: it takes the server a small part of a millisecond.
const TOGETHER: usize = 16;

/// Show which subjects of a policy have used most of it, are denied longest, or were denied most often
///
/// The server is looked through in small steps with pauses, so that other calls go on meanwhile.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TopCommand {
    /// The name of the policy
    policy: String,

    /// What comes first
    #[arg(long, value_enum, default_value_t = By::Used)]
    by: By,

    /// How many subjects to show
    #[arg(long, default_value_t = 20, value_parser = number::at_least_one)]
    limit: usize,

    /// The subjects of rules with a key of their own, by their label
    #[arg(long, value_name = "LABEL")]
    on: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  tallygate top sms.send
  tallygate top sms.send --by wait --limit 5 --json
  tallygate top sms.send --by denied";

impl TopCommand {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Output, Failure> {
        let fleet = Fleet::connect(connection).await?;
        let listed = fleet.find(&self.policy)?;
        let label = self.label(&listed)?;
        if self.by == By::Denied {
            return denied::denied(&fleet, &self.policy, label, self.limit).await;
        }
        let mut tallies = fleet.limiter.tallies(&listed.policy, label)?;
        let mut best = Best::new(self.by, self.limit);
        let mut progress = ProgressBar::of("subjects");
        let mut looked_at = 0;
        while let Some(page) = tallies.next_page().await? {
            for subjects in page.subjects().chunks(TOGETHER) {
                for usage in look(&fleet, &listed, label, subjects).await? {
                    best.add(usage);
                }
                looked_at += subjects.len() as u64;
            }
            progress.set(looked_at, page.progress());
        }
        drop(progress);
        let found = best.found();
        let top: Vec<_> = found.iter().map(Usage::json).collect();
        let json = json!({ "policy": self.policy, "label": label, "subjects": looked_at, "top": top });
        Ok(Output::done(self.text(&found, looked_at), json))
    }

    /// Returns the label of the subjects that are looked for: that of the only rules, if none is said.
    fn label<'a>(&'a self, listed: &FleetPolicy<'a>) -> Result<Option<&'a str>, Failure> {
        let labels: Vec<_> = listed.described.subjects().map(|subject| subject.label()).collect();
        match &self.on {
            Some(on) if labels.contains(&on.as_str()) => Ok(Some(on)),
            Some(on) => Err(Fleet::unknown_label(listed.described, on)),
            None if listed.described.has_main_subject() => Ok(None),
            None => Ok(labels.first().copied()),
        }
    }

    fn text(&self, found: &[Usage], looked_at: u64) -> String {
        let all = counted(looked_at, "subject");
        match (self.by, found.len()) {
            (By::Used, 0) => format!("nobody has used anything of {}; {all} looked at", self.policy),
            (By::Wait | By::Denied, 0) => format!("nobody is denied by {}; {all} looked at", self.policy),
            (_, shown) => format!("{}{} of {all}\n", usage::table(found).text(), grouped(shown as u64)),
        }
    }
}

/// Finds out where some subjects stand.
async fn look(
    fleet: &Fleet<'_>,
    listed: &FleetPolicy<'_>,
    label: Option<&str>,
    page: &[Subject],
) -> Result<Vec<Usage>, BackendError> {
    // The other subjects of a call are placeholders, and their rules are left out of what is shown.
    let placeholder = Subject::everyone();
    let look = async |subject: &Subject| {
        let of = |other: Option<&str>| if other == label { subject } else { &placeholder };
        let labels = listed.described.subjects().map(|subject| subject.label());
        let call = fleet.limiter.peek(&listed.policy, of(None));
        let call = labels.fold(call, |call, other| call.subject(other, of(Some(other))));
        let decision = call.clone().await?;
        // An override may have more rules than the policy, or fewer.
        let labels = call.labels()?;
        let counts_it = |position: usize| labels.get(position).is_some_and(|other| other.as_deref() == label);
        Ok(Usage::of(subject, &decision, &listed.varying, counts_it))
    };
    try_join_all(page.iter().map(look)).await
}
