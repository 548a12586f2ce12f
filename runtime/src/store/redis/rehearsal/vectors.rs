//! Calls of every kind with known outcomes, with which the answers of a server are compared.

use std::slice;
use std::sync::LazyLock;
use std::time::Duration;

use ::redis::{Cmd, Value, cmd};
use tallygate_rules::{Ban, Rule};

use super::{COUNT, policy};
use crate::call::{Call, CallOptions, LeaseName, TallyKey};
use crate::decision::{AdmittedAt, Recount, RuleStatus};
use crate::micros;
use crate::policy::Policy;
use crate::store::answer::{Answer, Outcome};
use crate::store::redis::script::run::{NodeRole, Script, ScriptKeys};
use crate::store::redis::script::wire::{self, Reply};
use crate::store::redis::script::{ScriptQuestion, pack};
use crate::store::redis::server::Server;
use crate::store::redis::stored::ping_key_in;
use crate::subject::{Subject, SubjectKey};
use crate::system::{Instant, random_number};

/// Long enough that a slow server is not reported as a wrong one.
const WINDOW: Duration = Duration::from_secs(60);

/// The step that takes leases. Few users have the permissions for it.
pub(crate) const CONCURRENT_CALLS: &str = "concurrent calls";

/// The step that asks about keys in several slots.
pub(crate) const SEVERAL_KEYS: &str = "several keys at once";

/// How many keys this step asks about. No two of them are in one slot.
const KEYS: u32 = 8;

static VECTORS: [Vector; 6] = [
    Vector { name: "windows", suffix: "/windows", course: Course::Windows, policy: &WINDOWS },
    Vector { name: "all algorithms", suffix: "/all", course: Course::Counts, policy: &ALL },
    Vector { name: "duplicates", suffix: "/duplicates", course: Course::Duplicates, policy: &DUPLICATES },
    Vector { name: "refunds", suffix: "/refunds", course: Course::Refunds, policy: &BOTH },
    Vector { name: "bans", suffix: "/bans", course: Course::Bans, policy: &BANNING },
    Vector { name: CONCURRENT_CALLS, suffix: "/leases", course: Course::Leases, policy: &CONCURRENT },
];

static WINDOWS: LazyLock<Option<Policy>> = LazyLock::new(|| policy(vec![Rule::sliding_window(COUNT, WINDOW)]));
static ALL: LazyLock<Option<Policy>> = LazyLock::new(|| {
    let bucket = Rule::token_bucket(COUNT, WINDOW);
    policy(vec![Rule::fixed_window(COUNT, WINDOW), Rule::sliding_counter(COUNT, WINDOW), bucket])
});
static DUPLICATES: LazyLock<Option<Policy>> = LazyLock::new(|| policy(vec![Rule::duplicate(WINDOW)]));
static BOTH: LazyLock<Option<Policy>> =
    LazyLock::new(|| policy(vec![Rule::fixed_window(COUNT, WINDOW), Rule::sliding_window(COUNT + 1, 2 * WINDOW)]));
static BANNING: LazyLock<Option<Policy>> = LazyLock::new(|| {
    let policy = Policy::builder("rehearsal").rule(Rule::sliding_window(COUNT, WINDOW));
    policy.ban(Ban::new(1, WINDOW, WINDOW)).build_unlisted().ok()
});
static CONCURRENT: LazyLock<Option<Policy>> = LazyLock::new(|| policy(vec![Rule::concurrency(1, WINDOW)]));

/// Calls of one kind, and the rules that decide them. Their key ends with the suffix.
struct Vector {
    name: &'static str,
    suffix: &'static str,
    course: Course,
    policy: &'static LazyLock<Option<Policy>>,
}

/// Which calls a vector makes.
#[derive(Clone, Copy)]
enum Course {
    Windows,
    Counts,
    Duplicates,
    Refunds,
    Bans,
    Leases,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Admitted,
    Denied,
    Banned,
    Paused,
}

/// A step of a rehearsal, and its error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RehearsedStep {
    pub(crate) name: &'static str,
    pub(crate) fault: Option<String>,
}

/// Makes the calls of a vector.
struct Player<'a> {
    server: &'a Server,
    key: TallyKey,
    policy: &'a Policy,
    subject: [SubjectKey; 1],
    deadline: Duration,
}

