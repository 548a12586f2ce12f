//! Policies from a file, as a limiter applies them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tallygate_rules::CALLS;

use super::Limiter;
use crate::bounds::MOST_SUGGESTIONS;
use crate::config::{Policies, PolicyChange};
use crate::context;
use crate::error::{ConfigError, Mistake};
use crate::observe::log;
use crate::policy::registry;

/// Policies that a limiter has [applied](Limiter::apply).
#[derive(Clone, Debug)]
pub struct Applied {
    policies: Policies,
}

/// Policies that were put in force, before this is reported.
pub(super) struct PutInForce {
    applied: Applied,
    /// The names that only the file before had.
    lost: Vec<String>,
}

impl Limiter {
    /// Puts the policies of a file in force for all calls that this limiter decides, in place of those that were
    /// applied before. A policy that is no longer in the file has the rules of the program again, and the log has a
    /// warning with its name.
    ///
    /// Call it at start-up, and again whenever the file has changed. It holds for this limiter and its clones, in this
    /// process; each process reads its own file. [Overrides](Self::override_policy), such as those in Redis, take
    /// precedence.
    ///
    /// Counts are kept as long as the layout of the tallies is the same: a new `count` keeps them, and a new longest
    /// window or a new algorithm starts new tallies.
    ///
    /// It changes the policies of all annotated functions, even before their first call, and policies that are built by
    /// hand as soon as they are built. If the file does not fit a policy that is built later, this policy keeps all its
    /// own rules, and the log has an error with the place of the mistake. Unknown names change nothing, as programs may
    /// share a file: [`Applied::require_known`] refuses them.
    ///
    /// # Errors
    ///
    /// * The file does not fit a policy that this process knows: it has another `key`, or rules on a subject that the
    ///   policy does not have, or the count of a plan is too great for it.
    /// * While `web::limits` limits a router by the file: a key shows a value of requests that the file in force does
    ///   not show, that no `web::Layer` of this process finds, and that is not [declared](crate::context::declare).
    ///
    /// After an error, nothing is applied, and what was in force stays in force.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tallygate::config::Policies;
    /// use tallygate::{Limiter, Policy, Rule, Subject};
    ///
    /// let limiter = Limiter::in_memory();
    /// let policy = Policy::builder("export").rule(Rule::sliding_window(1, Duration::from_secs(3600))).build()?;
    ///
    /// let applied = limiter.apply(&Policies::from_toml("[policy.export]\nrules = ['2 per 1h']")?)?;
    /// applied.require_known()?;
    /// for _ in 0..2 {
    ///     assert!(limiter.check(&policy, &Subject::everyone()).await?.is_allowed());
    /// }
    /// assert!(!limiter.check(&policy, &Subject::everyone()).await?.is_allowed());
    /// # Ok(())
    /// # }
    /// ```
    pub fn apply(&self, policies: &Policies) -> Result<Applied, ConfigError> {
        self.apply_silently(policies).map(|put| put.reported(None))
    }

    /// Applies the policies, and reports nothing.
    pub(super) fn apply_silently(&self, policies: &Policies) -> Result<PutInForce, ConfigError> {
        registry::know_annotated();
        let of_known = policies.changes().iter().filter_map(|change| {
            let policy = registry::find(&change.name)?;
            change.apply(&policy).err()
        });
        let mut mistakes: Vec<_> = of_known.flatten().collect();
        let functions = registry::all();
        mistakes.extend(policies.too_great_counts(functions.iter().filter(|policy| policy.is_of_function())));
        mistakes.extend(self.unknown_values(policies));
        if !mistakes.is_empty() {
            return Err(ConfigError::new(mistakes));
        }
        let before = self.core.overrides.applied();
        self.core.overrides.apply(policies);
        let lost = before.iter().flat_map(|before| before.names_not_in(policies)).map(str::to_owned).collect();
        self.core.registrations.renew();
        Ok(PutInForce { applied: Applied { policies: policies.clone() }, lost })
    }

