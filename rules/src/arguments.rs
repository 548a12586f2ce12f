//! A rule as it is written in arguments: by the attribute, or by a file.

mod algorithms;
mod words;

use std::time::Duration;

pub use self::words::{
    EMPTY_KEY, NAME_WITH_BRACES, missing_argument, must_be_fraction, must_be_number, must_be_text, unknown_argument,
};

use self::algorithms::AlgorithmName;
use crate::bucket::TokenBucket;
#[cfg(feature = "cron")]
use crate::cron::Schedule;
use crate::rule::Rule;
use crate::text::read_duration;

/// The arguments of a rule beside its count, its name and its key, as they are written. What is not written is `None`.
#[derive(Clone, Copy, Debug, Default)]
pub struct RuleArguments<'a> {
    /// The name of an algorithm.
    pub algorithm: Option<&'a str>,
    /// The duration of its window.
    pub per: Option<&'a str>,
    /// The capacity of a token bucket.
    pub capacity: Option<u64>,
    /// The initial tokens of a token bucket.
    pub initial: Option<u64>,
    /// The duration after which a token bucket is unused again.
    pub reset_after: Option<&'a str>,
    /// A cron expression.
    pub cron: Option<&'a str>,
    /// The time zone of the cron expression.
    pub tz: Option<&'a str>,
}

/// A mistake in the arguments of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentError {
    /// The name of the mistaken argument.
    pub argument: &'static str,
    /// What is wrong, and the remedy.
    pub message: String,
}

impl RuleArguments<'_> {
    /// Returns the rule, with a count of 0 and without a name, and every mistake in its arguments. Valid values take the
    /// places of mistaken ones.
    ///
    /// It reads the arguments; [`validate`](crate::validate()) checks the rule.
    #[must_use]
    pub fn read(&self) -> (Rule, Vec<ArgumentError>) {
        let mut errors = Vec::new();
        let per = duration("per", self.per, &mut errors).unwrap_or(Duration::from_secs(1));
        let bucket = self.bucket(per, &mut errors);
        let algorithm = self.algorithm().map_err(|error| errors.push(error)).ok();
        if let Some(algorithm) = algorithm {
            self.check_fits(algorithm, &mut errors);
        }
        let rule = match algorithm {
            Some(AlgorithmName::FixedWindow) => Rule::fixed_window(0, per),
            Some(AlgorithmName::SlidingCounter) => Rule::sliding_counter(0, per),
            Some(AlgorithmName::TokenBucket) => Rule::from_bucket(0, bucket),
            Some(AlgorithmName::Cron) => self.schedule(&mut errors).unwrap_or(Rule::fixed_window(0, per)),
            Some(AlgorithmName::SlidingWindow) | None => Rule::sliding_window(0, per),
        };
        (rule, errors)
    }

    fn algorithm(&self) -> Result<AlgorithmName, ArgumentError> {
        match (self.algorithm, self.cron) {
            (None, None) => Ok(AlgorithmName::SlidingWindow),
            (None, Some(_)) => Ok(AlgorithmName::Cron),
            (Some(_), Some(_)) => {
                Err(ArgumentError::new("algorithm", "`cron` is an algorithm of its own; remove `algorithm`"))
            }
            (Some(name), None) => AlgorithmName::named(name).map_err(|why| ArgumentError::new("algorithm", why)),
        }
    }

    fn bucket(&self, per: Duration, errors: &mut Vec<ArgumentError>) -> TokenBucket {
        let bucket = TokenBucket::new(per);
        let bucket = self.capacity.map_or(bucket, |capacity| bucket.with_capacity(capacity));
        let bucket = self.initial.map_or(bucket, |initial| bucket.with_initial(initial));
        duration("reset_after", self.reset_after, errors).map_or(bucket, |idle| bucket.with_reset_after(idle))
    }

    /// Reports every argument that does not belong to the algorithm.
    fn check_fits(&self, algorithm: AlgorithmName, errors: &mut Vec<ArgumentError>) {
        let of_buckets = [
            ("capacity", self.capacity.is_some()),
            ("initial", self.initial.is_some()),
            ("reset_after", self.reset_after.is_some()),
        ];
        for (name, _) in of_buckets.into_iter().filter(|(_, given)| *given && algorithm != AlgorithmName::TokenBucket) {
            let message = format!("`{name}` is for token buckets; add `algorithm = \"token_bucket\"`, or remove it");
            errors.push(ArgumentError::new(name, message));
        }
        if algorithm == AlgorithmName::Cron && self.per.is_some() {
            let message = "`per` and `cron` exclude each other: counting starts again either after `per` or at a tick; \
                           remove one";
            errors.push(ArgumentError::new("per", message));
        }
        if algorithm != AlgorithmName::Cron && self.tz.is_some() {
            let message =
                "`tz` is the time zone of a `cron`; add `cron = \"0 0 6 * * *\"` in place of `per`, or remove it";
            errors.push(ArgumentError::new("tz", message));
        }
    }

    /// Reads the expression and the time zone separately, as both may be mistaken.
    #[cfg(feature = "cron")]
    fn schedule(&self, errors: &mut Vec<ArgumentError>) -> Option<Rule> {
        let expression = self.cron?;
        let mut read = |argument, expression, zone| {
            let read = Schedule::parse(expression, zone);
            read.map_err(|why| errors.push(ArgumentError::new(argument, why.to_string()))).ok()
        };
        let in_utc = read("cron", expression, "UTC");
        let Some(zone) = self.tz else { return in_utc.map(|schedule| Rule::cron(0, schedule)) };
        let known = read("tz", "@daily", zone);
        in_utc.and(known).and_then(|_| Schedule::parse(expression, zone).ok()).map(|schedule| Rule::cron(0, schedule))
    }

    #[cfg(not(feature = "cron"))]
    fn schedule(&self, errors: &mut Vec<ArgumentError>) -> Option<Rule> {
        let message =
            "`cron` needs the feature `cron` of tallygate; add it in Cargo.toml, like `features = [\"cron\"]`";
        errors.extend(self.cron.map(|_| ArgumentError::new("cron", message)));
        None
    }
}

