//! `tallygate override`: replaces rules while the programs run.

use std::time::Duration;

use clap::{ArgGroup, Args};
use serde_json::{Value, json};
use tallygate::admin::__shared as shared;
use tallygate::{Error, Override, OverrideBuilder, Rule, parse_rules};

use crate::confirmation::Confirmation;
use crate::connection::Connection;
use crate::failure::{Exit, Failure};
use crate::fleet::{Fleet, has_id, rule_id};
use crate::output::Output;
use crate::table::TextTable;
use crate::{duration, live, subject};

/// Let other rules decide in every process, until they expire or are cleared; asks first
///
/// The rules are written like `100 per 1h, 1000 per 1d`. They replace all rules of the policy on its main subject that count
/// the same units, or one of them with `--rule`. With `--shadow`, the policy denies nothing, and reports what it would deny.
/// Every process goes by it within about a second, two when it is idle. An override that there is for the same subjects is
/// replaced as a whole, also where it is of another rule.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("change").args(["rules", "shadow", "enforced"]).multiple(true))]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of the command")]
pub(crate) struct OverrideCommand {
    /// The name of the policy
    #[arg(add = live::policies(), required_unless_present = "list")]
    policy: Option<String>,

    /// The rules that are to decide; a count of 0 admits nothing
    #[arg(required_unless_present_any = ["list", "clear", "shadow", "enforced"], conflicts_with_all = ["list", "clear"])]
    rules: Option<String>,

    /// Put the whole policy in shadow: it denies nothing, and reports what it would deny
    #[arg(long, conflicts_with_all = ["list", "clear", "subject", "on", "enforced"])]
    shadow: bool,

    /// Enforce the whole policy where its program or a file puts it in shadow
    #[arg(long, conflicts_with_all = ["list", "clear", "subject", "on"])]
    enforced: bool,

    /// Replace one rule alone: its name, or its position
    #[arg(long, value_name = "RULE", requires = "rules", add = live::rules())]
    rule: Option<String>,

    /// For one subject alone, as `top` prints it: sms:13800000000
    #[arg(long, value_name = "SUBJECT")]
    subject: Option<String>,

    /// For the rules with a key of their own, by their label
    #[arg(long, value_name = "LABEL", add = live::labels())]
    on: Option<String>,

    /// For how long; until it is cleared unless it is given
    #[arg(long = "for", value_name = "DURATION", value_parser = duration::parse, requires = "change")]
    holds: Option<Duration>,

    /// List what is in force, of one policy or of all
    #[arg(long, conflicts_with_all = ["clear", "rule", "subject", "on", "holds"])]
    list: bool,

    /// Let the policy decide by its own rules again
    #[arg(long)]
    clear: bool,

    /// Also where no process has listed such a policy or rule
    #[arg(long, requires = "change")]
    allow_unknown: bool,

    #[command(flatten)]
    confirmation: Confirmation,
}

const EXAMPLES: &str = "\
Examples:
  tallygate override sms.send '100 per 1h' --for 2h --yes
  tallygate override sms.send '50 per 1d' --rule daily --yes
  tallygate override sms.send '20 per 1h' --subject sms:13800000000 --yes
  tallygate override sms.send --shadow --for 10m --yes
  tallygate override --list
  tallygate override sms.send --clear --yes";

impl OverrideCommand {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Output, Failure> {
        let fleet = Fleet::connect(connection).await?;
        match &self.policy {
            Some(policy) if self.clear => self.clear(&fleet, policy).await,
            Some(policy) if !self.list => self.set(&fleet, policy).await,
            only => list(&fleet, only.as_deref()).await,
        }
    }

