//! `tallygate policies`: lists the policies.

use clap::Args;
use tallygate::admin::__shared::json;
use tallygate::admin::RegisteredPolicy;
use tallygate::{Override, PlanCounts, Rule};
use tallygate_rules::format_duration;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::fleet::Fleet;
use crate::number::grouped;
use crate::output::Output;
use crate::table::TextTable;
use crate::{duration, subject};

/// List the policies that processes have used within a week: keys, rules, and what overrides them
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PoliciesCommand {}

const EXAMPLES: &str = "\
Examples:
  tallygate policies
  tallygate policies --prefix shop --json";

impl PoliciesCommand {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Output, Failure> {
        let fleet = Fleet::connect(connection).await?;
        let all = fleet.limiter.overrides().await?;
        let registered = fleet.registered();
        let mut table = TextTable::default();
        for policy in registered.policies() {
            let own: Vec<_> = all.iter().filter(|one| one.policy() == policy.name()).collect();
            table.push([policy.name().to_owned(), keys(policy), rules(policy), overridden(&own)]);
        }
        let mut text = table.text();
        if registered.policies().is_empty() {
            text += &fleet.nothing_listed();
            text.push('\n');
        }
        text.extend(registered.unreadable().iter().map(|other| format!("{other}\n")));
        Ok(Output::done(text, json::policies(registered, &all)))
    }
}

/// Returns the key of the main subject, then those of the other subjects.
fn keys(policy: &RegisteredPolicy) -> String {
    let main = policy.has_main_subject().then(|| match policy.key() {
        Some("") => "everyone",
        Some(key) => key,
        None => "(key not known)",
    });
    let others = policy.subjects().map(|subject| subject.key().unwrap_or(subject.label()));
    main.into_iter().chain(others).collect::<Vec<_>>().join(" · ")
}

fn rules(policy: &RegisteredPolicy) -> String {
    let rule = |(position, rule): (usize, &Rule)| match policy.label_of(position) {
        Some(label) => format!("{rule} on {label}"),
        None => rule.to_string(),
    };
    let rules = policy.rules().iter().enumerate().map(rule);
    let ban = policy.ban().map(|ban| {
        let [within, duration] = [ban.within(), ban.duration()].map(duration::shown);
        format!("ban of {duration} for {} denials in {within}", ban.denials())
    });
    let pause = policy.longest_pause().map(|longest| format!("pausable for up to {}", format_duration(longest)));
    let prefetch = policy.prefetch().map(|ahead| format!("takes {} ahead", format_duration(ahead)));
    let shadow = policy.is_shadow().then(|| "shadow".to_owned());
    let plans: Vec<_> = policy.plans().map(|(plan, counts)| format!("{plan} {}", counts_of_plan(counts))).collect();
    let plans = Some(format!("plans: {}", plans.join(", "))).filter(|_| !plans.is_empty());
    rules.chain(plans).chain(ban).chain(pause).chain(prefetch).chain(shadow).collect::<Vec<_>>().join(" · ")
}

/// Returns `10,000`, or `20 calls and 60,000 tokens`.
fn counts_of_plan(counts: &PlanCounts) -> String {
    let counts = counts.counts().map(|(unit, count)| match unit {
        Some(unit) => format!("{} {unit}", grouped(count)),
        None => grouped(count),
    });
    counts.collect::<Vec<_>>().join(" and ")
}

fn overridden(own: &[&Override]) -> String {
    let text = |one: &&Override| format!("{one}{}", subject::place(one.label(), one.subject()));
    match own {
        [] => "override: none".to_owned(),
        some => format!("override: {}", some.iter().map(text).collect::<Vec<_>>().join(" · ")),
    }
}
