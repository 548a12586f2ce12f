//! Reads a rule from its arguments, in the attribute or in a file.

use std::time::Duration;

use crate::algorithm::TokenBucket;
#[cfg(feature = "cron")]
use crate::cron::Schedule;
use crate::rule::Rule;
use crate::suggestion::{meant, snake_case};
use crate::text::read_duration;
use crate::unit::{CALLS, check_unit};

/// The arguments of a rule in the attribute or in a file.
pub trait ArgumentSource {
    /// Takes `name = "text"`, and reports a value of another kind with the example.
    fn text(&mut self, name: &'static str, example: &str) -> Option<String>;

    /// Takes `name = 10`, and reports a value of another kind with the example.
    fn number(&mut self, name: &'static str, example: &str) -> Option<u64>;

    /// Reports a mistake in the value of an argument.
    fn report(&mut self, argument: &'static str, message: String);
}

/// Reads a rule from its arguments, with a count of 0 and without a name. Mistaken values are reported, and valid ones
/// take their places.
///
/// This checks only the arguments; [`validate`](crate::validate()) checks the rule.
pub fn read_limit(source: &mut impl ArgumentSource) -> Rule {
    let arguments = RuleArguments {
        per: source.text("per", "per = \"60s\""),
        algorithm: source.text("algorithm", "algorithm = \"token_bucket\""),
        capacity: source.number("capacity", "capacity = 100"),
        initial: source.number("initial", "initial = 3"),
        reset_after: source.text("reset_after", "reset_after = \"10s\""),
        cron: source.text("cron", "cron = \"0 0 6 * * *\""),
        tz: source.text("tz", "tz = \"Asia/Shanghai\""),
        unit: source.text("unit", "unit = \"tokens\""),
    };
    arguments.read(source)
}

/// The arguments of a rule except its count, its name and its key.
struct RuleArguments {
    algorithm: Option<String>,
    per: Option<String>,
    capacity: Option<u64>,
    initial: Option<u64>,
    reset_after: Option<String>,
    cron: Option<String>,
    tz: Option<String>,
    unit: Option<String>,
}

impl RuleArguments {
    fn read(&self, source: &mut impl ArgumentSource) -> Rule {
        let per = duration("per", self.per.as_deref(), source).unwrap_or(Duration::from_secs(1));
        let bucket = self.bucket(per, source);
        let algorithm = self.algorithm().map_err(|why| source.report("algorithm", why)).ok();
        if let Some(algorithm) = algorithm {
            self.check_fits(algorithm, source);
        }
        let rule = match algorithm {
            Some(AlgorithmName::FixedWindow) => Rule::fixed_window(0, per),
            Some(AlgorithmName::SlidingCounter) => Rule::sliding_counter(0, per),
            Some(AlgorithmName::TokenBucket) => Rule::from_bucket(0, bucket),
            Some(AlgorithmName::Cron) => self.schedule(source).unwrap_or(Rule::fixed_window(0, per)),
            Some(AlgorithmName::SlidingWindow) | None => Rule::sliding_window(0, per),
        };
        match self.unit.as_deref().map(check_unit) {
            Some(Err(why)) => source.report("unit", why),
            _ => return rule.counting(self.unit.clone().unwrap_or(CALLS.to_owned())),
        }
        rule
    }

    fn algorithm(&self) -> Result<AlgorithmName, String> {
        match (self.algorithm.as_deref(), &self.cron) {
            (None, None) => Ok(AlgorithmName::SlidingWindow),
            (None, Some(_)) => Ok(AlgorithmName::Cron),
            (Some(_), Some(_)) => Err("`cron` is an algorithm of its own; remove `algorithm`".to_owned()),
            (Some(name), None) => AlgorithmName::named(name),
        }
    }

    fn bucket(&self, per: Duration, source: &mut impl ArgumentSource) -> TokenBucket {
        let reset_after = duration("reset_after", self.reset_after.as_deref(), source);
        TokenBucket::of(per, self.capacity, self.initial, reset_after)
    }

    /// Reports every argument that does not belong to the algorithm.
    fn check_fits(&self, algorithm: AlgorithmName, source: &mut impl ArgumentSource) {
        let of_buckets = [
            ("capacity", self.capacity.is_some()),
            ("initial", self.initial.is_some()),
            ("reset_after", self.reset_after.is_some()),
        ];
        for (name, _) in of_buckets.into_iter().filter(|(_, given)| *given && algorithm != AlgorithmName::TokenBucket) {
            let message = format!("`{name}` is for token buckets; add `algorithm = \"token_bucket\"`, or remove it");
            source.report(name, message);
        }
        if algorithm == AlgorithmName::Cron && self.per.is_some() {
            let message = "`per` and `cron` exclude each other: counting starts again either after `per` or at a tick; \
                           remove one";
            source.report("per", message.to_owned());
        }
        if algorithm != AlgorithmName::Cron && self.tz.is_some() {
            let message =
                "`tz` is the time zone of a `cron`; add `cron = \"0 0 6 * * *\"` in place of `per`, or remove it";
            source.report("tz", message.to_owned());
        }
    }

    /// Reads the expression and the time zone separately, because both may be mistaken.
    #[cfg(feature = "cron")]
    fn schedule(&self, source: &mut impl ArgumentSource) -> Option<Rule> {
        let expression = self.cron.as_deref()?;
        let mut read = |argument, expression, zone| {
            let read = Schedule::parse(expression, zone);
            read.map_err(|why| source.report(argument, why.to_string())).ok()
        };
        let in_utc = read("cron", expression, "UTC");
        let Some(zone) = self.tz.as_deref() else { return in_utc.map(|schedule| Rule::cron(0, schedule)) };
        let known = read("tz", "@daily", zone);
        in_utc.and(known).and_then(|_| Schedule::parse(expression, zone).ok()).map(|schedule| Rule::cron(0, schedule))
    }

    #[cfg(not(feature = "cron"))]
    fn schedule(&self, source: &mut impl ArgumentSource) -> Option<Rule> {
        let message =
            "`cron` needs the feature `cron` of tallygate; add it in Cargo.toml, like `features = [\"cron\"]`";
        if self.cron.is_some() {
            source.report("cron", message.to_owned());
        }
        None
    }
}

fn duration(argument: &'static str, text: Option<&str>, source: &mut impl ArgumentSource) -> Option<Duration> {
    read_duration(argument, text?).map_err(|why| source.report(argument, why)).ok()
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum AlgorithmName {
    SlidingWindow,
    FixedWindow,
    SlidingCounter,
    TokenBucket,
    /// The argument `cron` chooses this algorithm, which has no name.
    Cron,
}

const ALGORITHMS: [(&str, AlgorithmName); 4] = [
    ("sliding_window", AlgorithmName::SlidingWindow),
    ("fixed_window", AlgorithmName::FixedWindow),
    ("sliding_counter", AlgorithmName::SlidingCounter),
    ("token_bucket", AlgorithmName::TokenBucket),
];

/// Words that are no algorithms here, and what to write instead.
const ELSEWHERE: [(&[&str], &str); 2] = [
    (&["cron", "schedule", "calendar"], "write `cron = \"0 0 6 * * *\"` instead of it and of `per`"),
    (
        &["concurrency", "concurrent", "semaphore", "in_flight", "bulkhead"],
        "write `concurrency(limit = 10, lease = \"30s\")` instead of the rule; in a file, `{ limit = 10, lease = \"30s\" }`",
    ),
];

impl AlgorithmName {
    /// Returns the algorithm of that name, or the error with the name that was probably meant.
    fn named(name: &str) -> Result<Self, String> {
        let known = ALGORITHMS.iter().find(|(known, _)| *known == name);
        known.map(|&(_, algorithm)| algorithm).ok_or_else(|| unknown(name))
    }
}

fn unknown(name: &str) -> String {
    let known = ALGORITHMS.map(|(name, _)| name);
    let word = snake_case(name);
    let elsewhere = ELSEWHERE.iter().find(|(words, _)| words.contains(&&*word)).map(|(_, remedy)| *remedy);
    let remedy = match (elsewhere, meant(name, &known)) {
        (Some(remedy), _) => remedy.to_owned(),
        (None, Some(meant)) => format!("did you mean `{meant}`?"),
        (None, None) => format!("there are `{}`, and `cron = \"…\"`", known.join("`, `")),
    };
    format!("unknown algorithm `{name}`; {remedy}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::Role;
    use crate::text::attribute_form;

    const MINUTE: Duration = Duration::from_secs(60);

    /// Arguments as texts, and the names of the mistaken ones.
    struct Written {
        arguments: Vec<(&'static str, &'static str)>,
        mistaken: Vec<&'static str>,
    }

    impl ArgumentSource for Written {
        fn text(&mut self, name: &'static str, _: &str) -> Option<String> {
            self.arguments.iter().find(|(written, _)| *written == name).map(|(_, text)| (*text).to_owned())
        }

        fn number(&mut self, name: &'static str, example: &str) -> Option<u64> {
            self.text(name, example)?.parse().ok()
        }

        fn report(&mut self, argument: &'static str, _: String) {
            self.mistaken.push(argument);
        }
    }

    fn read(arguments: &[(&'static str, &'static str)]) -> (Rule, Vec<&'static str>) {
        let mut written = Written { arguments: arguments.to_vec(), mistaken: Vec::new() };
        (read_limit(&mut written), written.mistaken)
    }

    #[test]
    fn each_algorithm_is_read_from_its_arguments() {
        let meant = TokenBucket::new(MINUTE).with_capacity(9).with_initial(3).with_reset_after(60 * MINUTE);
        for (algorithm, rule) in [
            ("sliding_window", Rule::sliding_window(0, MINUTE)),
            ("fixed_window", Rule::fixed_window(0, MINUTE)),
            ("sliding_counter", Rule::sliding_counter(0, MINUTE)),
            ("token_bucket", Rule::token_bucket(0, MINUTE)),
        ] {
            assert_eq!(read(&[("per", "60s"), ("algorithm", algorithm)]), (rule, vec![]));
        }
        assert_eq!(read(&[("per", "60s")]), (Rule::sliding_window(0, MINUTE), vec![]));
        let tokens = Rule::sliding_window(0, MINUTE).counting("tokens");
        assert_eq!(read(&[("per", "60s"), ("unit", "tokens")]), (tokens, vec![]));
        assert_eq!(read(&[("per", "60s"), ("unit", "calls")]), (Rule::sliding_window(0, MINUTE), vec![]));
        let bucket = [("algorithm", "token_bucket"), ("capacity", "9"), ("initial", "3"), ("reset_after", "1h")];
        assert_eq!(read(&[&bucket[..], &[("per", "60s")]].concat()), (Rule::from_bucket(0, meant), vec![]));
    }

    #[test]
    fn each_algorithm_is_read_from_the_arguments_that_stand_for_it() {
        for rule in Rule::of_each_algorithm().filter(|rule| rule.role() == Role::Limit) {
            let rule = rule.counting("tokens");
            let form: &'static str = attribute_form(&rule).leak();
            let arguments = form.trim_start_matches("rule(").trim_end_matches(')').split(", ");
            let arguments: Vec<_> = arguments
                .filter_map(|argument| argument.split_once(" = "))
                .map(|(name, value)| (name, value.trim_matches('"')))
                .collect();
            assert_eq!(read(&arguments), (rule.with_count(0), vec![]));
        }
    }

    #[test]
    fn every_mistake_is_reported_at_its_argument() {
        let all = [("per", "60"), ("capacity", "1"), ("initial", "1"), ("reset_after", ""), ("tz", "UTC")];
        assert_eq!(read(&all).1, ["per", "reset_after", "capacity", "initial", "reset_after", "tz"]);
        assert_eq!(read(&[("algorithm", "bucket")]).1, ["algorithm"]);
        assert_eq!(read(&[("per", "60s"), ("unit", "burst")]).1, ["unit"]);
        assert_eq!(read(&[("algorithm", "fixed_window"), ("cron", "@daily")]).1, ["algorithm"]);
    }

    #[cfg(feature = "cron")]
    #[test]
    fn a_schedule_and_its_time_zone_are_read_separately() {
        let schedule = Schedule::parse("@daily", "Asia/Shanghai").unwrap();
        assert_eq!(read(&[("cron", "@daily"), ("tz", "Asia/Shanghai")]), (Rule::cron(0, schedule), vec![]));
        assert_eq!(read(&[("cron", "daily"), ("tz", "Mars"), ("per", "1d")]).1, ["per", "cron", "tz"]);
    }

    #[test]
    fn the_names_of_other_libraries_are_answered_with_ours() {
        for (name, meant) in [
            ("gcra", "token_bucket"),
            ("leaky-bucket", "token_bucket"),
            ("TokenBucket", "token_bucket"),
            ("sliding log", "sliding_window"),
            ("moving-window", "sliding_window"),
            ("sliding window", "sliding_window"),
            ("SlidingWindow", "sliding_window"),
            ("fixed-window", "fixed_window"),
            ("FIXED_WINDOW", "fixed_window"),
            ("sliding-window-counter", "sliding_counter"),
            ("fixd_window", "fixed_window"),
        ] {
            let text = AlgorithmName::named(name).unwrap_err();
            assert_eq!(text, format!("unknown algorithm `{name}`; did you mean `{meant}`?"));
        }
        let text = AlgorithmName::named("semaphore").unwrap_err();
        assert!(text.contains("write `concurrency(limit = 10, lease = \"30s\")`"), "{text}");
        for (name, algorithm) in ALGORITHMS {
            assert_eq!(AlgorithmName::named(name).unwrap(), algorithm);
        }
    }
}