type Played<T = ()> = Result<T, String>;

impl Server {
    /// Makes all calls, step by step, on keys that begin with `key`. Each answer may take as long as the deadline.
    pub(in crate::store::redis) async fn rehearse_each(&self, key: &str, deadline: Duration) -> Vec<RehearsedStep> {
        let key = format!("{key}/{:x}", random_number(..));
        let mut steps = Vec::new();
        for vector in &VECTORS {
            let fault = self.play(vector, &key, deadline).await.err();
            steps.push(RehearsedStep { name: vector.name, fault });
        }
        if !self.is_asked_by_slot() {
            let mut several = cmd("EVAL");
            several.arg("return 1").arg(KEYS);
            (0..KEYS).for_each(|number| _ = several.arg(ping_key_in(&self.setup.prefix, number)));
            let fault = self.ask_within(&several, deadline).await.err();
            steps.push(RehearsedStep { name: SEVERAL_KEYS, fault });
        }
        steps
    }

    async fn ask_within(&self, command: &Cmd, deadline: Duration) -> Played<Value> {
        let asked = self.query(command, Instant::now() + deadline, NodeRole::Owner).await;
        asked.map_err(|error| error.to_string())
    }

    async fn play(&self, vector: &Vector, key: &str, deadline: Duration) -> Played {
        let policy = vector.policy.as_ref().ok_or("there are no rules to play it with")?;
        let key = TallyKey::reserved(&format!("{key}{}", vector.suffix)).ok_or("its key is too long")?;
        let subject = [Subject::everyone().key()];
        let on_key = Player { server: self, key, policy, subject, deadline };
        let played = match vector.course {
            Course::Windows => on_key.play_windows().await,
            Course::Counts => on_key.play_counts().await,
            Course::Duplicates => on_key.play_duplicates().await,
            Course::Refunds => on_key.play_refunds().await,
            Course::Bans => on_key.play_bans().await,
            Course::Leases => on_key.play_leases().await,
        };
        // If a key is not removed, it expires.
        _ = self.ask_within(cmd("UNLINK").arg(key.as_str()), deadline).await;
        played
    }
}

