//! `tallygate peek`: the state of a subject.

use std::time::Duration;

use clap::Args;
use tallygate::admin::__shared::{OpenPolicy, Peeked, RuleState};
use tallygate::{Decision, Denial, PauseStatus, RejectionKind};
use tallygate_rules::format_duration;

use crate::connection::Connection;
use crate::counts::CountOptions;
use crate::failure::{Exit, Failure};
use crate::fleet::Fleet;
use crate::live;
use crate::number::grouped;
use crate::output::Output;
use crate::screen::Screen;
use crate::subject::Who;
use crate::table::TextTable;
use crate::{duration, number, screen};

/// Show whether a call would be admitted, and where every rule stands; nothing is counted
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PeekCommand {
    /// The name of the policy
    #[arg(add = live::policies())]
    policy: String,

    #[command(flatten)]
    who: Who,

    /// The weight of the call, or what it costs in a unit, like `tokens=500`; it may be given for each unit
    #[arg(long, value_name = "COST", value_parser = number::cost, add = live::units())]
    cost: Vec<(String, u64)>,

    #[command(flatten)]
    counts: CountOptions,

    /// Show it again and again, until `q` is pressed
    #[arg(long)]
    watch: bool,

    /// How long to wait before it is shown again: 50ms at least
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration::parse, requires = "watch")]
    every: Duration,
}

const EXAMPLES: &str = "\
Examples:
  tallygate peek sms.send 13800000000
  tallygate peek sms.send --subject sms:13800000000 --json
  tallygate peek sms.send 13800000000 --watch
  tallygate peek api alice --plan paid
  tallygate peek api alice --count 500

The exit code is 0 if the call would be admitted, and 1 if not, or if that depends on counts that each call gives, or on
subjects that are not given.";

impl PeekCommand {
    pub(crate) async fn run(&self, connection: &Connection, is_json: bool) -> Result<Output, Failure> {
        if self.watch && is_json {
            return Err(Failure::usage("`--watch` is for people; leave `--json` out"));
        }
        screen::check_interval(self.every)?;
        let fleet = Fleet::connect(connection).await?;
        let listed = fleet.find_with(&self.policy, &self.counts.asked())?;
        listed.check_costs(&self.cost).map_err(|mistake| Failure::usage(mistake.to_string()))?;
        if self.watch { self.watch(&fleet, &listed).await } else { self.look(&fleet, &listed).await }
    }

    async fn look(&self, fleet: &Fleet<'_>, listed: &OpenPolicy<'_>) -> Result<Output, Failure> {
        let subjects = self.who.subjects_partly(fleet, listed)?;
        let peeked = Peeked::look(&fleet.limiter, listed, subjects, self.cost.clone()).await?;
        let exit = if peeked.admitted() == Some(true) { Exit::Done } else { Exit::No };
        Ok(Output::done(text(&peeked), peeked.json()).with_exit(exit))
    }

    /// Shows the state until a key is pressed, or the error while the server is away.
    async fn watch(&self, fleet: &Fleet<'_>, listed: &OpenPolicy<'_>) -> Result<Output, Failure> {
        // A mistake in the arguments is reported before the screen opens.
        self.look(fleet, listed).await?;
        let screen = Screen::open("`--watch` needs a terminal; without it, the answer is printed once")?;
        loop {
            let text = match self.look(fleet, listed).await {
                Ok(output) => output.as_text(),
                Err(failure) => format!("{}\n", failure.text().unwrap_or_default()),
            };
            let every = duration::shown(self.every);
            screen.show(&format!("{}\n{text}\nevery {every}; q quits\n", self.policy))?;
            if screen.quits_within(self.every).await? {
                return Ok(Output::done("", serde_json::Value::Null));
            }
        }
    }
}

/// Returns the state for people.
fn text(peeked: &Peeked<'_>) -> String {
    let mut table = TextTable::default();
    for state in peeked.report() {
        table.push(row(&state));
    }
    let is_shadow = peeked.shadow() == Some(true);
    let verdict = match &peeked.decision {
        _ if peeked.admitted().is_none() => "undecided".to_owned(),
        Decision::Allowed(_) => "admitted".to_owned(),
        Decision::Denied(denial) if is_shadow => format!("would be {}{}", denied(denial), said(peeked)),
        Decision::Denied(denial) => format!("{}{}", denied(denial), said(peeked)),
    };
    let shadow = if is_shadow { " (shadow: nobody is rejected)" } else { "" };
    let prefetch = match peeked.listed.described.prefetch() {
        Some(ahead) => {
            format!("what processes took ahead, for at most {}, counts as used\n", format_duration(ahead))
        }
        None => String::new(),
    };
    let overrides = peeked.overrides.iter().map(|one| match one.subject() {
        None => format!("override: {one}\n"),
        Some(_) => format!("override for this subject: {one}\n"),
    });
    let tried = denied_in_shadow(&peeked.denied_in_shadow());
    let left_out = left_out(&peeked.left_out());
    let missing: String = peeked.missing.iter().map(|label| not_given(peeked, label.as_deref())).collect();
    format!("{verdict}{shadow}\n{tried}{left_out}{missing}{prefetch}{}{}", table.text(), overrides.collect::<String>())
}

