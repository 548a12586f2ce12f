//! From settings to a limiter: in memory, or on a server.

use std::num::NonZeroU64;
#[cfg(feature = "config")]
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};

use super::LimiterBuilder;
use crate::error::Error;
use crate::limiter::Limiter;
use crate::limiter::core::Core;
use crate::limiter::denied::DeniedSubjects;
use crate::limiter::overrides::Overrides;
use crate::limiter::registrations::Registrations;
use crate::limiter::stack::{Stack, StackSettings};
use crate::limiter::wait_queue::WaitQueues;
use crate::micros;
use crate::sleepers::Sleepers;
use crate::store::{Memory, Pauses, Redis, Setup, Standby};
use crate::subject::filters::Secret;
#[cfg(feature = "config")]
use crate::system::home::BackgroundTask;
use crate::system::home::Driver;

impl Limiter {
    /// Returns a limiter whose tallies are in this process, and nowhere else.
    ///
    /// It uses tokio's clock: a test that pauses time can advance it past a window instead of sleeping. To start at
    /// another time than now, build the limiter with a clock of the module `testing`, a feature of this crate.
    pub fn in_memory() -> Self {
        let builder = Self::builder();
        builder.build(None, Driver::home())
    }

    /// Starts a limiter with settings of your own.
    pub fn builder() -> LimiterBuilder {
        LimiterBuilder::default()
    }

    /// Connects to the server of a URL and returns a limiter that keeps its tallies there.
    ///
    /// | URL | where the tallies are |
    /// | --- | --- |
    /// | `redis://[user:password@]host[:port][/database]` | a Redis server of version 6.2 or later, or Valkey |
    /// | `rediss://[user:password@]host[:port][/database]` | the same, by TLS: needs the feature `tls` |
    /// | `redis+unix://[user:password@]/path[?db=database]` | the same, by a Unix socket |
    /// | `redis+sentinel://[user:password@]host[:port][,…]/name[/database]` | the primary that sentinels know by that name |
    /// | `redis+cluster://[user:password@]host[:port][,…]/` | a cluster: some of its nodes are enough |
    /// | `rediss+sentinel://…`, `rediss+cluster://…` | the same, by TLS |
    /// | `memory://` | this process, for a URL from the environment; in code, write [`Limiter::in_memory`] |
    ///
    /// User, password and path are percent-encoded: `%40` for `@`, `%2F` for `/`. The port is 6379, that of a sentinel 26379, and the
    /// database 0 unless the URL says otherwise. A password without a user, `:password@`, is that of the default user.
    ///
    /// # Errors
    ///
    /// The URL cannot be read ([`ErrorKind::Setting`](crate::ErrorKind::Setting)), or the server cannot be reached or
    /// refuses the password ([`ErrorKind::Backend`](crate::ErrorKind::Backend)).
    pub async fn connect(url: impl AsRef<str>) -> Result<Self, Error> {
        Self::builder().connect(url).await
    }
}

impl LimiterBuilder {
    /// Returns a limiter that keeps its tallies in this process.
    ///
    /// Settings for a server, like the deadline, are checked and have no effect.
    ///
    /// # Errors
    ///
    /// A setting cannot be used.
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate::Limiter;
    ///
    /// let limiter = Limiter::builder().secret("16 random bytes…").build_in_memory()?;
    /// # Ok::<(), tallygate::Error>(())
    /// ```
    pub fn build_in_memory(self) -> Result<Limiter, Error> {
        self.check()?;
        Ok(self.build(None, Driver::home()))
    }

    /// Connects to the server of a URL and returns a limiter that keeps its tallies there: see [`Limiter::connect`].
    ///
    /// # Errors
    ///
    /// A setting or the URL cannot be used, or the server cannot be reached or refuses the password.
    pub async fn connect(self, url: impl AsRef<str>) -> Result<Limiter, Error> {
        let limiter = self.connect_lazy(url)?;
        limiter.core.stack.store().reach().await?;
        Ok(limiter)
    }

    /// Returns a limiter that connects to the server of a URL with its first decision.
    ///
    /// Until the server can be reached, calls are decided by [`on_outage`](Self::on_outage).
    ///
    /// # Errors
    ///
    /// A setting or the URL cannot be used.
    pub fn connect_lazy(self, url: impl AsRef<str>) -> Result<Limiter, Error> {
        self.check()?;
        let driver = Driver::home();
        let redis = self.redis(url.as_ref(), &driver)?;
        Ok(self.build(redis, driver))
    }

