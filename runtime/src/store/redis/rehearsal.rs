//! A rehearsal: decisions that count nothing, as they are about keys that no call has. They show whether a server lets the
//! limiter do what calls need: run its scripts, by name and by text, read, write, and tell the time.

use std::sync::LazyLock;
use std::time::Duration;

use ::redis::{Cmd, Value};
use futures_util::future::join3;
use tallygate_rules::Rule;

use crate::call::{Call, CallOptions, TallyKey};
use crate::error::BackendError;
use crate::policy::Policy;
#[cfg(feature = "admin")]
use crate::store::answer::Outcome;
use crate::store::redis::script::run::{NodeRole, ScriptCall, run_each};
#[cfg(feature = "admin")]
use crate::store::redis::script::wire::Reply;
use crate::store::redis::script::{Form, ScriptQuestion};
use crate::store::redis::server::Server;
use crate::subject::{Subject, SubjectKey};
use crate::system::Instant;
#[cfg(feature = "admin")]
use crate::system::random_number;

/// Its keys are removed at once. Where that fails, they expire after about as long.
const WINDOW: Duration = Duration::from_secs(5);

/// How many calls the rules admit, and how many are played.
const COUNT: u64 = 2;
const CALLS: usize = 3;

/// The scripts that it plays, each with rules that this script decides.
static SCRIPTS: [RehearsedScript; 2] = [
    RehearsedScript { name: "windows", suffix: "/windows", policy: &WINDOWS },
    RehearsedScript { name: "all algorithms", suffix: "/all", policy: &ALL },
];

static WINDOWS: LazyLock<Option<Policy>> = LazyLock::new(|| policy(vec![Rule::sliding_window(COUNT, WINDOW)]));
static ALL: LazyLock<Option<Policy>> =
    LazyLock::new(|| policy(vec![Rule::fixed_window(COUNT, WINDOW), Rule::sliding_counter(COUNT, WINDOW)]));

/// The step that asks about keys of several slots.
#[cfg(feature = "admin")]
pub(crate) const SEVERAL_KEYS: &str = "several keys at once";

/// A script, what its key ends with, and rules that it decides.
struct RehearsedScript {
    #[cfg_attr(not(feature = "admin"), allow(dead_code, reason = "only a report names it"))]
    name: &'static str,
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
    /// The call of the script, and the form of its answer.
    fn call<'a>(&self, server: &'a Server, key: &str, subject: &[SubjectKey]) -> Option<(ScriptCall<'a>, Form)> {
        let policy = self.policy.as_ref()?;
        let request = Call::new(policy, subject, CallOptions::PLAIN);
        let ScriptQuestion { script, arguments, form } =
            ScriptQuestion::about(&[request], &server.scripts, server.now_us());
        let keys = vec![TallyKey::reserved(&format!("{key}{}", self.suffix))?];
        Some((ScriptCall { script, keys, arguments }, form))
    }
}

impl Server {
    /// Finds out whether this server can decide calls, by keys that begin so.
    pub(super) async fn rehearse(&self, key: &str, until: Instant, role: NodeRole) -> Result<(), BackendError> {
        if self.setup.looks_only {
            return self.query::<Value>(&self.setup.probe(key), until, role).await.map(drop);
        }
        let subject = [Subject::everyone().key()];
        let played = SCRIPTS.iter().filter_map(|script| script.call(self, key, &subject)).map(|(call, _)| call);
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

/// A step of a rehearsal, and the error in it.
#[cfg(feature = "admin")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RehearsedStep {
    pub(crate) name: &'static str,
    pub(crate) fault: Option<String>,
}

#[cfg(feature = "admin")]
impl Server {
    /// Plays a known set of calls, step by step, and compares each answer with what is known of it.
    pub(super) async fn rehearse_each(&self, key: &str, deadline: Duration) -> Vec<RehearsedStep> {
        let until = || Instant::now() + deadline;
        let key = format!("{key}/{:x}", random_number(..));
        let mut steps = Vec::new();
        for script in &SCRIPTS {
            let fault = self.play(script, &key, deadline).await.err();
            steps.push(RehearsedStep { name: script.name, fault });
        }
        if !self.is_asked_by_slot() {
            let mut several = ::redis::cmd("EVAL");
            several.arg("return 1").arg(2).arg(format!("{key}/one")).arg(format!("{key}/two"));
            let asked = self.query::<Value>(&several, until(), NodeRole::Owner).await;
            steps.push(RehearsedStep { name: SEVERAL_KEYS, fault: asked.err().map(|error| error.to_string()) });
        }
        // Keys that are left expire.
        _ = self.query::<Value>(&cleaning(&key), until(), NodeRole::Owner).await;
        steps
    }

    async fn play(&self, script: &RehearsedScript, key: &str, deadline: Duration) -> Result<(), String> {
        let policy = script.policy.as_ref().ok_or("there are no rules to play it with")?;
        let subject = [Subject::everyone().key()];
        let request = Call::new(policy, &subject, CallOptions::PLAIN);
        for number in 1..=CALLS as u64 {
            let outcome = self.play_once(script, key, request, Instant::now() + deadline).await?;
            let is_known = match outcome {
                Outcome::Admitted => number <= COUNT,
                Outcome::Denied { .. } => number > COUNT,
                Outcome::Banned { .. } => false,
            };
            if !is_known {
                return Err(format!("call {number} of {CALLS}, of which {COUNT} have room, was answered {outcome:?}"));
            }
        }
        Ok(())
    }

    async fn play_once(
        &self,
        script: &RehearsedScript,
        key: &str,
        request: Call<'_>,
        until: Instant,
    ) -> Result<Outcome, String> {
        // The first answer has the server's time, by which the second is decided.
        for _ in 0..2 {
            let (call, form) = script.call(self, key, request.subjects).ok_or("its key is too long")?;
            let keys = call.keys.iter().copied();
            let answer = self.run(call.script, keys, &call.arguments, until, NodeRole::Owner).await;
            let answer = answer.map_err(|error| error.to_string())?;
            let replies = self.read(form, &answer, &[request]).map_err(|error| error.to_string())?;
            if let Some(Reply::Answer(answer)) = replies.into_iter().next() {
                return Ok(answer.outcome);
            }
        }
        Err("it gives no answer that can be read".to_owned())
    }
}