/// `not given: network, which is {ip:subnet}; add its value, or --on network=…`
fn not_given(peeked: &Peeked<'_>, label: Option<&str>) -> String {
    // The label of a rule with its own key is that key, which is not written twice.
    let key = peeked.key(label).filter(|key| Some(*key) != label);
    let key = key.map(|key| format!(", which is {key}")).unwrap_or_default();
    let (subject, option) = match label {
        Some(label) => (label, format!("--on {label}=…")),
        None => ("the main subject", "--subject …".to_owned()),
    };
    if peeked.takes_values(label) {
        format!("not given: {subject}{key}; add its value, or {option}\n")
    } else {
        format!(
            "not given: {subject}{key}; only its program can write it; add {option}, as `tallygate top` prints it\n"
        )
    }
}

/// `in shadow, rule 1 would deny it`; nothing if no rule would.
fn denied_in_shadow(positions: &[usize]) -> String {
    match positions {
        [] => String::new(),
        positions => format!("in shadow, {} would deny it\n", rules(positions)),
    }
}

/// `this leaves out rule 0, as its count is the call's; say it by --plan or --count`; nothing if no rule is left out.
fn left_out(positions: &[usize]) -> String {
    let (whose, which) = match positions {
        [] => return String::new(),
        [_] => ("its count is", "it"),
        _ => ("their counts are", "them"),
    };
    format!("this leaves out {}, as {whose} the call's; say {which} by --plan or --count\n", rules(positions))
}

/// `rule 0`, or `the rules 0, 1 and 2`.
fn rules(positions: &[usize]) -> String {
    match positions {
        [only] => format!("rule {only}"),
        [first @ .., last] => {
            let first = first.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            format!("the rules {first} and {last}")
        }
        [] => "no rule".to_owned(),
    }
}

/// `denied for 41s by rule 0`, or `denied by rule 0 until a call is over`.
fn denied(denial: &Denial) -> String {
    let wait = denial.retry_after().map(duration::shown);
    let verb = match denial.kind() {
        RejectionKind::Banned => "banned",
        RejectionKind::Paused => "paused",
        _ => "denied",
    };
    let time = wait.map_or_else(|| "for good".to_owned(), |wait| format!("for {wait}"));
    let rule = denial.rule().map(|rule| {
        let name = rule.name().map(|name| format!(" ({name})")).unwrap_or_default();
        let unit = rule.unit().map(|unit| format!(", which counts {unit}")).unwrap_or_default();
        format!(" by rule {}{name}{unit}", rule.position())
    });
    let rule = rule.unwrap_or_default();
    match denial.kind() {
        RejectionKind::Duplicate => format!("{verb} {time}{rule}, as a duplicate"),
        // Nobody knows when a running call ends.
        RejectionKind::Concurrency if denial.retry_after().is_some() => format!("{verb}{rule} until a call is over"),
        _ => format!("{verb} {time}{rule}"),
    }
}

/// `, as zoe has said`, or `, as the field retry-after says`; nothing unless a pause says who has said it.
fn said(peeked: &Peeked<'_>) -> String {
    let by = |pause: &PauseStatus| match (pause.operator(), pause.field()) {
        (Some(operator), _) => Some(format!(", as {operator} has said")),
        (None, field) => field.map(|field| format!(", as the field {field} says")),
    };
    peeked.pause.as_ref().and_then(by).unwrap_or_default()
}

/// `0   1 per 1m   0 left   resets in 41s`, or `0   2 concurrent lease 30s   1 of 2 concurrent   leases end in 24s`.
fn row(state: &RuleState) -> [String; 4] {
    let verb = if state.rule.lease().is_some() { "leases end" } else { "resets" };
    let reset = match state.reset {
        None => String::new(),
        Some(Duration::ZERO) => "unused".to_owned(),
        Some(reset) => format!("{verb} in {}", duration::shown(reset)),
    };
    [state.position.to_string(), state.rule.to_string(), left(state), reset]
}

/// `4 left` or `4,000 tokens left`; `4 used` where each call gives the count; `1 of 2 concurrent` for concurrent calls.
fn left(state: &RuleState) -> String {
    let Some(used) = state.used.map(grouped) else { return String::new() };
    let unit = state.rule.unit().map(|unit| format!(" {unit}")).unwrap_or_default();
    match (state.limit.map(grouped), state.remaining.map(grouped)) {
        (Some(limit), _) if state.rule.lease().is_some() => format!("{used} of {limit} concurrent"),
        (_, Some(remaining)) => format!("{remaining}{unit} left"),
        _ if state.rule.lease().is_some() => format!("{used} concurrent"),
        _ => format!("{used}{unit} used"),
    }
}
