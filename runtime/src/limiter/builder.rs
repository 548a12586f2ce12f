//! The settings of a limiter.

mod build;

use std::sync::Arc;
use std::time::Duration;

use tallygate_rules::{MAX_DEADLINE, OnOutage, is_plain};

use super::core::OnWarning;
use super::denied::MOST_SUBJECTS;
use super::{DEFAULT_DEADLINE, DEFAULT_DENIAL_CACHE, DEFAULT_MAX_SUBJECTS, DEFAULT_MAX_WAITING, DEFAULT_PREFIX};
use crate::call::PREFIX_BYTES;
use crate::clock::Clock;
#[cfg(feature = "testing")]
use crate::clock::manual::ManualClock;
use crate::decision::Warning;
use crate::error::{Error, Setting};
use crate::observe::opaque_debug;
#[cfg(feature = "tls")]
use crate::store::Tls;
use crate::subject::filters::bare_secret;

/// The longest that a denial can be cached.
const LONGEST_DENIAL_CACHE: Duration = Duration::from_secs(10);

/// Builds a [`Limiter`](crate::Limiter) with settings of your own, in memory or on a server.
///
/// # Examples
///
/// ```no_run
/// use std::time::Duration;
/// use tallygate::Limiter;
///
/// # async fn start() -> Result<(), tallygate::Error> {
/// let embedded = Limiter::builder().max_subjects(10_000).build_in_memory()?;
///
/// Limiter::builder()
///     .prefix("shop")
///     .deadline(Duration::from_millis(100))
///     .connect("redis://127.0.0.1/")
///     .await?
///     .install()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until it connects or builds"]
pub struct LimiterBuilder {
    prefix: String,
    secret: Option<Vec<u8>>,
    deadline: Duration,
    max_subjects: usize,
    max_waiting: usize,
    denial_cache: Duration,
    on_outage: OnOutage,
    processes: u64,
    on_warning: Option<OnWarning>,
    registry: bool,
    looks_only: bool,
    denied_subjects: usize,
    clock: Clock,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
}

impl Default for LimiterBuilder {
    fn default() -> Self {
        Self {
            prefix: DEFAULT_PREFIX.to_owned(),
            secret: None,
            deadline: DEFAULT_DEADLINE,
            max_subjects: DEFAULT_MAX_SUBJECTS,
            max_waiting: DEFAULT_MAX_WAITING,
            denial_cache: DEFAULT_DENIAL_CACHE,
            on_outage: OnOutage::Deny,
            processes: 1,
            on_warning: None,
            registry: true,
            looks_only: false,
            denied_subjects: 0,
            clock: Clock::tokio(),
            #[cfg(feature = "tls")]
            tls: None,
        }
    }
}

impl LimiterBuilder {
    /// Sets the prefix of all keys: 1 to 25 of `A–Z a–z 0–9 . _ @ + ~ -`.
    ///
    /// Programs on one Redis server share their tallies if they have the same prefix, and only then.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets the secret that keys the filter `hash`, as in `{phone:hash}`.
    ///
    /// With a secret, the keys in Redis, in its backups and in its log do not reveal the values, and nobody can check a
    /// guess without the secret. Without one, the digest is the same for everybody: whoever tries all possible values
    /// finds one that can be guessed, such as a telephone number. One core tries more than a million a second. Programs
    /// that share tallies need the same secret; another secret starts new tallies.
    ///
    /// It may be of any length and any bytes. 16 random bytes or more, as hexadecimal digits or in Base64, cannot be
    /// guessed. White space around it and the byte order mark of a text file do not belong to it, so
    /// `secret(fs::read("secret")?)` is the secret that the command line reads from the same file.
    ///
    /// With the [registry](Self::registry), a policy whose keys show digests is listed with 16 bits of a digest of the
    /// secret, so that a tool with another secret says so. These bits are too few to find the secret.
    pub fn secret(mut self, secret: impl Into<Vec<u8>>) -> Self {
        self.secret = Some(secret.into());
        self
    }

