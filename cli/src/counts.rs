//! The counts of a command, in place of those that each call gives.

use clap::Args;
use tallygate::admin::__shared::AskedCounts;

use crate::live;

/// Which counts are meant.
#[derive(Args, Debug)]
pub(crate) struct CountOptions {
    /// Where each call gives the count of a rule: the plan of a file whose count decides
    #[arg(long, value_name = "PLAN", add = live::plans())]
    plan: Option<String>,

    /// Where each call gives the count of a rule: the count that decides; of several such rules, the one of that name or position
    #[arg(long = "count", value_name = "[RULE=]COUNT", value_parser = read)]
    counts: Vec<(Option<String>, u64)>,
}

impl CountOptions {
    pub(crate) fn asked(&self) -> AskedCounts {
        AskedCounts { plan: self.plan.clone(), counts: self.counts.clone() }
    }
}

/// Reads `100`, or `calls=100`. A name may have an equals sign in it.
fn read(text: &str) -> Result<(Option<String>, u64), String> {
    let (rule, count) = text.rsplit_once('=').map_or((None, text), |(rule, count)| (Some(rule), count));
    let count = count.parse().map_err(|_| "write a whole number, like 100, or daily=100 for one of several rules")?;
    Ok((rule.map(str::to_owned), count))
}
