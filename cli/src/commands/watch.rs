//! `tallygate watch`: the fleet on one screen.

mod board;
mod looks;
mod outages;
mod rates;
mod view;

use std::cell::RefCell;
use std::pin::pin;
use std::time::{Duration, Instant};

use clap::Args;
use futures_util::future::{Either, select};
use serde_json::Value;

use self::board::Board;
use self::looks::Looks;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::fleet::Fleet;
use crate::output::Output;
use crate::screen::{self, Screen};
use crate::{duration, number};

/// Show the fleet on one screen, until `q` is pressed: policies, denials per second, the busiest subjects, outages
///
/// Nothing is changed on the server. It is looked through for the busiest subjects in small steps with pauses, and then left
/// alone for four times as long. Denials are those that the programs publish, if they keep denied subjects.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WatchCommand {
    /// How long to wait before it is drawn again: 50ms at least
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration::parse)]
    every: Duration,

    /// How many subjects to show
    #[arg(long, default_value_t = 20, value_parser = number::at_least_one)]
    limit: usize,
}

const EXAMPLES: &str = "\
Examples:
  tallygate watch
  tallygate watch --every 5s --limit 5";

impl WatchCommand {
    pub(crate) async fn run(&self, connection: &Connection, is_json: bool) -> Result<Output, Failure> {
        if is_json {
            return Err(Failure::usage("`watch` is for people; leave `--json` out, or write `top --json`"));
        }
        screen::check_interval(self.every)?;
        // A mistake in the arguments is reported before the screen opens.
        let fleet = Fleet::connect(connection).await?;
        let screen = Screen::open("`watch` needs a terminal; without one, write `tallygate top`")?;
        let board = RefCell::new(Board::new(&connection.prefix));
        let looks = Looks { limiter: &fleet.limiter, connection, board: &board, every: self.every, limit: self.limit };
        match select(pin!(self.draw(&screen, &board)), pin!(looks.repeat())).await {
            Either::Left((drawn, _)) => drawn,
            Either::Right((never, _)) => match never {},
        }
    }

    /// Draws the board until a key is pressed.
    async fn draw(&self, screen: &Screen, board: &RefCell<Board>) -> Result<Output, Failure> {
        let mut canvas = screen.canvas()?;
        loop {
            let drawn = canvas.draw(|frame| view::draw(frame, &board.borrow(), self.every, Instant::now()));
            drawn.map_err(screen::unusable)?;
            if screen.quits_within(self.every).await? {
                return Ok(Output::done("", Value::Null));
            }
        }
    }
}
