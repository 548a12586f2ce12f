//! The counts of a command, in place of those that each call gives.

use clap::Args;
use tallygate::admin::__shared::AskedCounts;

use crate::live;

/// Which counts are meant.
#[derive(Args, Debug)]
pub(crate) struct CountOptions {
    /// Where each call gives the count of a rule: the plan of a file whose counts decide; of several such rules, the one of that name, position or unit
    #[arg(long = "plan", value_name = "[RULE=]PLAN", value_parser = read_plan, add = live::plans())]
    plans: Vec<String>,

    /// Where each call gives the count of a rule: the count that decides; of several such rules, the one of that name, position or unit
    #[arg(long = "count", value_name = "[RULE=]COUNT", value_parser = read)]
    counts: Vec<(Option<String>, u64)>,
}

impl CountOptions {
    pub(crate) fn asked(&self) -> AskedCounts {
        // Only the policy knows where the name of a rule ends.
        let plans = self.plans.iter().map(|plan| (None, plan.clone())).collect();
        AskedCounts { plans, counts: self.counts.clone(), before_rule: "--count " }
    }
}

/// Reads `pro`, or `tokens=pro`.
fn read_plan(text: &str) -> Result<String, String> {
    if text.rsplit('=').next().is_none_or(|plan| plan.trim().is_empty()) {
        return Err("write the name of a plan, like pro, or tokens=pro for one of several rules".to_owned());
    }
    Ok(text.to_owned())
}

/// Reads `100`, or `calls=100`. A name may have an equals sign in it.
fn read(text: &str) -> Result<(Option<String>, u64), String> {
    let (rule, count) = text.rsplit_once('=').map_or((None, text), |(rule, count)| (Some(rule), count));
    let count = count.parse().map_err(|_| "write a whole number, like 100, or daily=100 for one of several rules")?;
    Ok((rule.map(str::to_owned), count))
}
