//! The policies of a file.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use tallygate_rules::CALLS;
use toml::de::{DeTable, DeValue};

use super::change::PolicyChange;
use super::lines::{At, Lines};
use super::plans::{self, ListedPlans, Plans};
use super::policy_table;
use super::request_limits::RequestLimits;
use super::table::{Table, entries};
use crate::bounds::{FILE_BYTES, MOST_POLICIES, MOST_TEXTS};
use crate::context;
use crate::error::{ConfigError, Mistake, Place};
use crate::observe::opaque_debug;
use crate::policy::{PlanCounts, Policy};

/// The policies of a file: see the [module](crate::config).
///
/// Cloning is cheap. Nothing is in force until they are [applied](crate::Limiter::apply).
#[derive(Clone)]
#[must_use = "nothing is in force until `limiter.apply(&policies)`"]
pub struct Policies {
    inner: Arc<PoliciesInner>,
}

#[derive(Default)]
struct PoliciesInner {
    names: Vec<String>,
    has_end: bool,
    changes: Vec<Arc<PolicyChange>>,
    requests: RequestLimits,
    plans: Arc<ListedPlans>,
    /// The values that the program finds in requests, if the file lists them.
    values: Option<Vec<String>>,
}

impl Policies {
    /// Reads the policies of a file in TOML.
    ///
    /// # Errors
    ///
    /// All mistakes in it, with their lines and columns: those of the syntax, else those that the attribute refuses, in the
    /// same words. A file of more than 4 MiB, or of more than 1,000 policies, is a mistake, too. What shows only beside the policies
    /// of the program is found by [`Limiter::apply`](crate::Limiter::apply).
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate::config::Policies;
    ///
    /// let text = r#"
    /// [policy."sms.send"]
    /// rules = ["1 per 60s", { count = 0, per = "1d", nam = "daily" }]
    /// "#;
    /// let error = Policies::from_toml(text).unwrap_err();
    /// let mistakes: Vec<_> = error.mistakes().iter().map(ToString::to_string).collect();
    /// assert_eq!(
    ///     mistakes,
    ///     [
    ///         "line 3, column 33: `count` must be at least 1, like `count = 10`",
    ///         "line 3, column 48: unknown argument `nam`; did you mean `name`?",
    ///     ]
    /// );
    /// ```
    pub fn from_toml(text: impl AsRef<str>) -> Result<Self, ConfigError> {
        read(text.as_ref()).map(|inner| Self { inner: Arc::new(inner) })
    }

    /// Refuses a file without policies, unless it has `[end]`: a file that was emptied, or cut, has none either.
    ///
    /// [`Limiter::watch_file`](crate::Limiter::watch_file) does so. Do it with texts that come from elsewhere, before they are
    /// applied.
    ///
    /// # Errors
    ///
    /// There are no policies, and there is no `[end]`.
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate::config::Policies;
    ///
    /// assert!(Policies::from_toml("# soon\n")?.require_not_empty().is_err());
    /// assert!(Policies::from_toml("# none\n[end]\n")?.require_not_empty().is_ok());
    /// # Ok::<(), tallygate::config::ConfigError>(())
    /// ```
    pub fn require_not_empty(&self) -> Result<(), ConfigError> {
        if self.has_end() || !self.inner.names.is_empty() {
            return Ok(());
        }
        let message = "there are no policies; write one, like `[policy.\"sms.send\"]`, or `[end]` as the last line if there shall \
                       be none";
        Err(ConfigError::new(vec![Mistake::new(START, message)]))
    }

