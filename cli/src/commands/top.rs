//! `tallygate top`: who has used most.

mod denied;
mod ranking;
mod scope;
mod usage;

use clap::Args;
use futures_util::future::try_join_all;
use serde_json::json;
use tallygate::{BackendError, Rule, Subject};

use self::ranking::Ranking;
use self::scope::{Place, Scope};
use self::usage::{Best, By, Usage};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::fleet::Fleet;
use crate::live;
use crate::number::{self, counted, grouped};
use crate::output::Output;
use crate::progress::ProgressBar;

/// How many subjects are asked for at once: it takes the server a small part of a millisecond.
const TOGETHER: usize = 16;

/// Show which subjects have used most of a policy, are denied longest, or were denied most often
///
/// Without a policy, the subjects of all policies are compared. The server is looked through in small steps with pauses, so that
/// other calls go on meanwhile.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TopCommand {
    /// The name of the policy; all policies unless it is said
    #[arg(add = live::policies())]
    policy: Option<String>,

    /// What comes first
    #[arg(long, value_enum, default_value_t = By::Used)]
    by: By,

    /// How many subjects to show
    #[arg(long, default_value_t = 20, value_parser = number::at_least_one)]
    limit: usize,

    /// The subjects of rules with a key of their own, by their label
    #[arg(long, value_name = "LABEL", requires = "policy", add = live::labels())]
    on: Option<String>,

    /// Look at one rule alone: its name, or its position
    #[arg(long, value_name = "RULE", requires = "policy", conflicts_with = "on", add = live::rules())]
    rule: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  tallygate top
  tallygate top sms.send
  tallygate top sms.send --rule daily
  tallygate top sms.send --by wait --limit 5 --json
  tallygate top sms.send --by denied";

impl TopCommand {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Output, Failure> {
        if self.by == By::Denied && self.rule.is_some() {
            return Err(Failure::usage("`--by denied` counts the denials of all rules together; leave `--rule` out"));
        }
        let fleet = Fleet::connect(connection).await?;
        let scope = self.scope(&fleet).await?;
        let ranking = match self.by {
            By::Denied => denied::rank(&fleet, &scope, self.limit).await?,
            By::Used | By::Wait => self.rank(&fleet, &scope).await?,
        };
        let json = json!({
            "policy": self.policy,
            "label": scope.only().and_then(|place| place.label),
            "rule": self.rule,
            "subjects": ranking.subjects,
            "top": ranking.top,
            "left_out": scope.left_out,
        });
        Ok(Output::done(ranking.text + &Fleet::left_out(&scope.left_out), json))
    }

    async fn scope<'a>(&self, fleet: &'a Fleet<'_>) -> Result<Scope<'a>, Failure> {
        match (&self.policy, &self.rule) {
            (Some(policy), Some(rule)) => Scope::of_rule(fleet, policy, rule).await,
            (Some(policy), None) => Scope::of_policy(fleet, policy, self.on.as_deref()),
            (None, _) => Scope::all(fleet),
        }
    }

    async fn rank(&self, fleet: &Fleet<'_>, scope: &Scope<'_>) -> Result<Ranking, Failure> {
        let mut tallies = scope.tallies(fleet)?;
        let mut best = Best::new(self.by, self.limit);
        let mut progress = ProgressBar::of("subjects");
        let mut looked_at = 0;
        while let Some(page) = tallies.next_page().await? {
            let found: Vec<_> = page.found().collect();
            for some in found.chunks(TOGETHER) {
                for usage in look(fleet, scope, some).await? {
                    best.add(usage);
                }
                looked_at += some.len() as u64;
            }
            progress.set(looked_at, page.progress());
        }
        drop(progress);
        let found = best.found();
        let top = found.iter().map(Usage::json).collect();
        Ok(Ranking { text: self.text(scope, &found, looked_at), top, subjects: looked_at })
    }

    fn text(&self, scope: &Scope<'_>, found: &[Usage], looked_at: u64) -> String {
        let all = counted(looked_at, "subject");
        let rule = self.rule.as_ref().map(|rule| format!("rule {rule} of ")).unwrap_or_default();
        let of = |word: &str| self.policy.as_ref().map(|policy| format!(" {word} {rule}{policy}")).unwrap_or_default();
        match (self.by, found.len()) {
            (By::Used, 0) => format!("nobody has used anything{}; {all} looked at\n", of("of")),
            (By::Wait | By::Denied, 0) => format!("nobody is denied{}; {all} looked at\n", of("by")),
            (_, shown) => format!("{}{} of {all}\n", usage::table(found, scope).text(), grouped(shown as u64)),
        }
    }
}

/// Finds out where some subjects stand.
async fn look(fleet: &Fleet<'_>, scope: &Scope<'_>, some: &[(usize, &Subject)]) -> Result<Vec<Usage>, BackendError> {
    let places: Vec<_> = scope.places().collect();
    let known = some.iter().filter_map(|(place, subject)| Some((places.get(*place)?, *subject)));
    try_join_all(known.map(|(place, subject)| look_at(fleet, scope, *place, subject))).await
}

async fn look_at(
    fleet: &Fleet<'_>,
    scope: &Scope<'_>,
    place: Place<'_>,
    subject: &Subject,
) -> Result<Usage, BackendError> {
    let Place { listed, label } = place;
    // The other subjects of a call are placeholders, and their rules are left out of what is shown.
    let placeholder = Subject::everyone();
    let of = |other: Option<&str>| if other == label { subject } else { &placeholder };
    let labels = listed.described.subjects().map(|subject| subject.label());
    let call = fleet.limiter.peek(&listed.policy, of(None));
    let call = labels.fold(call, |call, other| call.subject(other, of(Some(other))));
    let decision = call.clone().await?;
    // An override may have more rules than the policy, or fewer.
    let labels = call.labels()?;
    let is_shown = |position: usize, rule: &Rule| {
        let counts_it = labels.get(position).is_some_and(|other| other.as_deref() == label);
        counts_it && scope.has(position, rule)
    };
    // A ban is no rule's.
    let shows_ban = scope.rule.is_none() && label.is_none();
    Ok(Usage::new(place, subject, &decision, is_shown, shows_ban))
}