    /// Sets the longest time that a decision takes, connecting and queueing included: 250 milliseconds by default, an hour
    /// at most.
    ///
    /// A call that has no answer by then is decided by [`on_outage`](Self::on_outage). A policy may have a [deadline of
    /// its own](crate::PolicyBuilder::deadline).
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets the greatest number of subjects whose tallies are kept in this process at once: a million by default. A tally
    /// takes some 200 bytes with the last three calls of its sliding windows. Other calls take 12 bytes each, whatever they cost.
    ///
    /// A subject counts once for each policy that counts it, and once more for its concurrent calls, for each rule in shadow
    /// and for other windows by an override. The units of a policy are kept with its calls, and replaced together with them:
    /// each takes some 100 bytes, and the first of a subject as much again.
    ///
    /// Beyond that number, a new subject replaces another one, which leaves a trace. By its trace, a subject that returns has
    /// no more calls than before. Traces take at most 64 bytes for each of `subjects`. If those that are looked at are banned,
    /// have running calls, or have denials for which the traces have no place, the call is rejected with
    /// [`RejectionKind::Unavailable`](crate::RejectionKind::Unavailable). Tallies in Redis do not count; those that this
    /// process keeps [while Redis is away](Self::on_outage) do.
    pub fn max_subjects(mut self, subjects: usize) -> Self {
        self.max_subjects = subjects;
        self
    }

    /// Sets the greatest number of callers that [wait](crate::Check::wait) for admission in this process at once, over
    /// all policies: 100,000 by default; with 0, no call waits.
    ///
    /// Beyond that number, a call asks once instead of waiting: its denial is returned at once, with the exact
    /// [`retry_after`](crate::Denial::retry_after). The metric `tallygate_waits_refused_total` counts such calls.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tallygate::{Limiter, Policy, Rule, Subject};
    ///
    /// let limiter = Limiter::builder().max_waiting(0).build_in_memory()?;
    /// let policy = Policy::builder("export").rule(Rule::sliding_window(1, Duration::from_secs(60))).build()?;
    /// assert!(limiter.acquire(&policy, &Subject::everyone()).await?.is_allowed());
    /// assert!(!limiter.acquire(&policy, &Subject::everyone()).await?.is_allowed());
    /// # Ok(())
    /// # }
    /// ```
    pub fn max_waiting(mut self, callers: usize) -> Self {
        self.max_waiting = callers;
        self
    }

    /// Sets how long a denial by Redis is cached in this process, so that a flood of calls on one subject does not reach
    /// Redis: a second by default, at most ten; zero turns the cache off.
    ///
    /// A cached denial ends no later than the call would be admitted. A reset or a refund by another process takes
    /// effect here when the cached denial ends. Calls that ask for a [report](crate::Check::report) are never answered
    /// from the cache. Neither are refundable calls, nor calls of a policy with a ban or a concurrency limit.
    pub fn denial_cache(mut self, longest: Duration) -> Self {
        self.denial_cache = longest;
        self
    }

    /// Sets what happens to calls while Redis is away, under policies that [do not set it
    /// themselves](crate::PolicyBuilder::on_outage): see [`OnOutage`]. By default they are rejected with
    /// [`RejectionKind::Unavailable`](crate::RejectionKind::Unavailable).
    ///
    /// With [`OnOutage::Local`], also set how many [processes](Self::processes) share the counts.
    pub fn on_outage(mut self, on_outage: OnOutage) -> Self {
        self.on_outage = on_outage;
        self
    }

