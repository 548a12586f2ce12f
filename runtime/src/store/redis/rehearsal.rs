//! A rehearsal: decisions that count nothing, as they are about keys that no call has. They show whether a server lets the
//! limiter do what calls need: run its scripts, by name and by text, read, write, and tell the time.

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

/// Its keys are removed at once. Where that fails, they expire after about as long.
const WINDOW: Duration = Duration::from_secs(5);

/// How many calls the rules admit, and how many are played.
const COUNT: u64 = 2;
const CALLS: usize = 3;

/// The scripts that it plays, each with rules that this script decides.
static SCRIPTS: [RehearsedScript; 2] =
    [RehearsedScript { suffix: "/windows", policy: &WINDOWS }, RehearsedScript { suffix: "/all", policy: &ALL }];

static WINDOWS: LazyLock<Option<Policy>> = LazyLock::new(|| policy(vec![Rule::sliding_window(COUNT, WINDOW)]));
static ALL: LazyLock<Option<Policy>> =
    LazyLock::new(|| policy(vec![Rule::fixed_window(COUNT, WINDOW), Rule::sliding_counter(COUNT, WINDOW)]));

/// A script, what its key ends with, and rules that it decides.
struct RehearsedScript {
    suffix: &'static str,
    policy: &'static LazyLock<Option<Policy>>,
}

/// Removes the keys that begin so.
fn cleaning(key: &str) -> Cmd {
    let mut cleaning = ::redis::cmd("UNLINK");
    for script in &SCRIPTS {
        cleaning.arg(format!("{key}{}", script.suffix));
    }
    cleaning
}

/// Returns a policy that this process does not list.
fn policy(rules: Vec<Rule>) -> Option<Policy> {
    Policy::builder("rehearsal").rules(rules).build_unlisted().ok()
}

impl RehearsedScript {
    /// The call of the script.
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
    /// Finds out whether this server can decide calls, by keys that begin so.
    pub(super) async fn rehearse(&self, key: &str, until: Instant, role: NodeRole) -> Result<(), BackendError> {
        if self.setup.looks_only {
            return self.query::<Value>(&self.setup.probe(key), until, role).await.map(drop);
        }
        let subject = [Subject::everyone().key()];
        let played = SCRIPTS.iter().filter_map(|script| script.call(self, key, &subject));
        // The first two write in two ways, and the last is denied.
        let calls: Vec<_> = played.flat_map(|call| [(); CALLS].map(|()| call.clone())).collect();
        let cleaning = cleaning(key);
        let by_text = calls.first().map(ScriptCall::by_text);
        let played = async |connection: &mut ::redis::aio::MultiplexedConnection| {
            let (mut before, mut asking) = (connection.clone(), connection.clone());
            // In this order, they are sent in one round trip. What another process has left would deny them.
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
