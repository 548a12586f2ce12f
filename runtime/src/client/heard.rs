//! What an answer says about the limits of its server.

use std::time::Duration;

/// What an answer says about the limits of its server: see [`ResponseReader`](super::ResponseReader).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    pub(super) pause: Option<HeardPause>,
    pub(super) longest: Duration,
    pub(super) is_denial: bool,
    pub(super) limits: Vec<HeardLimit>,
    /// Whether the server did not do what it was asked to: the answer is a denial or an error of the server.
    pub(super) has_failed: bool,
}

impl Heard {
    /// Returns for how long the server admits nothing. `None` if the answer does not say so.
    #[must_use]
    pub fn pause(&self) -> Option<&HeardPause> {
        self.pause.as_ref()
    }

    /// Returns the time between calls once a limit is used up, unless it is known to count in fixed windows. A client that
    /// waits this long stays within the limit, and does not wait for the whole reset.
    ///
    /// By the [current draft](HeardLimit::reset), it is the time until more is left. By older fields, it is the window divided
    /// by the limit, or the time until the reset, whichever is shorter; if the limit is of another unit than requests, it is the
    /// whole window, because nobody knows what the next call costs. [`wait_for`](Self::wait_for) takes that cost.
    #[must_use]
    pub fn spacing(&self) -> Option<Duration> {
        self.spacing_for(|_| None)
    }

    /// Returns the time until the next call should be sent: the pause or the spacing, whichever is longer. `None` if it may be
    /// sent at once.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        self.wait_for(|_| None)
    }

    /// Returns the [wait](Self::wait) of a call of such costs. `cost` says what it costs of a unit, which is named as the
    /// server calls it, or `None` if that is not known.
    ///
    /// A denial that says no time may be for a limit of which less is left than such a call costs: then it lasts until so much is
    /// left.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use http::{HeaderMap, HeaderValue, StatusCode};
    /// use tallygate::client::ResponseReader;
    ///
    /// let mut headers = HeaderMap::new();
    /// headers.insert("ratelimit-policy", HeaderValue::from_static(r#""chat";q=6000;qu="tokens";w=60"#));
    /// headers.insert("ratelimit", HeaderValue::from_static(r#""chat";r=0;t=1"#));
    ///
    /// let heard = ResponseReader::new().read(StatusCode::OK, &headers);
    /// let tokens = |unit: &str| (unit == "tokens").then_some(500);
    /// assert_eq!(heard.wait_for(tokens), Some(Duration::from_secs(5)));
    /// assert_eq!(heard.wait(), Some(Duration::from_secs(1)));
    /// ```
    #[must_use]
    pub fn wait_for(&self, cost: impl Fn(&str) -> Option<u64>) -> Option<Duration> {
        let pause = self.pause.as_ref().map(HeardPause::duration);
        pause.max(if self.is_denial { self.shortage_for(cost) } else { self.spacing_for(cost) })
    }

    /// Returns the field that asks to wait: that of the pause, or that of the limit which is used up.
    pub(super) fn waiting_field(&self) -> Option<&'static str> {
        match &self.pause {
            Some(pause) => pause.field,
            None => self.limits.iter().find(|limit| limit.is_used_up(false)).map(|limit| limit.field),
        }
    }

    fn spacing_for(&self, cost: impl Fn(&str) -> Option<u64>) -> Option<Duration> {
        // The pause after a denial says all.
        let limits = self.limits.iter().filter(|_| !self.is_denial);
        let spaced = limits.filter(|limit| limit.is_used_up(false) && !limit.has_fixed_windows);
        self.longest_of(spaced.filter_map(|limit| limit.spacing(cost(&limit.unit))))
    }

    /// Returns the time until enough is left for a call that was denied, if the denial says no time.
    fn shortage_for(&self, cost: impl Fn(&str) -> Option<u64>) -> Option<Duration> {
        let is_unsaid = self.pause.as_ref().is_none_or(|pause| pause.field.is_none());
        let limits = self.limits.iter().filter(|_| is_unsaid);
        self.longest_of(limits.filter_map(|limit| {
            let missing = cost(&limit.unit)?.checked_sub(limit.remaining?).filter(|missing| *missing > 0)?;
            if limit.has_fixed_windows { limit.reset } else { limit.spacing(Some(missing)) }
        }))
    }

    fn longest_of(&self, times: impl Iterator<Item = Duration>) -> Option<Duration> {
        times.max().map(|time| time.min(self.longest)).filter(|time| !time.is_zero())
    }

    /// Returns the limits of which the answer says how much is left, at most 32.
    #[must_use]
    pub fn limits(&self) -> &[HeardLimit] {
        &self.limits
    }
}