    /// Sets by how many processes the counts of all rules are divided, rounded up, when each process decides alone
    /// because Redis is away: 1 by default.
    ///
    /// Use the number of processes that usually share the load. If `n` processes run, then in any window all of them
    /// together admit at most `count` by Redis and `n` times ⌈`count` / `processes`⌉ in outages. As it is rounded up,
    /// every process admits at least one call. The number of denials before a ban is not divided. A call that costs
    /// more than the part of this process is rejected with
    /// [`RejectionKind::Unavailable`](crate::RejectionKind::Unavailable).
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate::{Limiter, OnOutage};
    ///
    /// let limiter = Limiter::builder().on_outage(OnOutage::Local).processes(4).connect_lazy("redis://127.0.0.1/")?;
    /// # Ok::<(), tallygate::Error>(())
    /// ```
    pub fn processes(mut self, processes: u64) -> Self {
        self.processes = processes;
        self
    }

    /// Sets how many denied subjects are kept of each policy, to find out who is denied most often: none by default, at
    /// most 10,000.
    ///
    /// [`Limiter::denied_subjects`](crate::Limiter::denied_subjects) reads those of this process. With Redis, this
    /// process also publishes them there, about ten seconds after a denial, and
    /// [`Limiter::top_denied`](crate::Limiter::top_denied) reads those of all processes. Denials from the cache count,
    /// and so do denials by this process alone in an outage.
    ///
    /// If a policy has n denials, every subject with more than 2n / `subjects` of them is kept, and no count is off by
    /// more than that: 1,000 find every subject with 0.2 % of the denials. In memory, a subject takes some 100 bytes
    /// and its text. A denial takes about 0.2 µs more. Only the first 1,000 policies with a denied call have their
    /// subjects kept; if there are more, the log has one warning.
    ///
    /// **Subjects may be personal data**, and this keeps and publishes them as they stand in keys. With the filter
    /// `hash`, as in `{phone:hash}`, they are digests.
    pub fn denied_subjects(mut self, subjects: usize) -> Self {
        self.denied_subjects = subjects;
        self
    }

    /// Sets whether this process lists its policies in Redis, for tools of operators: name, rules, ban and the templates of
    /// keys, and no subject. By default it does. See the guide about [the list of
    /// policies](crate::guide::production#the-list-of-policies).
    ///
    /// The list is written in the background after a policy's first decision by Redis, and renewed about once a day. No
    /// call waits for it or fails because of it.
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate::Limiter;
    ///
    /// let limiter = Limiter::builder().registry(false).connect_lazy("redis://127.0.0.1/")?;
    /// # Ok::<(), tallygate::Error>(())
    /// ```
    pub fn registry(mut self, registry: bool) -> Self {
        self.registry = registry;
        self
    }

    /// Connects as a user that may not write: for tools that only read. By default, a connection finds out whether the
    /// server may write by removing a key that does not exist; with this, it only reads. The server refuses everything
    /// that changes something.
    #[cfg(feature = "admin")]
    pub fn looks_only(mut self) -> Self {
        self.looks_only = true;
        self
    }

