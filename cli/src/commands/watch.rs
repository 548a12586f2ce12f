//! `tallygate watch`: the fleet on one screen.

mod board;
mod view;

use std::cell::RefCell;
use std::convert::Infallible;
use std::pin::pin;
use std::time::{Duration, Instant};

use clap::Args;
use futures_util::future::{Either, join4, select};
use serde_json::Value;
use tallygate::{DeniedSubject, Limiter};
use tokio::time::sleep;

use self::board::{Board, Walked};
use crate::commands::top::scope::SubjectScope;
use crate::commands::top::usage::{Best, By, Usage};
use crate::commands::top::walk::walk;
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

/// The place of an outage that concerns all policies.
const REDIS: &str = "redis";

/// The shortest time between two reads of the denials, which programs publish about every ten seconds.
const DENIALS_EVERY: Duration = Duration::from_secs(2);

/// The shortest time between two inspections of the servers, each of which takes some dozens of round trips.
const SERVERS_EVERY: Duration = Duration::from_secs(10);

/// The shortest rest after a walk, and how many times as long as the walk it is.
const SHORTEST_REST: Duration = Duration::from_secs(5);
const REST: u32 = 4;

/// Reads the state of the fleet, and notes it on the board.
struct Looks<'a> {
    limiter: &'a Limiter,
    connection: &'a Connection,
    board: &'a RefCell<Board>,
    every: Duration,
    /// How many subjects a walk keeps.
    limit: usize,
}

impl Looks<'_> {
    /// Repeats all reads until it is dropped. A slow one delays no other.
    async fn repeat(&self) -> Infallible {
        let (never, ..) = join4(self.lists(), self.denials(), self.servers(), self.walks()).await;
        never
    }

    async fn lists(&self) -> Infallible {
        loop {
            let problem = self.list().await.err();
            let reason = problem.as_ref().map(|failure| failure.text().unwrap_or_default());
            self.board.borrow_mut().outages.note(REDIS, reason, Instant::now());
            sleep(self.every).await;
        }
    }

    async fn list(&self) -> Result<(), Failure> {
        let fleet = self.fleet().await?;
        let overrides = self.limiter.overrides().await?;
        self.board.borrow_mut().set_policies(fleet.registered(), &overrides);
        Ok(())
    }

    async fn denials(&self) -> Infallible {
        loop {
            let names: Vec<_> = self.board.borrow().policies().iter().map(|policy| policy.name.clone()).collect();
            for name in names {
                // An outage is noted by the reads of the lists.
                if let Ok(listed) = self.limiter.top_denied(&name, usize::MAX).await {
                    let denials = listed.iter().map(DeniedSubject::denials).sum();
                    self.board.borrow_mut().rates.add(&name, denials, Instant::now());
                }
            }
            sleep(self.every.max(DENIALS_EVERY)).await;
        }
    }

    async fn servers(&self) -> Infallible {
        loop {
            if let Ok(reports) = self.limiter.inspect().await {
                self.board.borrow_mut().set_servers(&reports, Instant::now());
            }
            sleep(self.every.max(SERVERS_EVERY)).await;
        }
    }

    async fn walks(&self) -> Infallible {
        loop {
            let began = Instant::now();
            // If a walk fails, the result of the last one stays.
            if let Ok(walked) = self.walk().await {
                self.board.borrow_mut().walked = Some(walked);
            }
            self.board.borrow_mut().progress = None;
            sleep((began.elapsed() * REST).max(SHORTEST_REST).max(self.every)).await;
        }
    }

    async fn walk(&self) -> Result<Walked, Failure> {
        let fleet = self.fleet().await?;
        let mut walked = Walked::default();
        if fleet.registered().policies().is_empty() {
            return Ok(walked);
        }
        let scope = SubjectScope::all(&fleet)?;
        let mut best = Best::new(By::Used, self.limit);
        let see = |usage: Usage| {
            if usage.is_denied() {
                *walked.denied.entry(usage.policy().to_owned()).or_default() += 1;
            }
            best.add(usage);
        };
        walked.subjects = walk(&fleet, &scope, see, |_, share| self.board.borrow_mut().progress = Some(share)).await?;
        walked.busiest = best.found();
        Ok(walked)
    }

    async fn fleet(&self) -> Result<Fleet<'_>, Failure> {
        Fleet::read(self.limiter.clone(), self.connection).await
    }
}