impl ArgumentError {
    fn new(argument: &'static str, message: impl Into<String>) -> Self {
        Self { argument, message: message.into() }
    }
}

fn duration(argument: &'static str, text: Option<&str>, errors: &mut Vec<ArgumentError>) -> Option<Duration> {
    read_duration(argument, text?).map_err(|why| errors.push(ArgumentError::new(argument, why))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn mistaken(arguments: RuleArguments<'_>) -> Vec<&'static str> {
        arguments.read().1.into_iter().map(|error| error.argument).collect()
    }

    #[test]
    fn each_algorithm_is_read_from_its_arguments() {
        let minute = RuleArguments { per: Some("60s"), ..RuleArguments::default() };
        assert_eq!(minute.read(), (Rule::sliding_window(0, MINUTE), vec![]));
        let of = |algorithm| RuleArguments { algorithm: Some(algorithm), ..minute };
        assert_eq!(of("fixed_window").read().0, Rule::fixed_window(0, MINUTE));
        assert_eq!(of("sliding_counter").read().0, Rule::sliding_counter(0, MINUTE));
        let bucket =
            RuleArguments { capacity: Some(9), initial: Some(3), reset_after: Some("1h"), ..of("token_bucket") };
        let meant = TokenBucket::new(MINUTE).with_capacity(9).with_initial(3).with_reset_after(60 * MINUTE);
        assert_eq!(bucket.read(), (Rule::from_bucket(0, meant), vec![]));
    }

    #[test]
    fn every_mistake_is_reported_at_its_argument() {
        let all = RuleArguments {
            algorithm: None,
            per: Some("60"),
            capacity: Some(1),
            initial: Some(1),
            reset_after: Some(""),
            cron: None,
            tz: Some("UTC"),
        };
        assert_eq!(mistaken(all), ["per", "reset_after", "capacity", "initial", "reset_after", "tz"]);
        let algorithm = RuleArguments { algorithm: Some("bucket"), ..RuleArguments::default() };
        assert_eq!(mistaken(algorithm), ["algorithm"]);
        let both = RuleArguments { algorithm: Some("fixed_window"), cron: Some("@daily"), ..RuleArguments::default() };
        assert_eq!(mistaken(both), ["algorithm"]);
    }

    #[cfg(feature = "cron")]
    #[test]
    fn a_schedule_and_its_time_zone_are_read_separately() {
        let daily = RuleArguments { cron: Some("@daily"), tz: Some("Asia/Shanghai"), ..RuleArguments::default() };
        let schedule = Schedule::parse("@daily", "Asia/Shanghai").unwrap();
        assert_eq!(daily.read(), (Rule::cron(0, schedule), vec![]));
        let mistakes = RuleArguments { cron: Some("daily"), tz: Some("Mars"), per: Some("1d"), ..daily };
        assert_eq!(mistaken(mistakes), ["per", "cron", "tz"]);
    }
}