    /// Returns the names of the policies, in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.inner.names.iter().map(String::as_str)
    }

    /// Returns the policy of that name as the file alone says it: to simulate it, or to show it. `None` if the file
    /// does not have it, or has no rules of it.
    ///
    /// It lacks what only the program knows: its other rules, its ban, its messages. The label of a rule with a `key`
    /// of its own is that key, like `{ip}`.
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate::config::Policies;
    ///
    /// let text = r#"
    /// [policy.search]
    /// rules = ["5 per 1s", { count = 100, per = "1h", key = "{ip}" }]
    /// "#;
    /// let policy = Policies::from_toml(text)?.policy("search").ok_or("it is there")?;
    /// assert_eq!(policy.rules()[1].to_string(), "100 per 1h");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn policy(&self, name: &str) -> Option<Policy> {
        self.inner.requests.policy(name).or_else(|| self.change(name)?.policy())
    }

    /// Returns the policy of that name as tools show it: a rule whose count is that of a plan has none.
    #[cfg(feature = "admin")]
    pub(crate) fn open_policy(&self, name: &str) -> Option<Policy> {
        self.inner.requests.open_policy(name).cloned().or_else(|| self.change(name)?.policy())
    }

    fn change(&self, name: &str) -> Option<&PolicyChange> {
        self.inner.changes.iter().find(|change| change.name == name).map(|change| &**change)
    }

    /// Returns the counts of a policy's plans, by the names of the plans: those of the policy itself, and those that the
    /// file has for all policies. Requests of a listed plan have the counts in the rules where the plan says none.
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate::PlanCounts;
    /// use tallygate::config::Policies;
    ///
    /// let text = r#"
    /// [plans]
    /// free = 100
    /// paid = 10_000
    ///
    /// [policy.export]
    /// plans.paid = 50
    /// "#;
    /// let policies = Policies::from_toml(text)?;
    /// let [free, paid] = [100, 50].map(PlanCounts::One);
    /// assert_eq!(policies.plans("export").into_iter().collect::<Vec<_>>(), [("free", free), ("paid", paid)]);
    /// assert_eq!(policies.plans("search")["paid"].count_of("calls"), Some(10_000));
    /// # Ok::<(), tallygate::config::ConfigError>(())
    /// ```
    #[must_use]
    pub fn plans(&self, policy: &str) -> BTreeMap<&str, PlanCounts> {
        if let Some(counts) = self.inner.requests.plan_counts(policy) {
            return counts;
        }
        let change = self.change(policy);
        let counts = change.map_or_else(|| self.inner.plans.counts().collect(), |change| change.plans.counts());
        counts.into_iter().map(|(plan, counts)| (plan, counts.clone())).collect()
    }

    /// Returns the plans of policies that give none of their own.
    pub(crate) fn listed_plans(&self) -> &ListedPlans {
        &self.inner.plans
    }

    /// Whether the file says by `[end]` that it is whole.
    pub(crate) fn has_end(&self) -> bool {
        self.inner.has_end
    }

    /// Returns the names that the other file does not have.
    pub(crate) fn names_not_in(&self, others: &Self) -> impl Iterator<Item = &str> {
        let others: HashSet<_> = others.names().collect();
        self.names().filter(move |name| !others.contains(name))
    }

    /// Returns the places of names that may be misspelt, as only the program knows them: one for each value of requests that the
    /// file does not list, one for each unit in `[plans]` that no policy of the file counts, if one has a `plan` or counts a unit
    /// of a similar name, and one if it does not list its plans.
    ///
    /// A request always has its `ip`, `method`, `path`, `route` and header fields. Only the program knows which other
    /// values it finds: [`Limiter::apply`](crate::Limiter::apply) refuses the rest. In a file that lists them, like
    /// `values = ["user"]` and `plans = ["free", "paid"]`, [`from_toml`](Self::from_toml) refuses others.
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate::config::Policies;
    ///
    /// let policy = "[policy.search]\nmatch = { path = '/search' }\nkey = '{@usr}'\nrules = ['60 per 1m']";
    /// assert_eq!(Policies::from_toml(policy)?.unlisted()[0].line(), 3);
    /// let error = Policies::from_toml(format!("values = ['user']\n{policy}")).unwrap_err();
    /// assert!(error.to_string().ends_with("`{@usr}` is no value that `values` lists; did you mean `user`?"));
    /// # Ok::<(), tallygate::config::ConfigError>(())
    /// ```
    #[must_use]
    pub fn unlisted(&self) -> Vec<Mistake> {
        let plans = plans::unlisted(self.inner.plans_of_policies());
        let requests = &self.inner.requests;
        let values = requests.unlisted_values().into_iter().filter(|_| self.inner.values.is_none());
        let units = self.inner.plans.uncounted_units(&self.inner.units().collect(), requests.have_plans());
        plans.into_iter().chain(units).chain(values).collect()
    }

    /// Returns the mistakes of keys that show a value which no layer of this process finds. Without a layer, there are
    /// none. Values that the policies in force show are no mistakes.
    pub(crate) fn unknown_values(&self, in_force: Option<&Self>) -> Vec<Mistake> {
        if !context::has_layers() {
            return Vec::new();
        }
        self.inner.requests.unknown_values(in_force.map(|in_force| &in_force.inner.requests))
    }

    /// Returns a mistake for each unit in `[plans]` that neither these policies nor those of the file count but that resembles
    /// a unit which one counts. Other programs may share the file, so other units are no mistakes.
    pub(crate) fn misspelt_units<'p>(&'p self, of_program: impl Iterator<Item = &'p Policy>) -> Vec<Mistake> {
        self.inner.plans.misspelt_units(&of_program.flat_map(Policy::units).chain(self.inner.units()).collect())
    }

    /// Returns the mistakes of counts in `[plans]` that are too great for one of these policies, whose calls would have the
    /// greatest count in their place.
    pub(crate) fn too_great_counts<'p>(&self, of_program: impl Iterator<Item = &'p Policy>) -> Vec<Mistake> {
        if self.inner.plans.counts().next().is_none() {
            return Vec::new();
        }
        // The counts of policies for requests are checked with them.
        let of_functions = of_program.filter(|policy| self.inner.requests.open_policy(policy.name()).is_none());
        let changed = of_functions.filter_map(|policy| match self.change(policy.name()) {
            Some(change) => Some((change.apply(policy).ok()?, Some(&change.plans))),
            None => Some((policy.clone(), None)),
        });
        self.inner.plans.too_great_for(&changed.collect::<Vec<_>>())
    }

    pub(crate) fn changes(&self) -> &[Arc<PolicyChange>] {
        &self.inner.changes
    }

    pub(crate) fn requests(&self) -> &RequestLimits {
        &self.inner.requests
    }
}