    /// Returns the count of a plan in the file that was applied last: `plans.free = 100` in the table of the policy, or else
    /// `free = 100` in `[plans]`, which all policies share.
    /// Use it in a `count` that is an expression, or in [`Policy::with_counts`](crate::Policy::with_counts).
    ///
    /// `None` means that no file was applied, or that it has no such plan. A count of 0 closes the limit. Of a plan with a count
    /// for each unit, it is that of `calls`: [`plan_count_of`](Self::plan_count_of) returns the others.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tallygate::config::Policies;
    /// use tallygate::{Limiter, Rejection, rate_limit};
    ///
    /// struct User {
    ///     id: u64,
    ///     plan: String,
    /// }
    ///
    /// impl User {
    ///     fn calls(&self) -> u64 {
    ///         Limiter::installed().plan_count("render", &self.plan).unwrap_or(10)
    ///     }
    /// }
    ///
    /// #[rate_limit(name = "render", key = "{user.id}", rule(count = user.calls(), per = "1h"))]
    /// async fn render(user: &User) -> Result<(), Rejection> {
    ///     Ok(())
    /// }
    ///
    /// let text = "[policy.render]\nplans.free = 1\nplans.paid = 10_000";
    /// Limiter::installed().apply(&Policies::from_toml(text)?)?;
    /// let zoe = User { id: 7, plan: "free".to_owned() };
    /// assert!(render(&zoe).await.is_ok() && render(&zoe).await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn plan_count(&self, policy: &str, plan: &str) -> Option<u64> {
        self.plan_count_of(policy, plan, CALLS)
    }

    /// Returns the count of a plan for rules in that unit: `plans.pro = { calls = 20, tokens = 60_000 }`.
    ///
    /// `None` means that no file was applied, that it has no such plan, or that the plan has no count in that unit. A plan with
    /// one count, like `pro = 20`, has that of `calls`, and where no count of the policy in `calls` is an expression, also that
    /// of the first rule whose count is one.
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate::Limiter;
    /// use tallygate::config::Policies;
    ///
    /// let limiter = Limiter::in_memory();
    /// let _ = limiter.apply(&Policies::from_toml("[plans]\nfree = 3\npro = { calls = 20, tokens = 60_000 }")?)?;
    /// assert_eq!(limiter.plan_count_of("chat", "pro", "tokens"), Some(60_000));
    /// assert_eq!([limiter.plan_count("chat", "pro"), limiter.plan_count("chat", "free")], [Some(20), Some(3)]);
    /// assert_eq!(limiter.plan_count_of("chat", "free", "tokens"), None);
    /// # Ok::<(), tallygate::config::ConfigError>(())
    /// ```
    #[must_use]
    pub fn plan_count_of(&self, policy: &str, plan: &str, unit: &str) -> Option<u64> {
        self.core.overrides.plan_count(policy, plan, unit)
    }

    /// Returns a mistake for each value in a key that no layer of this program finds in requests, once the program has
    /// layers. A value that the file in force shows is accepted: it may come from contexts of the program.
    fn unknown_values(&self, policies: &Policies) -> Vec<Mistake> {
        let limits_requests = self.core.limits_requests.load(Ordering::Relaxed);
        if limits_requests { policies.unknown_values(self.applied().as_ref()) } else { Vec::new() }
    }

    /// Notes that the file limits a router.
    pub(crate) fn note_limits_of_requests(&self) {
        self.core.limits_requests.store(true, Ordering::Relaxed);
    }

    pub(crate) fn applied(&self) -> Option<Policies> {
        self.core.overrides.applied()
    }
}

impl PutInForce {
    /// Reports the policies, and their file if it is known.
    pub(super) fn reported(self, file: Option<&Path>) -> Applied {
        let Self { applied, lost } = self;
        if !lost.is_empty() {
            log::policies_lost(&lost);
        }
        let (all, unknown) = (applied.policies.names().count(), applied.unknown_changes().count());
        log::policies_applied(all, unknown, file, context::operator().as_deref());
        applied
    }
}

impl Applied {
    fn unknown_changes(&self) -> impl Iterator<Item = &Arc<PolicyChange>> {
        self.policies.changes().iter().filter(|change| registry::find(&change.name).is_none())
    }

    /// Returns the names in the file that this process does not know at this moment, with their places and what was
    /// probably meant: names of policies, of values of requests in keys, and of units in `[plans]`, if a policy counts a unit of
    /// a similar name.
    ///
    /// The process knows all annotated functions that are linked into the program, and policies that were built and are
    /// in use. It knows values that one of its `web::Layer`s finds, or that are [declared](crate::context::declare).
    /// Before the process has made a layer, values are not checked.
    #[must_use]
    pub fn unknown(&self) -> Vec<Mistake> {
        let values = self.policies.unknown_values(None);
        let units = self.policies.misspelt_units(registry::all().iter());
        self.unknown_policies().into_iter().chain(units).chain(values).collect()
    }

    fn unknown_policies(&self) -> Vec<Mistake> {
        let unknown: Vec<_> = self.unknown_changes().collect();
        if unknown.is_empty() {
            return Vec::new();
        }
        let known = registry::all();
        let hint = "a policy that is built by hand is known from then on";
        let mistake = |(number, change): (usize, &&Arc<PolicyChange>)| {
            let known = if number < MOST_SUGGESTIONS { &known[..] } else { &[] };
            Mistake::new(change.place, registry::unknown(&change.name, known, hint))
        };
        unknown.iter().enumerate().map(mistake).collect()
    }

    /// Refuses names that this process does not know at this moment, such as misspelt ones. Call it at start-up, once
    /// the policies that are built by hand and the routers with their layers are there.
    ///
    /// The policies stay applied.
    ///
    /// # Errors
    ///
    /// There are unknown names: see [`unknown`](Self::unknown).
    pub fn require_known(&self) -> Result<(), ConfigError> {
        let unknown = self.unknown();
        if unknown.is_empty() { Ok(()) } else { Err(ConfigError::new(unknown)) }
    }
}
