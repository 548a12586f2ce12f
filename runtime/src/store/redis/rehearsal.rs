//! A rehearsal: decisions on keys that no call has. They show whether a server lets the limiter do what calls need: run
//! its scripts by name and by text, read, write, and tell the time.

#[cfg(feature = "admin")]
mod vectors;

use std::sync::LazyLock;
use std::time::Duration;

use ::redis::{Cmd, Value};
use futures_util::future::join3;
use tallygate_rules::Rule;

#[cfg(feature = "admin")]
pub(crate) use self::vectors::{CONCURRENT_CALLS, RehearsedStep, SEVERAL_KEYS};
use crate::call::{Call, CallOptions, TallyKey};
use crate::error::BackendError;
use crate::policy::Policy;
use crate::store::redis::script::ScriptQuestion;
use crate::store::redis::script::run::{NodeRole, ScriptCall, run_each};
use crate::store::redis::server::Server;
use crate::subject::{Subject, SubjectKey};
use crate::system::Instant;

/// The keys are removed at once. If that fails, they expire after about this time.
const WINDOW: Duration = Duration::from_secs(5);

/// How many calls the rules admit, and how many are made.
const COUNT: u64 = 2;
const CALLS: usize = 3;

/// The scripts of a rehearsal, with rules that each of them decides.
static SCRIPTS: [RehearsedScript; 2] =
    [RehearsedScript { suffix: "/windows", policy: &WINDOWS }, RehearsedScript { suffix: "/all", policy: &ALL }];

static WINDOWS: LazyLock<Option<Policy>> = LazyLock::new(|| policy(vec![Rule::sliding_window(COUNT, WINDOW)]));
static ALL: LazyLock<Option<Policy>> =
    LazyLock::new(|| policy(vec![Rule::fixed_window(COUNT, WINDOW), Rule::sliding_counter(COUNT, WINDOW)]));

/// A script, given by rules that it decides. Its key ends with the suffix.
struct RehearsedScript {
    suffix: &'static str,
    policy: &'static LazyLock<Option<Policy>>,
}

/// Returns the command that removes the keys of a rehearsal that begin with `key`.
fn cleaning(key: &str) -> Cmd {
    let mut cleaning = ::redis::cmd("UNLINK");
    for script in &SCRIPTS {
        cleaning.arg(format!("{key}{}", script.suffix));
    }
    cleaning
}

fn policy(rules: Vec<Rule>) -> Option<Policy> {
    Policy::builder("rehearsal").rules(rules).build_unlisted().ok()
}

impl RehearsedScript {
    fn call<'a>(&self, server: &'a Server, key: &str, subject: &[SubjectKey]) -> Option<ScriptCall<'a>> {
        let policy = self.policy.as_ref()?;
        let request = Call::new(policy, subject, CallOptions::PLAIN);
        let ScriptQuestion { script, arguments, .. } =
            ScriptQuestion::about(&[request], &server.scripts, server.now_us());
        let keys = vec![TallyKey::reserved(&format!("{key}{}", self.suffix))?];
        Some(ScriptCall { script, keys, arguments })
    }
}

impl Server {
    /// Finds out whether this server can decide calls, on keys that begin with `key`.
    pub(super) async fn rehearse(&self, key: &str, until: Instant, role: NodeRole) -> Result<(), BackendError> {
        if self.setup.looks_only {
            return self.query::<Value>(&self.setup.probe(key), until, role).await.map(drop);
        }
        let subject = [Subject::everyone().key()];
        let played = SCRIPTS.iter().filter_map(|script| script.call(self, key, &subject));
        // The first two of three calls write in two ways, and the last is denied.
        let calls: Vec<_> = played.flat_map(|call| [(); CALLS].map(|()| call.clone())).collect();
        let cleaning = cleaning(key);
        let by_text = calls.first().map(ScriptCall::by_text);
        let played = async |connection: &mut ::redis::aio::MultiplexedConnection| {
            let (mut before, mut asking) = (connection.clone(), connection.clone());
            // In this order, they are sent in one round trip. Keys that another process has left would deny the calls.
            let (cleaned, by_name, by_text) = join3(
                role.send_one::<Value>(&mut before, &cleaning),
                run_each(connection, &calls, role),
                role.send::<Value>(&mut asking, by_text.into_iter()),
            )
            .await;
            cleaned?;
            by_name?.into_iter().try_for_each(|answer| answer.map(drop))?;
            by_text?.into_iter().try_for_each(|answer| answer.map(drop))
        };
        self.connector.ask(until, played).await?;
        // If there is no time left to remove the keys, they expire.
        _ = self.query::<Value>(&cleaning, until, role).await;
        Ok(())
    }
}