    /// Returns a limiter that keeps its tallies on the server of that client, of version 1 of the crate `redis`. It
    /// connects with its first decision, and not before.
    ///
    /// Host, login, certificates, database and socket settings are the client's. The limiter has a connection of its
    /// own, with RESP3, and watches and replaces it as with a URL.
    ///
    /// # Errors
    ///
    /// A setting cannot be used, such as `tls`, as the client has its own.
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate::Limiter;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let limiter = Limiter::builder().prefix("shop").build_with_client(&client)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "redis")]
    pub fn build_with_client(self, client: &redis::Client) -> Result<Limiter, Error> {
        self.check()?;
        #[cfg(feature = "tls")]
        if self.tls.is_some() {
            return Err(Error::new("`tls` is set, but the client has settings of its own; leave `tls` out"));
        }
        let driver = Driver::home();
        let redis = Redis::of_client(client, self.setup(&driver))?;
        Ok(self.build(Some(redis), driver))
    }

    /// Builds a limiter from settings that were checked. Without a server, its tallies are in this process.
    fn build(self, redis: Option<Redis>, driver: Driver) -> Limiter {
        let Self { prefix, secret, clock, max_subjects, max_waiting, on_warning, denied_subjects, .. } = self;
        let Self { on_outage, processes, registry, denial_cache, deadline, .. } = self;
        // The checks refuse 0.
        let processes = NonZeroU64::new(processes).unwrap_or(NonZeroU64::MIN);
        let secret = secret.as_deref().map_or_else(Secret::public, Secret::new);
        let registry = registry && redis.is_some();
        if registry {
            // The digest takes some time: computed now, it delays no call.
            secret.fingerprint();
        }
        let sleepers = Arc::new(Sleepers::new(prefix.clone()));
        let standby = Standby::new(clock.clone(), max_subjects, processes, Arc::clone(&sleepers));
        let layers = StackSettings {
            prefix: prefix.clone(),
            deadline,
            denial_cache,
            on_outage,
            standby,
            clock: clock.clone(),
            sleepers: Arc::clone(&sleepers),
            runtimes: Arc::clone(&driver.runtimes),
        };
        let redis = redis.map(Arc::new);
        let overrides = Overrides::new(redis.clone(), clock.clone());
        let core = |core: &Weak<Core>| Core {
            stack: match redis {
                None => Stack::Here(Memory::new(clock.clone(), max_subjects)),
                Some(redis) => {
                    let core = Weak::clone(core);
                    let begin_refresh_if_old =
                        move || core.upgrade().is_some_and(|core| core.refresh_overrides().is_some());
                    Stack::Remote(layers.layers(redis, begin_refresh_if_old))
                }
            },
            pauses: Pauses::new(micros::from_duration(denial_cache)),
            prefix,
            secret,
            wait_queues: WaitQueues::new(max_waiting),
            sleepers,
            overrides,
            clock,
            on_warning,
            denied_subjects: DeniedSubjects::new(denied_subjects),
            registrations: Registrations::new(registry),
            #[cfg(feature = "config")]
            file_watch: BackgroundTask::default(),
            #[cfg(feature = "config")]
            limits_requests: AtomicBool::new(false),
            runtimes: driver.runtimes,
        };
        Limiter { core: Arc::new_cyclic(core) }
    }

    /// Returns the server at this URL; `None` for memory. It connects for the first decision.
    fn redis(&self, url: &str, driver: &Driver) -> Result<Option<Redis>, Error> {
        match url.split_once("://") {
            Some(("memory", "")) => return Ok(None),
            Some(("memory", _)) => {
                return Err(Error::new("`url` has something behind `memory://`; write just that"));
            }
            _ => {}
        }
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            return Redis::open_with_tls(url, tls, self.setup(driver)).map(Some);
        }
        Redis::open(url, self.setup(driver)).map(Some)
    }

    fn setup(&self, driver: &Driver) -> Setup {
        Setup {
            prefix: self.prefix.clone(),
            deadline: self.deadline,
            clock: self.clock.clone(),
            looks_only: self.looks_only,
            driver: driver.clone(),
        }
    }
}