    /// Sets what to do when a subject comes near a limit of a policy that [warns](crate::PolicyBuilder::warn_at).
    ///
    /// It is called once for each rule near whose limit an admitted call has brought its subject: in the process that
    /// made the call, and again only after the subject was further away from the limit. The call waits for it, so it
    /// should only pass the warning on, for example to a channel. It must not panic: the call has been counted, and
    /// would end with that panic. Calls in [shadow](crate::rate_limit) warn, too; peeks do not.
    ///
    /// Where Redis decides a call that [blocks](crate::Check::blocking_decide), it is called on the thread of the
    /// limiter. Other blocking calls wait for that thread, and are refused on it.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    /// use tallygate::{Limiter, Policy, Rule, Subject};
    ///
    /// let (sender, warnings) = mpsc::channel();
    /// let limiter = Limiter::builder()
    ///     .on_warning(move |warning| _ = sender.send((warning.subject().to_owned(), warning.status().remaining())))
    ///     .build_in_memory()?;
    /// let policy = Policy::builder("api").rule(Rule::sliding_window(10, Duration::from_secs(60))).warn_at(0.8).build()?;
    /// for _ in 0..12 {
    ///     let _ = limiter.check(&policy, &Subject::of("alice")).await?;
    /// }
    /// drop(limiter);
    /// assert_eq!(warnings.iter().collect::<Vec<_>>(), [("alice".to_owned(), 2)]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_warning(mut self, on_warning: impl Fn(&Warning<'_>) + Send + Sync + 'static) -> Self {
        self.on_warning = Some(Arc::new(on_warning));
        self
    }

    /// Sets which certificates a `rediss://` connection accepts, and its own. Without this setting, it accepts the
    /// certificates that the system accepts.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Sets the clock by which the limiter decides, for [tests](crate::testing) only. In Redis, it replaces the
    /// server's clock.
    #[cfg(feature = "testing")]
    pub fn clock(mut self, clock: &ManualClock) -> Self {
        self.clock = clock.into();
        self
    }

    /// Puts the clock of this process ahead of the right time, while the server's clock is right. For the tests of this
    /// workspace.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn clock_ahead_by(mut self, us: i64) -> Self {
        self.clock = Clock::tokio_ahead_by(us);
        self
    }
}

impl LimiterBuilder {
    /// Refuses settings that cannot be used.
    fn check(&self) -> Result<(), Error> {
        self.check_prefix()?;
        self.check_secret()?;
        self.check_deadline()?;
        self.check_numbers()?;
        #[cfg(feature = "tls")]
        self.tls.as_ref().map_or(Ok(()), Tls::check)?;
        Ok(())
    }

    fn check_prefix(&self) -> Result<(), Error> {
        let mistake = match self.prefix.len() {
            0 => " must not be empty",
            1..=PREFIX_BYTES if self.prefix.bytes().all(is_plain) => return Ok(()),
            1..=PREFIX_BYTES => " may only contain letters, digits and `. _ @ + ~ -`",
            _ => " has at most 25 bytes",
        };
        let text = format!("`prefix`{mistake}, like `prefix(\"shop\")`");
        Err(Error::of_setting(Setting::Prefix, text, "", mistake))
    }

    fn check_secret(&self) -> Result<(), Error> {
        if self.secret.as_ref().is_none_or(|secret| !bare_secret(secret).is_empty()) {
            return Ok(());
        }
        let mistake = " must not be empty";
        let text = format!("`secret`{mistake}; leave it out, or give it random bytes");
        Err(Error::of_setting(Setting::Secret, text, "", mistake))
    }

    fn check_deadline(&self) -> Result<(), Error> {
        let mistake = match self.deadline {
            Duration::ZERO => " must be longer than zero",
            deadline if deadline > MAX_DEADLINE => " is at most an hour",
            _ => return Ok(()),
        };
        let text = format!("`deadline`{mistake}, like `deadline(Duration::from_millis(250))`");
        Err(Error::of_setting(Setting::Deadline, text, "", mistake))
    }

    fn check_numbers(&self) -> Result<(), Error> {
        let most_denied = format!("`denied_subjects` is at most {MOST_SUBJECTS}, like `denied_subjects(1_000)`");
        let mistakes = [
            (self.max_subjects == 0, "`max_subjects` must be at least 1, like `max_subjects(100_000)`"),
            (
                self.denial_cache > LONGEST_DENIAL_CACHE,
                "`denial_cache` is at most ten seconds, like `denial_cache(Duration::from_secs(1))`",
            ),
            (self.denied_subjects > MOST_SUBJECTS, &most_denied),
            (self.processes == 0, "`processes` must be at least 1, like `processes(4)`"),
        ];
        match mistakes.into_iter().find(|(is_mistaken, _)| *is_mistaken) {
            Some((_, text)) => Err(Error::new(text)),
            None => Ok(()),
        }
    }
}

// Leaves out the secret.
opaque_debug!(LimiterBuilder { prefix });