    async fn set(&self, fleet: &Fleet<'_>, policy: &str) -> Result<Output, Failure> {
        if !self.allow_unknown && fleet.registered().find(policy).is_none() {
            return Err(fleet.unknown(policy));
        }
        let new = self.with_changes(self.target(fleet, policy)?)?;
        let new = if self.allow_unknown { new.allow_unknown() } else { new };
        new.check()?;
        let old = new.clone().get().await?;
        let replaced = old.as_ref().map(|old| format!(", in place of the override `{old}`")).unwrap_or_default();
        self.confirmation.ask(&format!("{}{}{replaced}?", self.in_words(fleet, policy), self.time()))?;
        new.clone().set().await.map_err(unanswered)?;
        // The override is in force even if it cannot be read now.
        let (text, set) = match new.clone().get().await {
            Ok(Some(set)) => (set.to_string(), shared::json::override_in_force(&set)),
            Ok(None) => ("it is over already".to_owned(), Value::Null),
            Err(_) => (self.as_given(), shared::json::unread_override(&new)),
        };
        let json = json!({ "set": set, "replaced": old.as_ref().map(shared::json::override_in_force) });
        Ok(Output::done(format!("{} is overridden: {text}{replaced}", self.shown(policy)), json))
    }

    async fn clear(&self, fleet: &Fleet<'_>, policy: &str) -> Result<Output, Failure> {
        let shown = self.shown(policy);
        let (label, subject) = (self.on.as_deref(), self.subject.as_deref());
        let target = shared::override_as_listed(&fleet.limiter, policy, label, subject)?;
        let old = target.clone().get().await;
        // A subject that fits no key is a mistake, unless there is an override for it.
        if matches!(old, Ok(None)) {
            self.target(fleet, policy).map(drop)?;
        }
        // An override that cannot be read, or is beyond the bound, is cleared unseen: that is its remedy.
        let old = old.ok().flatten();
        let known = old.as_ref().map(|old| format!(" `{old}`")).unwrap_or_default();
        self.confirmation.ask(&format!("Clear the override{known} of {shown}?"))?;
        if !target.clone().clear().await.map_err(unanswered)? {
            self.target(fleet, policy).map(drop)?;
            check_spelling(fleet, policy, label).await?;
            return Ok(Output::done(format!("nothing overrides {shown}"), json!({ "cleared": null })));
        }
        let unread = || shared::json::unread_override(&target);
        let cleared = old.as_ref().map_or_else(unread, shared::json::override_in_force);
        Ok(Output::done(format!("{shown} decides by its own rules again"), json!({ "cleared": cleared })))
    }

    /// Returns the change in the words of the question: `Let 100 per 1h decide in place of sms.send (10 per 1h)`.
    fn in_words(&self, fleet: &Fleet<'_>, policy: &str) -> String {
        let which = self.rule.as_ref().map(|rule| format!("rule {rule} of ")).unwrap_or_default();
        let shown = self.shown(policy);
        let rules = self.rules.as_ref().map(|rules| {
            format!("Let `{rules}` decide in place of {which}{shown}{}", self.replaced_rules(fleet, policy))
        });
        match rules {
            Some(rules) if self.shadow => format!("{rules}, in shadow"),
            Some(rules) if self.enforced => format!("{rules}, enforced"),
            Some(rules) => rules,
            None if self.shadow => format!("Put {shown} in shadow, so that it denies nothing,"),
            None => format!("Enforce {shown}, so that it denies calls"),
        }
    }

    /// Returns the override as the command line gives it: `daily = 50 per 1d for 2h`.
    fn as_given(&self) -> String {
        let which = self.rule.as_ref().map(|rule| format!("{rule} = ")).unwrap_or_default();
        let rules = self.rules.as_ref().map(|rules| format!("{which}{rules}"));
        let shadow = [(self.shadow, "shadow"), (self.enforced, "enforced")];
        let shadow = shadow.into_iter().filter(|(is_given, _)| *is_given).map(|(_, word)| word.to_owned());
        rules.into_iter().chain(shadow).collect::<Vec<_>>().join(", ") + &self.time()
    }

    fn time(&self) -> String {
        self.holds.map(|time| format!(" for {}", duration::shown(time))).unwrap_or_default()
    }

    /// Starts an override of the policy as it is listed.
    fn target<'a>(&self, fleet: &'a Fleet<'_>, policy: &str) -> Result<OverrideBuilder<'a>, Failure> {
        let (label, subject) = (self.on.as_deref(), self.subject.as_deref());
        let Some(described) = fleet.registered().find(policy) else {
            return Ok(shared::override_as_listed(&fleet.limiter, policy, label, subject)?);
        };
        let target = label.into_iter().fold(described.override_rules(&fleet.limiter), OverrideBuilder::label);
        Ok(match subject {
            Some(text) => target.subject(&subject::whole(fleet, described, label, text)?),
            None => target,
        })
    }