impl PoliciesInner {
    /// Returns the units that the policies of the file count.
    fn units(&self) -> impl Iterator<Item = &str> {
        let of_program = self.changes.iter().flat_map(|change| change.units());
        of_program.chain(self.requests.policies().flat_map(Policy::units)).chain([CALLS])
    }

    fn plans_of_policies(&self) -> impl Iterator<Item = &Plans> {
        self.changes.iter().map(|change| &change.plans).chain(self.requests.plans())
    }
}

opaque_debug!(Policies, policies => { names: policies.inner.names });

const START: Place = Place { line: 1, column: 1 };

/// The last line of a file, if it says that the file is whole.
const END: &str = "[end]";

const VALUES: &str = r#"values = ["user", "plan"]"#;

fn read(text: &str) -> Result<PoliciesInner, ConfigError> {
    if text.len() > FILE_BYTES {
        let message = format!("the file is longer than {} MiB; write fewer policies", FILE_BYTES >> 20);
        return Err(ConfigError::new(vec![Mistake::new(START, message)]));
    }
    let (root, syntax) = DeTable::parse_recoverable(text);
    let mut lines = Lines::new(text);
    let mut inner = PoliciesInner::default();
    for mistake in &syntax {
        let place = lines.place(&mistake.span().unwrap_or_default());
        lines.report(place, mistake.message());
    }
    // After a mistake in the syntax, what else is found may be no mistake.
    if syntax.is_empty() {
        read_policies(root.get_ref(), &mut inner, &mut lines);
    }
    lines.finish(inner)
}

fn read_policies(root: &DeTable<'_>, inner: &mut PoliciesInner, lines: &mut Lines<'_>) {
    let mut root = Table::new(root, START, lines);
    inner.values = take_values(&mut root, lines);
    inner.plans = Arc::new(ListedPlans::take(&mut root, lines));
    if let Some(policies) = root.take("policy") {
        let message = "`policy` must be a table of policies, like `[policy.\"sms.send\"]`";
        let table = lines.ok_or_report(policies.value.place, policies.value.value.as_table().ok_or(message));
        let table = table.map(|table| entries(table, lines)).unwrap_or_default();
        if table.len() > MOST_POLICIES {
            let message = format!("there are {} policies, and {MOST_POLICIES} are the most; write fewer", table.len());
            lines.report(policies.name.place, message);
            return;
        }
        for policy in table {
            inner.names.push(policy.name.value.to_owned());
            let change = policy_table::read(policy, &inner.plans, &mut inner.requests, lines);
            inner.changes.extend(change.map(Arc::new));
        }
    }
    if let Some(end) = root.take("end") {
        inner.has_end = true;
        if !lines.is_last_header(END, end.name.place) {
            lines.report(end.name.place, "`[end]` must be the last line, and have nothing in it");
        }
    }
    root.finish(lines);
    plans::check_alike(&inner.plans_of_policies().collect::<Vec<_>>(), lines);
    inner.requests.check(inner.values.as_deref(), lines);
}

