//! `tallygate top`: who has used most.

pub(super) mod scope;
pub(super) mod usage;
pub(super) mod walk;

use std::cmp::Reverse;

use clap::Args;
use serde_json::{Value, json};
use tallygate::DeniedSubject;
use tallygate::admin::__shared::AskedCounts;

use self::scope::SubjectScope;
use self::usage::{Best, By, Ranking, Usage, place_cells};
use self::walk::walk;
use crate::connection::Connection;
use crate::counts::CountOptions;
use crate::failure::Failure;
use crate::fleet::Fleet;
use crate::live;
use crate::number::{self, counted, grouped};
use crate::output::Output;
use crate::progress::ProgressBar;
use crate::subject;
use crate::table::TextTable;

/// Show which subjects have used most of a policy, are denied longest, or were denied most often
///
/// Without a policy, the subjects of all policies are compared. The server is looked through in small steps with pauses, so that
/// other calls go on meanwhile.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TopCommand {
    /// The name of the policy; all policies unless it is given
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

    #[command(flatten)]
    counts: CountOptions,
}

const EXAMPLES: &str = "\
Examples:
  tallygate top
  tallygate top sms.send
  tallygate top sms.send --rule daily
  tallygate top sms.send --by wait --limit 5 --json
  tallygate top sms.send --by denied
  tallygate top api --by wait --plan paid";

impl TopCommand {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Output, Failure> {
        if self.by == By::Denied && self.rule.is_some() {
            return Err(Failure::usage("`--by denied` counts the denials of all rules together; leave `--rule` out"));
        }
        let asked = self.counts.asked();
        if !asked.is_empty() && self.policy.is_none() {
            return Err(Failure::usage("`--plan` and `--count` are about the rules of one policy; name the policy"));
        }
        if !asked.is_empty() && self.by == By::Denied {
            return Err(Failure::usage("`--by denied` lists what was denied; leave `--plan` and `--count` out"));
        }
        let fleet = Fleet::connect(connection).await?;
        let scope = self.scope(&fleet, &asked).await?;
        let ranking = match self.by {
            By::Denied => rank_denied(&fleet, &scope, self.limit).await?,
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

    async fn scope<'a>(&self, fleet: &'a Fleet<'_>, asked: &AskedCounts) -> Result<SubjectScope<'a>, Failure> {
        let Some(policy) = &self.policy else { return SubjectScope::all(fleet) };
        let listed = fleet.find_with(policy, asked)?;
        match &self.rule {
            Some(rule) => SubjectScope::of_rule(fleet, listed, rule).await,
            None => SubjectScope::of_policy(listed, self.on.as_deref()),
        }
    }

    async fn rank(&self, fleet: &Fleet<'_>, scope: &SubjectScope<'_>) -> Result<Ranking, Failure> {
        let mut best = Best::new(self.by, self.limit);
        let mut progress = ProgressBar::by_share("subjects");
        let looked_at = walk(fleet, scope, |usage| best.add(usage), |done, share| progress.set(done, share)).await?;
        drop(progress);
        let found = best.found();
        let top = found.iter().map(Usage::json).collect();
        Ok(Ranking { text: self.text(scope, &found, looked_at), top, subjects: looked_at })
    }

    fn text(&self, scope: &SubjectScope<'_>, found: &[Usage], looked_at: u64) -> String {
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

/// Returns the subjects that were denied most often within this hour and the one before.
async fn rank_denied(fleet: &Fleet<'_>, scope: &SubjectScope<'_>, limit: usize) -> Result<Ranking, Failure> {
    let mut all = Vec::new();
    for policy in scope.policies() {
        // All are listed, because subjects of other labels may come first.
        let listed = fleet.limiter.top_denied(policy, usize::MAX).await?;
        let is_meant = |denied: &DeniedSubject| scope.only().is_none_or(|place| denied.label() == place.label);
        all.extend(listed.into_iter().filter(is_meant));
    }
    // The subjects of one policy are in this order already.
    all.sort_by_key(|denied| Reverse(denied.denials()));
    let (subjects, found) = (all.len() as u64, &all[..limit.min(all.len())]);
    Ok(Ranking { text: denied_text(scope, found, subjects), top: found.iter().map(denied_json).collect(), subjects })
}

fn denied_json(denied: &DeniedSubject) -> Value {
    json!({
        "policy": denied.policy(),
        "label": denied.label(),
        "subject": denied.subject().to_string(),
        "denials": denied.denials(),
    })
}

fn denied_text(scope: &SubjectScope<'_>, found: &[DeniedSubject], all: u64) -> String {
    if all == 0 {
        let of = scope.only().map(|place| format!(" of {}", place.listed.described.name())).unwrap_or_default();
        return format!(
            "no denied subject{of} is known; programs keep them if `LimiterBuilder::denied_subjects` says how many\n"
        );
    }
    let mut table = TextTable::default();
    for denied in found {
        let [policy, label] = place_cells(denied.policy(), denied.label(), scope.only().is_none());
        let subject = subject::name(&denied.subject().to_string()).to_owned();
        table.push([policy, label, subject, format!("at least {} denied", counted(denied.denials(), "call"))]);
    }
    let shown = grouped(found.len() as u64);
    format!("{}{shown} of {} within this hour and the one before\n", table.text(), counted(all, "subject"))
}