    fn with_changes<'a>(&self, target: OverrideBuilder<'a>) -> Result<OverrideBuilder<'a>, Failure> {
        let target = match (self.shadow, self.enforced) {
            (true, _) => target.shadow(),
            (_, true) => target.enforced(),
            _ => target,
        };
        let (Some(rules), Some(id)) = (&self.rules, &self.rule) else {
            return shared::rules_for(target, self.rules.as_deref(), self.holds, "--for").map_err(Failure::usage);
        };
        let rule: Rule = rules.parse().map_err(|mistake| Failure::usage(format!("{mistake}")))?;
        Ok(self.holds.into_iter().fold(target.rule(rule_id(id), rule), OverrideBuilder::expires_in))
    }

    /// Returns the rules that the override replaces: ` (1 per 1m, 10 per 1d as daily)`.
    fn replaced_rules(&self, fleet: &Fleet<'_>, policy: &str) -> String {
        let Some(described) = fleet.registered().find(policy) else { return String::new() };
        // Rules of other units stay. Rules that cannot be read are refused later.
        let new = self.rules.as_deref().and_then(|rules| parse_rules(rules).ok()).unwrap_or_default();
        let is_of_unit = |rule: &Rule| new.is_empty() || new.iter().any(|new| new.unit() == rule.unit());
        let is_replaced = |position: usize, rule: &Rule| match &self.rule {
            Some(id) => has_id(rule, position, &rule_id(id)),
            None => described.label_of(position) == self.on.as_deref() && is_of_unit(rule),
        };
        let rules = described.rules().iter().enumerate().filter(|(position, rule)| is_replaced(*position, rule));
        let rules: Vec<_> = rules.map(|(_, rule)| rule.to_string()).collect();
        if rules.is_empty() { String::new() } else { format!(" ({})", rules.join(", ")) }
    }

    /// Returns the policy, the label and the subject in words.
    fn shown(&self, policy: &str) -> String {
        format!("{policy}{}", subject::place(self.on.as_deref(), self.subject.as_ref()))
    }
}

/// Notes that a change without an answer may have been made. The error of a refused change says so itself.
fn unanswered(error: Error) -> Failure {
    let failure = Failure::from(error);
    if failure.exit() == Exit::Away { Failure::amid_changes(failure) } else { failure }
}

async fn list(fleet: &Fleet<'_>, only: Option<&str>) -> Result<Output, Failure> {
    let all = fleet.limiter.overrides().await?;
    let meant: Vec<_> = all.iter().filter(|one| only.is_none_or(|name| one.policy() == name)).collect();
    let mut table = TextTable::default();
    for one in &meant {
        table.push(row(one));
    }
    let text = match only {
        Some(policy) if meant.is_empty() => {
            check_spelling(fleet, policy, None).await?;
            format!("no override of {policy} is in force")
        }
        None if meant.is_empty() => "no override is in force".to_owned(),
        _ => table.text(),
    };
    let overrides: Vec<_> = meant.into_iter().map(shared::json::override_in_force).collect();
    Ok(Output::done(text, json!({ "overrides": overrides })))
}

/// Fails if no process and no override has that name or label: it is probably misspelt.
async fn check_spelling(fleet: &Fleet<'_>, policy: &str, label: Option<&str>) -> Result<(), Failure> {
    let all = fleet.limiter.overrides().await?;
    let mut own = all.iter().filter(|one| one.policy() == policy);
    match (fleet.registered().find(policy), label) {
        (None, _) if own.next().is_none() => Err(fleet.unknown(policy)),
        (Some(described), Some(label)) => {
            let is_known = described.subjects().any(|subject| subject.label() == label);
            let is_known = is_known || own.any(|one| one.label() == Some(label));
            if is_known { Ok(()) } else { Err(Fleet::unknown_label(described, label)) }
        }
        _ => Ok(()),
    }
}

fn row(one: &Override) -> [String; 4] {
    let subject = one.subject().map(ToString::to_string);
    let subject = subject.as_deref().map_or("every subject", subject::name).to_owned();
    let label = one.label().map(|label| format!("on {label}")).unwrap_or_default();
    [one.policy().to_owned(), label, subject, one.to_string()]
}