/// A time in which the server admits nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeardPause {
    pub(super) duration: Duration,
    pub(super) field: Option<&'static str>,
}

impl HeardPause {
    pub(super) fn at_most(self, longest: Duration) -> Self {
        Self { duration: self.duration.min(longest), ..self }
    }

    /// Returns how long the pause is, counted from the time at which the answer was read. It is at most the
    /// [longest](super::ResponseReader::longest_pause).
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// Returns the name of the field that says so, in lower case, like `retry-after`, or the common beginning of the names of
    /// several, like `x-ratelimit`. `None` if the answer is a denial that says no time.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        self.field
    }
}

/// The state of one limit of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeardLimit {
    pub(super) field: &'static str,
    pub(super) name: Option<String>,
    pub(super) unit: String,
    pub(super) limit: Option<u64>,
    pub(super) remaining: Option<u64>,
    pub(super) window: Option<Duration>,
    pub(super) reset: Option<Duration>,
    pub(super) has_fixed_windows: bool,
    /// Whether the reset is the time until more is left, as in the current draft.
    pub(super) resets_to_more: bool,
}

/// The unit of limits that name none.
pub(super) const REQUESTS: &str = "requests";
/// The draft's unit of limits on concurrent requests.
const CONCURRENT: &str = "concurrent-requests";

impl HeardLimit {
    pub(super) fn new(field: &'static str, unit: &str) -> Self {
        Self {
            field,
            name: None,
            unit: if unit.is_empty() { REQUESTS } else { unit }.to_owned(),
            limit: None,
            remaining: None,
            window: None,
            reset: None,
            has_fixed_windows: false,
            resets_to_more: false,
        }
    }

    /// Returns the name of the limit, if the server gave it one, as in `RateLimit: "burst";r=5`.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the unit, as the server calls it: `requests` if it names none, or, like OpenAI's fields, `tokens`.
    #[must_use]
    pub fn unit(&self) -> &str {
        &self.unit
    }

    /// Returns how much the limit admits in its window.
    #[must_use]
    pub fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// Returns how much is left.
    #[must_use]
    pub fn remaining(&self) -> Option<u64> {
        self.remaining
    }

    /// Returns the length of the window.
    #[must_use]
    pub fn window(&self) -> Option<Duration> {
        self.window
    }

    /// Returns the time until the reset, counted from the time at which the answer was read: 400 days at most, or the
    /// [longest](super::ResponseReader::longest_pause) pause if that is longer.
    ///
    /// Servers mean different things by it: the end of a fixed window, the time until nothing is counted any more, or the time
    /// in which no more than the [remaining](Self::remaining) is admitted. At its end, something is left in any case. Versions 10
    /// and 11 of the draft of `RateLimit` mean the last one: once nothing is left, nothing is admitted before.
    #[must_use]
    pub fn reset(&self) -> Option<Duration> {
        self.reset
    }

    /// Returns whether the limit counts by fixed windows, so that nothing is left until the reset once it is used up. A reset
    /// that names a point in time says so, or [`ResponseReader::fixed_windows`](super::ResponseReader::fixed_windows).
    #[must_use]
    pub fn has_fixed_windows(&self) -> bool {
        self.has_fixed_windows
    }

    /// Whether the answer says that nothing is left. A denial needs not say so.
    pub(super) fn is_used_up(&self, is_denial: bool) -> bool {
        self.remaining.map_or(is_denial, |remaining| remaining == 0)
    }

    /// Returns the time until so much is left of a limit that is used up, as it is to be expected if calls come evenly. The
    /// places of concurrent calls are free as soon as these end.
    pub(super) fn spacing(&self, cost: Option<u64>) -> Option<Duration> {
        // A call that costs nothing of the limit need not wait for it.
        if self.unit == CONCURRENT || cost == Some(0) {
            return None;
        }
        let cost = cost.or((self.unit == REQUESTS).then_some(1));
        let flows_in =
            self.window.zip(self.limit).and_then(|(window, limit)| share(window, cost.unwrap_or(limit), limit));
        // While something is left, servers mean different things by the reset.
        match self.reset.filter(|_| self.resets_to_more && self.remaining == Some(0)) {
            Some(reset) if cost.is_none_or(|cost| cost <= 1) => Some(reset),
            // A cost of more than one may take longer.
            Some(reset) => flows_in.max(Some(reset)),
            None => flows_in.into_iter().chain(self.reset).min(),
        }
    }
}

/// Returns the time in which `cost` of a limit flows in: at most its whole window.
fn share(window: Duration, cost: u64, limit: u64) -> Option<Duration> {
    let nanos = window.as_nanos().saturating_mul(cost.min(limit).into()).checked_div(limit.into())?;
    u64::try_from(nanos).ok().map(Duration::from_nanos)
}
