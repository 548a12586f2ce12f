//! The fields of responses that show clients the state of their limits.

mod formats;
mod item;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use tallygate_rules::Role;

use self::item::Item;
#[cfg(feature = "utoipa")]
pub(super) use self::item::unit_in_fields;
pub(super) use self::item::{limit_name, whole_seconds};
use crate::web::decisions::{Decisions, LimitStatus};

/// The fields that show clients the state of their limits.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use tallygate::web::{Decisions, Draft, Fields};
/// use tallygate::{Limiter, Policy, Rule, Subject};
///
/// let limiter = Limiter::in_memory();
/// let policy = Policy::builder("captcha").rule(Rule::sliding_window(5, Duration::from_secs(60))).build()?;
/// let decision = limiter.check(&policy, &Subject::of("alice")).report().await?;
///
/// let decisions = Decisions::new();
/// decisions.add(&policy, &decision);
/// let fields = Fields::from(Draft::V11).render(&decisions);
/// assert_eq!(fields[0], ("ratelimit-policy".into(), r#""captcha.1m";q=5;w=60"#.to_owned()));
/// assert_eq!(fields[1], ("ratelimit".into(), r#""captcha.1m";r=4;t=60"#.to_owned()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fields {
    pub(super) draft: Option<Draft>,
    pub(super) legacy: Option<Legacy>,
    items: Items,
}

/// A version of the draft `draft-ietf-httpapi-ratelimit-headers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Draft {
    /// Version 11: `RateLimit-Policy: "captcha.1m";q=5;w=60` and `RateLimit: "captcha.1m";r=4;t=60`, with an item for each
    /// rule. `t` is the time until nothing is counted or, where nothing is left, until something is. `qu` is the unit of a
    /// rule that does not count requests: `"chat.tokens.1m";q=20000;qu="tokens";w=60`.
    V11,
    /// Version 7: `RateLimit-Policy: 5;w=60` with an item for each rule on requests, and `RateLimit: limit=5,
    /// remaining=4, reset=60` for the [tightest](Items::Tightest) rule. A ban has neither. A rule whose reset is not
    /// known lacks the second.
    V7,
}

/// Fields of other interfaces than the draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Legacy {
    /// `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset`, in seconds from now, of the
    /// [tightest](Items::Tightest) rule. They are left out for a ban, and for a rule whose reset is not known. The reset is the
    /// time until nothing is counted or, where nothing is left, until one more request is admitted.
    XRateLimit,
    /// The fields of OpenAI's interface: `x-ratelimit-limit-requests`, `x-ratelimit-remaining-requests` and
    /// `x-ratelimit-reset-requests`, like `6m0s`, `1s` or `20ms`, and `…-tokens` and so on for each other unit. An underscore in
    /// the name of a unit becomes a hyphen.
    ///
    /// Of each unit it is the rule with the longest denial, or else the one with the least left. Concurrency limits and
    /// duplicates are left out. The reset is the time until nothing is counted; where nothing is left, until something is; and, if
    /// the rule denied a call, until that call would be admitted. It is the whole window where it is not known.
    XRateLimitByUnit,
}

/// Which rules a field lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Items {
    /// Every rule that decided a call, but a duplicate only if it denied it. If there are more than 16, the 16 tightest.
    #[default]
    All,
    /// The rule that a client can act on: the one with the longest denial, or else the one with the least left. A
    /// concurrency limit is chosen only if it denied the call, or if there are no other rules. Of units, calls
    /// go first: what is left of one unit cannot be compared with what is left of another.
    Tightest,
}

impl Fields {
    /// Returns a choice without any fields.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds the fields of a version of the draft. They replace those of another version.
    #[must_use]
    pub fn draft(self, draft: Draft) -> Self {
        self.with_draft(Some(draft))
    }

    pub(super) fn with_draft(self, draft: Option<Draft>) -> Self {
        Self { draft, ..self }
    }

    /// Adds fields of other interfaces than the draft. They replace those of another one.
    #[must_use]
    pub fn legacy(self, legacy: Legacy) -> Self {
        Self { legacy: Some(legacy), ..self }
    }

    /// Chooses which rules are listed: all of them by default.
    #[must_use]
    pub fn items(self, items: Items) -> Self {
        Self { items, ..self }
    }

    /// Returns the names, in lower case, and the values of the fields for a request with these decisions.
    ///
    /// A rule on duplicates is listed only if it denied the call. It says nothing of other calls, and clients that read that
    /// nothing is left would hold them back.
    ///
    /// If a call was denied, no window ends later than the wait of that call, so that no client waits longer than
    /// `Retry-After`.
    #[must_use]
    pub fn render(self, decisions: &Decisions) -> Vec<(Cow<'static, str>, String)> {
        let mut standings = decisions.standings();
        standings.retain(LimitStatus::concerns_other_calls);
        let Some(tightest) = tightest(&standings) else { return Vec::new() };
        let item = |standing: &LimitStatus| Item::new(standing, decisions.longest_wait());
        let items: Vec<Item> = match self.items {
            Items::All => standings.iter().map(item).collect(),
            Items::Tightest => vec![item(tightest)],
        };
        let tightest = item(tightest);
        let mut fields = match self.draft {
            Some(Draft::V11) => formats::draft_11(&items),
            Some(Draft::V7) => formats::draft_7(&items, &tightest),
            None => Vec::new(),
        };
        match self.legacy {
            Some(Legacy::XRateLimit) => fields.extend(formats::x_ratelimit(&tightest).into_iter().flatten()),
            Some(Legacy::XRateLimitByUnit) => {
                let of_units = tightest_of_units(&standings).into_iter().map(|standing| Item::new(standing, None));
                fields.extend(of_units.filter_map(|item| formats::x_ratelimit_of_unit(&item)).flatten());
            }
            None => {}
        }
        fields
    }
}

/// The fields of a version of the draft.
impl From<Draft> for Fields {
    fn from(draft: Draft) -> Self {
        Self::none().draft(draft)
    }
}

/// Fields of other interfaces than the draft.
impl From<Legacy> for Fields {
    fn from(legacy: Legacy) -> Self {
        Self::none().legacy(legacy)
    }
}

/// Returns the limit that a client can act on: the one with the longest denial, or else the limit on calls with the
/// least left.
fn tightest(standings: &[LimitStatus]) -> Option<&LimitStatus> {
    let first = standings.iter().min_by_key(|standing| standing.room())?;
    if first.denied.is_some() {
        return Some(first);
    }
    let limits = tightest_of_units(standings);
    limits.iter().find(|limit| limit.unit().is_none()).or(limits.first()).copied().or(Some(first))
}

/// Returns the tightest limit of each unit, in the order of their rules. Concurrent calls have another unit, and a duplicate
/// leaves nothing to plan with.
fn tightest_of_units(standings: &[LimitStatus]) -> Vec<&LimitStatus> {
    let mut tightest: Vec<&LimitStatus> = Vec::new();
    for limit in standings.iter().filter(|standing| standing.role() == Some(Role::Limit)) {
        match tightest.iter_mut().find(|known| known.unit() == limit.unit()) {
            Some(known) if limit.room() < known.room() => *known = limit,
            Some(_) => {}
            None => tightest.push(limit),
        }
    }
    tightest
}
