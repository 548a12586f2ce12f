//! `tallygate peek`: the state of a subject.

mod text;

use std::time::Duration;

use clap::Args;
use tallygate::admin::__shared::{OpenPolicy, Peeked};

use crate::connection::Connection;
use crate::counts::CountOptions;
use crate::failure::{Exit, Failure};
use crate::fleet::Fleet;
use crate::live;
use crate::output::Output;
use crate::screen::Screen;
use crate::subject::Who;
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
        Ok(Output::done(text::text(&peeked), peeked.json()).with_exit(exit))
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
