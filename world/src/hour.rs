//! An hour in which a fleet calls one partner as often as it can, and how often it is denied.

mod answers;
mod line;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use tallygate::client::{self, Pace, PaceError, PaceService, ResponseReader};
use tallygate::{Limiter, OnOutage, Policy, Rule};
use tower_layer::Layer as _;
use tower_service::Service as _;

pub use self::answers::Answered;
use self::answers::Answers;
pub use self::line::{COUNT, PartnerKind};
use self::line::{Line, PartnerLine};
use crate::engine::{self, Chance, Halt};
use crate::fleet::{Clock, Member, sleeping};
use crate::history::History;
use crate::net::{self, Link};
use crate::topology::{Plant, Servers};
use crate::workload::{Scenario, Settings, Topology};

/// How long the fleet calls, in minutes.
pub const MINUTES: u64 = 60;
const PROCESSES: u32 = 10;
const TASKS: u32 = 100;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR_US: u64 = MINUTES * 60_000_000;
const SEED: u64 = 35;

/// How the tasks of a fleet call a partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    /// By the layer, under a policy that can be paused.
    Layer,
    /// By the layer, under a policy that stays a little behind the partner. Its window is longer, as calls take different times to
    /// arrive, and a second rule spreads the calls.
    Even,
    /// By the layer, under a policy of one rule that cannot be paused.
    Pacing,
    /// Each in a loop, which waits as long as a denial says, and up to a second more.
    Loop,
}

impl Habit {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Layer, Self::Even, Self::Pacing, Self::Loop];
}

impl fmt::Display for Habit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Layer => "layer",
            Self::Even => "layer, 1,000 per 61 s and 33 per 2 s",
            Self::Pacing => "pacing alone",
            Self::Loop => "loop",
        })
    }
}

/// Plays an hour.
///
/// # Errors
///
/// The world cannot go on.
pub fn play(habit: Habit, kind: &PartnerKind) -> Result<Answered, Halt> {
    engine::run(SEED, async {
        let scenario = scenario();
        net::begin(SEED, scenario.link.clone());
        let servers = Servers::start(&scenario, &Plant::default(), &History::default());
        let (line, answers) = (Arc::new(PartnerLine::new(SEED, kind)), Answers::default());
        let fleet: Vec<_> = (0..PROCESSES)
            .map(|number| {
                let member = Member::start(SEED, number, Clock::default());
                let line = Line::new(number, Arc::clone(&line), answers.clone());
                let (in_process, url) = (Arc::clone(&member), servers.url());
                member.spawn(async move { begin(habit, &in_process, &url, &line) });
                member
            })
            .collect();
        engine::sleep_until(HOUR_US).await;
        for member in &fleet {
            member.kill();
        }
        answers.answered()
    })
}

/// A server and a net without faults.
fn scenario() -> Scenario {
    let settings = Settings { deadline_us: 500_000, denial_cache_us: 0, processes: 1, on_outage: OnOutage::Deny };
    Scenario {
        seed: SEED,
        topology: Topology::Server,
        horizon_us: HOUR_US,
        link: Link { delay_us: 200, jitter_us: 100, ..Link::default() },
        settings,
        processes: Vec::new(),
        policies: Vec::new(),
        calls: Vec::new(),
        faults: Vec::new(),
    }
}

/// Begins the tasks of the current process.
fn begin(habit: Habit, member: &Arc<Member>, url: &str, line: &Line) {
    let pace = pace(habit, url);
    for task in 0..TASKS {
        let (in_process, line) = (Arc::clone(member), line.clone());
        if let Some(pace) = &pace {
            member.spawn(call_paced(in_process, pace.layer(line)));
        } else {
            let chance = Chance::new(SEED, &format!("task {task} of {line:?}"));
            member.spawn(call_in_a_loop(in_process, line, chance));
        }
    }
}

/// Returns the pace of a process; `None` if its tasks call in loops.
fn pace(habit: Habit, url: &str) -> Option<Pace> {
    let policy = Policy::builder("partner");
    let same = || Rule::sliding_window(COUNT, MINUTE);
    let behind = [(COUNT, 61), (33, 2)].map(|(count, per)| Rule::sliding_window(count, Duration::from_secs(per)));
    let policy = match habit {
        Habit::Layer => policy.rule(same()).pausable(),
        Habit::Even => policy.rules(behind).pausable(),
        Habit::Pacing => policy.rule(same()),
        Habit::Loop => return None,
    };
    let limiter = Limiter::builder().connect_lazy(url).ok()?;
    Some(client::pace(&policy.build().ok()?, "{@host}").ok()?.limiter(&limiter).wait(2 * MINUTE))
}

fn request() -> Request<String> {
    let mut request = Request::new(String::new());
    *request.uri_mut() = http::Uri::from_static("http://partner.example/");
    request
}

async fn call_paced(member: Arc<Member>, mut client: PaceService<Line>) {
    loop {
        if let Err(PaceError::Rejected(rejection)) = client.call(request()).await {
            wait(&member, rejection.retry_after().unwrap_or(Duration::from_secs(1))).await;
        }
    }
}

async fn call_in_a_loop(member: Arc<Member>, mut line: Line, mut chance: Chance) {
    loop {
        let Ok(response) = line.call(request()).await;
        if let Some(pause) = ResponseReader::new().read(response.status(), response.headers()).pause() {
            wait(&member, pause.duration() + Duration::from_micros(chance.between(0, 1_000_000))).await;
        }
    }
}

async fn wait(member: &Member, duration: Duration) {
    sleeping(member, u64::try_from(duration.as_micros()).unwrap_or(HOUR_US)).await;
}
