//! The policy of one annotated function.

use std::any::type_name;
use std::borrow::Cow;

use once_cell::sync::OnceCell;
use tallygate_rules::{Ban, Rule};

use crate::decision::Rejection;
use crate::error::{BackendError, Error};
use crate::policy::{Policy, PolicyBuilder};

/// The policy of one annotated function, built at its first call.
///
/// It holds all that this takes, so that nothing of it is compiled again for every annotated function.
#[derive(Debug)]
pub struct PolicyCell {
    name: Name,
    rules: fn(&mut Rules),
    policy: OnceCell<Result<Policy, Rejection>>,
}

#[derive(Debug)]
enum Name {
    Given(&'static str),
    /// The path of the function that contains this item.
    Around(fn() -> &'static str),
    /// The path of the function with this name, next to the one that contains the item.
    Beside(&'static str, fn() -> &'static str),
}

impl PolicyCell {
    /// Returns a cell whose policy has that name.
    #[must_use]
    pub const fn named(name: &'static str, rules: fn(&mut Rules)) -> Self {
        Self { name: Name::Given(name), rules, policy: OnceCell::new() }
    }

    /// Returns a cell whose policy is named after its function, which contains the item.
    #[must_use]
    pub const fn unnamed<T: Copy>(_item: T, rules: fn(&mut Rules)) -> Self {
        Self { name: Name::Around(type_name::<T>), rules, policy: OnceCell::new() }
    }

    /// Returns a cell in the companion of a function: its policy is named after the function, which has that name.
    #[must_use]
    pub const fn unnamed_beside<T: Copy>(function: &'static str, _item: T, rules: fn(&mut Rules)) -> Self {
        Self { name: Name::Beside(function, type_name::<T>), rules, policy: OnceCell::new() }
    }

    /// Returns the policy, which is built at the first call.
    ///
    /// # Errors
    ///
    /// The policy is refused. The attribute has validated it with the same code, so only a mistake of this library leads
    /// here: it closes the function rather than leaving it unlimited.
    #[inline]
    pub fn policy(&'static self) -> Result<Cow<'static, Policy>, Rejection> {
        match self.policy.get() {
            Some(Ok(policy)) => Ok(Cow::Borrowed(policy)),
            _ => self.built(),
        }
    }

    #[cold]
    fn built(&'static self) -> Result<Cow<'static, Policy>, Rejection> {
        let built = self.policy.get_or_init(|| {
            let name = self.name.text();
            let mut rules = Rules::default();
            (self.rules)(&mut rules);
            let built = rules.into_policy(name.clone());
            built.map_err(|error| Rejection::unavailable(name, BackendError::with_source(error.to_string(), error)))
        });
        built.as_ref().map(Cow::Borrowed).map_err(Clone::clone)
    }
}

impl Name {
    fn text(&self) -> String {
        match self {
            Self::Given(name) => (*name).to_owned(),
            Self::Around(item) => path_of(item()).join("."),
            Self::Beside(function, item) => {
                let mut path = path_of(item());
                path.pop();
                path.push(function);
                path.join(".")
            }
        }
    }
}

/// Returns the path of the function that contains an item: `crate`, `module`, `Type`, `function`.
fn path_of(item: &str) -> Vec<&str> {
    let mut path: Vec<_> = item.split("::").filter(|segment| *segment != "{{closure}}").collect();
    path.pop();
    path
}

/// The rules of a policy, as the expansion adds them.
#[derive(Debug, Default)]
pub struct Rules {
    rules: Vec<(Option<&'static str>, Rule)>,
    ban: Option<Ban>,
}

impl Rules {
    /// Adds a rule on the subject of the call.
    pub fn rule(&mut self, rule: Rule) {
        self.rules.push((None, rule));
    }

    /// Adds a rule on another subject of the call.
    pub fn rule_on(&mut self, label: &'static str, rule: Rule) {
        self.rules.push((Some(label), rule));
    }

    /// Sets the ban.
    pub fn ban(&mut self, ban: Ban) {
        self.ban = Some(ban);
    }

    fn into_policy(self, name: String) -> Result<Policy, Error> {
        let builder = self.rules.into_iter().fold(Policy::builder(name), |builder, (label, rule)| match label {
            Some(label) => builder.rule_on(label, rule),
            None => builder.rule(rule),
        });
        self.ban.into_iter().fold(builder, PolicyBuilder::ban).build()
    }
}
