//! The servers of others that processes call once they are admitted. Each denies by a limit of its own.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use jiff::Timestamp;

use crate::engine::{self, Chance};
use crate::workload::{Form, PartnerPlan};

const SECOND_US: u64 = 1_000_000;

/// The partners of all policies.
pub(crate) struct Partners {
    plans: Vec<Option<PartnerPlan>>,
    state: Mutex<State>,
}

struct State {
    chance: Chance,
    /// When the calls of a policy and a subject were admitted.
    admitted: BTreeMap<(usize, usize), VecDeque<u64>>,
}

/// An answer.
pub(crate) struct PartnerAnswer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// How long it says to wait, in microseconds; `None` if it depends on who reads it.
    pub(crate) said_us: Option<u64>,
}

/// What a partner has decided.
struct Verdict {
    is_admitted: bool,
    remaining: u64,
    /// The time until it admits something again, or until the window ends.
    reset_us: u64,
}

impl Partners {
    /// Each policy has a plan, if it has a partner.
    pub(crate) fn new(seed: u64, plans: Vec<Option<PartnerPlan>>) -> Self {
        let state = State { chance: Chance::new(seed, "answers of partners"), admitted: BTreeMap::new() };
        Self { plans, state: Mutex::new(state) }
    }

    /// Sends a call of a subject to the partner of a policy. Returns nothing if there is none, or if the answer is lost.
    pub(crate) async fn call(&self, policy: usize, subject: usize) -> Option<PartnerAnswer> {
        let plan = self.plans.get(policy)?.as_ref()?;
        let trip = || self.state().chance.between(plan.delay_us / 10, plan.delay_us);
        engine::sleep(trip()).await;
        let now_us = engine::now_us();
        let verdict = self.state().decide(plan, (policy, subject), now_us);
        let answer = verdict.answer(plan, now_us);
        engine::sleep(trip()).await;
        let is_lost = self.state().chance.happens(plan.loss);
        (!is_lost).then_some(answer)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn decide(&mut self, plan: &PartnerPlan, subject: (usize, usize), now_us: u64) -> Verdict {
        let admitted = self.admitted.entry(subject).or_default();
        let ends_us = |us: u64| if plan.is_fixed { (us / plan.per_us + 1) * plan.per_us } else { us + plan.per_us };
        while admitted.front().is_some_and(|us| ends_us(*us) <= now_us) {
            admitted.pop_front();
        }
        let is_admitted = (admitted.len() as u64) < plan.count;
        if is_admitted {
            admitted.push_back(now_us);
        }
        let first_us = admitted.front().copied().unwrap_or(now_us);
        Verdict { is_admitted, remaining: plan.count - admitted.len() as u64, reset_us: ends_us(first_us) - now_us }
    }
}

impl Verdict {
    fn answer(&self, plan: &PartnerPlan, now_us: u64) -> PartnerAnswer {
        let status = if self.is_admitted { StatusCode::OK } else { plan.form.denial() };
        let (count, remaining) = (plan.count, self.remaining);
        let (seconds, millis) = (self.reset_us.div_ceil(SECOND_US), self.reset_us.div_ceil(1_000));
        let unix_us = plan.clock.unix_us(now_us);
        let shown_us = unix_us / SECOND_US * SECOND_US;
        let reset_unix_us = unix_us + self.reset_us;
        let (per_second, per_milli) = (reset_unix_us.div_ceil(SECOND_US), reset_unix_us.div_ceil(1_000));
        let one = |name: &str, text: String| vec![(name.to_owned(), text)];
        let three = |beginning: &str, unit: &str, reset: String| {
            let texts = [("limit", count.to_string()), ("remaining", remaining.to_string()), ("reset", reset)];
            texts.map(|(name, text)| (format!("{beginning}-{name}{unit}"), text)).to_vec()
        };
        let (mut fields, said_us) = match plan.form {
            Form::Seconds => (one("retry-after", seconds.to_string()), seconds * SECOND_US),
            Form::Millis => (one("retry-after-ms", millis.to_string()), millis * 1_000),
            Form::Date => (one("retry-after", date(per_second)), per_second * SECOND_US - shown_us),
            Form::ResetSeconds => (three("x-ratelimit", "", seconds.to_string()), seconds * SECOND_US),
            Form::EpochSeconds | Form::GitHub => {
                (three("x-ratelimit", "", per_second.to_string()), per_second * SECOND_US - shown_us)
            }
            Form::EpochMillis => (three("x-ratelimit", "", per_milli.to_string()), per_milli * 1_000 - shown_us),
            Form::ByUnit if seconds == 1 => (three("x-ratelimit", "-requests", format!("{millis}ms")), millis * 1_000),
            Form::ByUnit => {
                let duration = format!("{}m{}s", seconds / 60, seconds % 60);
                (three("x-ratelimit", "-requests", duration), seconds * SECOND_US)
            }
            Form::RateLimit => {
                let policy = format!("\"p\";q={count};w={}", plan.per_us.div_ceil(SECOND_US));
                let limit = format!("\"p\";r={remaining};t={seconds}");
                ([one("ratelimit-policy", policy), one("ratelimit", limit)].concat(), seconds * SECOND_US)
            }
            Form::RateLimitMembers => {
                let members = format!("limit={count}, remaining={remaining}, reset={seconds}");
                (one("ratelimit", members), seconds * SECOND_US)
            }
            Form::RateLimitFields => (three("ratelimit", "", seconds.to_string()), seconds * SECOND_US),
            Form::Nothing => (Vec::new(), SECOND_US),
        };
        if self.is_admitted && plan.form.is_of_denials() {
            fields.clear();
        }
        if plan.has_date {
            fields.push(("date".to_owned(), date(shown_us / SECOND_US)));
        }
        let is_silent = self.is_admitted && (plan.form.is_of_denials() || remaining > 0);
        let said_us = if is_silent { 0 } else { said_us };
        let said_us = Some(said_us).filter(|_| is_silent || plan.has_date || !plan.form.is_point_in_time());
        PartnerAnswer { status, headers: headers(&fields), said_us: said_us.map(|us| us.min(plan.longest_pause_us)) }
    }
}

/// A date of HTTP.
fn date(since_1970: u64) -> String {
    let at = Timestamp::UNIX_EPOCH.checked_add(Duration::from_secs(since_1970)).unwrap_or_default();
    at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

fn headers(fields: &[(String, String)]) -> HeaderMap {
    let parsed = fields
        .iter()
        .filter_map(|(name, text)| Some((name.parse::<HeaderName>().ok()?, HeaderValue::from_str(text).ok()?)));
    parsed.collect()
}