/// Takes `values`: the values of the context that requests have, as far as the file lists them.
fn take_values(root: &mut Table<'_>, lines: &mut Lines<'_>) -> Option<Vec<String>> {
    let list = root.list("values", VALUES, lines)?;
    if list.value.len() > MOST_TEXTS {
        let message = format!("`values` has {} texts, and {MOST_TEXTS} are the most; write fewer", list.value.len());
        lines.report(list.place, message);
        return None;
    }
    let name = |written: At<_>| {
        let value: &DeValue<'_> = written.value;
        let name = value.as_str().filter(|name| is_name(name)).map(str::to_owned);
        let message = || format!("`values` lists names of letters, digits and `_`, like `{VALUES}`");
        lines.ok_or_report(written.place, name.ok_or_else(message))
    };
    Some(list.value.into_iter().filter_map(name).collect())
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistakes(text: &str) -> Vec<String> {
        Policies::from_toml(text).unwrap_err().mistakes().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_file_has_a_bounded_number_of_policies_rules_and_bytes() {
        let policies = |number: usize| {
            let policy = |number: usize| format!("[policy.p{number}]\nrules = ['1 per 1h']\n");
            (0..number).map(policy).collect::<Vec<_>>().concat()
        };
        assert_eq!(Policies::from_toml(policies(1_000)).unwrap().names().count(), 1_000);
        assert_eq!(
            mistakes(&policies(1_001)),
            ["line 1, column 2: there are 1001 policies, and 1000 are the most; write fewer"]
        );
        let rules = vec!["'1 per 1h'"; 20_000].join(", ");
        assert_eq!(
            mistakes(&format!("[policy.p]\nrules = [{rules}]")),
            ["line 2, column 9: a policy has at most 32 rules, but this one has 20000; split it up"]
        );
        let long = mistakes(&format!("#{}", "x".repeat(FILE_BYTES)));
        assert_eq!(long, ["line 1, column 1: the file is longer than 4 MiB; write fewer policies"]);
        let name = mistakes(&format!("[policy.{}]\nrules = ['1 per 1h']", "x".repeat(257)));
        assert_eq!(name, ["line 1, column 9: the name of a policy has 256 bytes at most; shorten it"]);
        let name =
            mistakes(&format!("[policy.p]\nrules = [{{ count = 1, per = '1h', name = '{}' }}]", "x".repeat(129)));
        assert!(name[0].contains("`name` of a rule has 128 bytes at most, and this one has 129"), "{name:?}");
    }

    #[test]
    fn a_key_of_many_values_is_refused_before_they_are_compared() {
        let values = "{v}:".repeat(300_000);
        let message = format!("`key` has 4096 bytes at most, and this one has {}; shorten it", values.len());
        let of_policy = mistakes(&format!("[policy.p]\nkey = '{values}'\nrules = ['1 per 1h']"));
        assert_eq!(of_policy, [format!("line 2, column 7: {message}")]);
        let of_rule = mistakes(&format!("[policy.p]\nrules = [{{ count = 1, per = '1h', key = '{values}' }}]"));
        assert_eq!(of_rule, [format!("line 2, column 41: {message}")]);
    }

    #[test]
    fn of_many_mistakes_in_one_long_line_the_first_are_reported() {
        let entries: Vec<_> = (0..20_000).map(|number| format!("x{number} = 1")).collect();
        let text = format!("policy.p = {{ rules = ['1 per 1h'], {} }}", entries.join(", "));
        let mistakes = mistakes(&text);
        assert_eq!(mistakes.len(), 1_000);
        assert!(mistakes[0].starts_with("line 1, column 36: unknown argument `x0`"), "{}", mistakes[0]);
    }

    #[cfg(feature = "web")]
    #[test]
    fn a_file_has_a_bounded_number_of_paths() {
        let policy = |number: usize, paths: usize| {
            let paths: Vec<_> = (0..paths).map(|path| format!("'/{number}/{path}'")).collect();
            format!(
                "[policy.p{number}]\nmatch = {{ path = [{}] }}\nkey = '{{@ip}}'\nrules = ['1 per 1h']\n",
                paths.join(",")
            )
        };
        assert!(mistakes(&policy(0, 257))[0].contains("`path` has 257 texts, and 256 are the most"));
        let file = |policies: usize| (0..policies).map(|number| policy(number, 256)).collect::<Vec<_>>().concat();
        assert_eq!(Policies::from_toml(file(16)).unwrap().names().count(), 16);
        assert!(mistakes(&file(17))[0].contains("there are more than 4096 paths"));
    }
}
