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
        let status = if self.is_admitted { StatusCode::OK } else { StatusCode::TOO_MANY_REQUESTS };
        let (count, remaining) = (plan.count, self.remaining);
        let seconds = self.reset_us.div_ceil(SECOND_US);
        let unix_us = plan.clock.unix_us(now_us);
        let shown_us = unix_us / SECOND_US * SECOND_US;
        let reset_unix_us = unix_us + self.reset_us;
        let (per_second, per_milli) = (reset_unix_us.div_ceil(SECOND_US), reset_unix_us.div_ceil(1_000));
        let epoch = |reset: u64| {
            let fields = [("limit", count), ("remaining", remaining), ("reset", reset)];
            fields.map(|(name, number)| (format!("x-ratelimit-{name}"), number.to_string())).to_vec()
        };
        let retry_after = |text| vec![("retry-after".to_owned(), text)];
        let (mut fields, said_us) = match plan.form {
            Form::Seconds => (retry_after(seconds.to_string()), Some(seconds * SECOND_US)),
            Form::Date => (retry_after(date(per_second)), Some(per_second * SECOND_US - shown_us)),
            Form::EpochSeconds => (epoch(per_second), Some(per_second * SECOND_US - shown_us)),
            Form::EpochMillis => (epoch(per_milli), Some(per_milli * 1_000 - shown_us)),
            Form::RateLimit => {
                let policy = format!("\"p\";q={count};w={}", plan.per_us.div_ceil(SECOND_US));
                let limit = format!("\"p\";r={remaining};t={seconds}");
                (
                    vec![("ratelimit-policy".to_owned(), policy), ("ratelimit".to_owned(), limit)],
                    Some(seconds * SECOND_US),
                )
            }
            Form::Nothing => (Vec::new(), Some(SECOND_US)),
        };
        let is_point_in_time = matches!(plan.form, Form::Date | Form::EpochSeconds | Form::EpochMillis);
        if plan.has_date {
            fields.push(("date".to_owned(), date(shown_us / SECOND_US)));
        }
        let said_us = match plan.form {
            Form::Seconds | Form::Date | Form::Nothing if self.is_admitted => {
                fields.retain(|(name, _)| name != "retry-after");
                Some(0)
            }
            _ if self.is_admitted && remaining > 0 => Some(0),
            _ if is_point_in_time && !plan.has_date => None,
            _ => said_us,
        };
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