impl Player<'_> {
    /// Without reports, windows have a script of their own.
    async fn play_windows(&self) -> Played {
        for _ in 0..COUNT {
            self.expect("a call with room", CallOptions::PLAIN, Expected::Admitted).await?;
        }
        self.expect("a call without room", CallOptions::PLAIN, Expected::Denied).await?;
        let peek = CallOptions { peek: true, report: true, ..CallOptions::PLAIN };
        self.check_left(&self.expect("a peek without room", peek, Expected::Denied).await?, 0)
    }

    async fn play_counts(&self) -> Played {
        let options = CallOptions { report: true, ..CallOptions::PLAIN };
        for left in (0..COUNT).rev() {
            self.check_left(&self.expect("a call with room", options, Expected::Admitted).await?, left)?;
        }
        self.expect("a call without room", options, Expected::Denied).await.map(drop)
    }

    fn check_left(&self, answer: &Answer, left: u64) -> Played {
        let remaining: Vec<_> = answer.report.rules().iter().map(RuleStatus::remaining).collect();
        if remaining.len() == self.policy.rules().len() && remaining.iter().all(|&remaining| remaining == left) {
            return Ok(());
        }
        Err(format!("each rule has {left} of {COUNT} left, and {remaining:?} is reported"))
    }

    async fn play_duplicates(&self) -> Played {
        self.expect("a call", CallOptions::PLAIN, Expected::Admitted).await?;
        self.expect("its duplicate", CallOptions::PLAIN, Expected::Denied).await.map(drop)
    }

    async fn play_refunds(&self) -> Played {
        let plain = CallOptions::PLAIN;
        let first = self.expect("a call with room", plain, Expected::Admitted).await?;
        self.expect("another one", plain, Expected::Admitted).await?;
        self.expect("a call without room", plain, Expected::Denied).await?;
        if !self.refund(&first.at).await? {
            return Err("a refund of a call that counts changes nothing".to_owned());
        }
        self.expect("a call after a refund", plain, Expected::Admitted).await?;
        self.expect("a second call after a refund", plain, Expected::Denied).await.map(drop)
    }

    async fn play_bans(&self) -> Played {
        let (plain, peek) = (CallOptions::PLAIN, CallOptions { peek: true, ..CallOptions::PLAIN });
        self.expect("a call with room", plain, Expected::Admitted).await?;
        self.ban(micros::from_duration(WINDOW)).await?;
        self.expect("a call of a subject that is banned by hand", plain, Expected::Banned).await?;
        self.ban(0).await?;
        self.expect("a call after the end of a ban", plain, Expected::Admitted).await?;
        self.expect("a call without room", plain, Expected::Denied).await?;
        self.expect("a peek after a denial that leads to a ban", peek, Expected::Banned).await.map(drop)
    }

    async fn play_leases(&self) -> Played {
        let leases = [LeaseName::next(), LeaseName::next()];
        let [first, second] = leases.map(|name| CallOptions { lease: Some(name), ..CallOptions::PLAIN });
        self.expect("a call with room", first, Expected::Admitted).await?;
        self.expect("a call beside it", second, Expected::Denied).await?;
        let call = self.call(first);
        self.run(&self.server.scripts.lease, &pack::renewal(call)).await?;
        self.expect("a call beside one that was renewed", second, Expected::Denied).await?;
        let returned = cmd("ZREM").arg(self.key.as_str()).arg(&pack::lease_name(Some(leases[0]))[..]).clone();
        if self.server.ask_within(&returned, self.deadline).await? != Value::Int(1) {
            return Err("a lease that is given back is not there".to_owned());
        }
        self.expect("a call after another one", second, Expected::Admitted).await.map(drop)
    }

    async fn expect(&self, what: &str, options: CallOptions, expected: Expected) -> Played<Answer> {
        let answer = self.decide(options).await?;
        let answered = match answer.outcome {
            Outcome::Admitted => Expected::Admitted,
            Outcome::Denied { .. } => Expected::Denied,
            Outcome::Banned { .. } => Expected::Banned,
            Outcome::Paused { .. } | Outcome::Probing { .. } => Expected::Paused,
        };
        if answered == expected {
            return Ok(answer);
        }
        Err(format!("{what} is answered {answered:?} in place of {expected:?}"))
    }

    async fn decide(&self, options: CallOptions) -> Played<Answer> {
        // The first answer brings the server's time, so the second request is decided by it.
        for _ in 0..2 {
            let request = self.call(options);
            let question = ScriptQuestion::about(&[request], &self.server.scripts, self.server.now_us());
            let answer = self.run(question.script, &question.arguments).await?;
            let replies = self.server.read(question.id, &answer, &[request]).map_err(|error| error.to_string())?;
            if let Some(Reply::Answer(answer)) = replies.into_iter().next() {
                return Ok(answer);
            }
        }
        Err("it gives no answer that can be read".to_owned())
    }

    async fn refund(&self, admitted: &AdmittedAt) -> Played<bool> {
        let arguments =
            pack::refund(self.call(CallOptions::PLAIN), self.server.now_us(), admitted.us(0), &Recount::REFUND);
        let reply = self.run(&self.server.scripts.refund, &arguments).await?;
        match wire::integers(&reply).as_deref() {
            Some([_, changed]) => Ok(*changed > 0),
            _ => Err("a refund has no answer that can be read".to_owned()),
        }
    }

    /// Bans the subject for this time; 0 ends its ban.
    async fn ban(&self, duration_us: u64) -> Played {
        let group = self.policy.groups().first().ok_or("there are no rules to play it with")?;
        self.run(&self.server.scripts.ban, &pack::ban(group, duration_us)).await.map(drop)
    }

    fn call(&self, options: CallOptions) -> Call<'_> {
        Call::new(self.policy, &self.subject, options)
    }

    async fn run(&self, script: &Script, arguments: &[Vec<u8>]) -> Played<Vec<u8>> {
        let until = Instant::now() + self.deadline;
        let key = ScriptKeys::Written(slice::from_ref(&self.key));
        let ran = self.server.run(script, key, arguments, until, NodeRole::Owner).await;
        ran.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_of_each_vector_are_sound() {
        let unsound: Vec<_> =
            VECTORS.iter().filter(|vector| vector.policy.is_none()).map(|vector| vector.name).collect();
        assert!(unsound.is_empty(), "{unsound:?}");
    }
}
