//! Random inputs made of parts of the grammar: every run of the tests looks for what fuzzing finds in hours.
//!
//! The inputs are the same in each run. `PROPTEST_RNG_SEED` selects others, and `TALLYGATE_TEST_LONG=1` tries ten times
//! as many.

use std::env;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, RngSeed, TestRunner};

use crate::tests::arguments;
use crate::trial;

const CASES: u32 = 2_000;
const LONG_CASES: u32 = 20_000;
const SEED: u64 = 20_260;

/// Words other than the names of arguments. Some have a meaning in some place, and some have none.
const WORDS: &[&str] = &[
    "conut",
    "self",
    "Self",
    "super",
    "phone",
    "user",
    "async",
    "move",
    "return",
    "fn",
    "pub",
    "impl",
    "Future",
    "Output",
    "Box",
    "pin",
    "let",
    "mut",
    "ref",
    "r#type",
    "'a",
    "true",
    "_",
    "u64",
    "Rejection",
    "Result",
    "::",
    "->",
    "=>",
    "..",
    "#[doc = \"text\"]",
    "#![allow(unused)]",
];

const PUNCTUATION: &[&str] =
    &["=", ",", ",", ",", ".", ";", ":", "&", "|", "!", "?", "*", "+", "-", "<", ">", "@", "#"];

const LITERALS: &[&str] = &[
    "0",
    "1",
    "10",
    "18446744073709551616",
    "1u8",
    "1.5",
    "\"60s\"",
    "\"0s\"",
    "\"5\"",
    "\"1h\"",
    "\"token_bucket\"",
    "\"fixed_window\"",
    "\"sliding_conter\"",
    "\"0 0 6 * * *\"",
    "\"Asia/Shanghai\"",
    "\"sms:{phone}\"",
    "\"{user.id:hash}{phone}\"",
    "\"try again in {@retry_after}\"",
    "'c'",
    "b\"x\"",
];

pub(crate) const ARGUMENTS: &[&str] = &[
    "rule(count = 10, per = \"60s\")",
    "rule(count = 20, per = \"120s\", name = \"twice\")",
    "rule(count = user.calls(), per = \"1h\")",
    "rule(count = 5, per = \"1s\", algorithm = \"token_bucket\", capacity = 100, initial = 3, reset_after = \"10s\")",
    "rule(count = 10, per = \"60s\", algorithm = \"fixed_window\", message = \"{@count} per {@per}\")",
    "rule(count = 10, cron = \"0 0 6 * * *\", tz = \"UTC\")",
    "rule(count = 20, per = \"1h\", key = \"{user.id}:{phone}\")",
    "rule(count = 30, per = \"1d\", key = \"all\", message = \"enough\")",
    "prevent_duplicate(key = \"{user.id}\")",
    "prevent_duplicate(key = \"{*:debug:hash}\", release_if = Result::is_err)",
    "concurrency(limit = 10, lease = \"30s\")",
    "until = \"body\"",
    "concurrency(limit = user.calls(), lease = \"1m\", key = \"{phone}\", name = \"calls\", message = \"{@count} running\")",
    "ban(denials = 20, within = \"10m\", duration = \"1h\")",
    "ban(denials = 3, within = \"10m\", duration = \"1h\", message = \"{phone:hash} is out for {@retry_after}\")",
    "policy = POLICY",
    "unit(\"tokens\", cost = request.tokens(), settle = |reply: &Reply| reply.tokens())",
    "unit(\"bytes\", cost = 3)",
    "unit(\"bytes\", cost = 3, settle = metered)",
    "rule(count = 20000, per = \"60s\", unit = \"tokens\")",
    "cost = items.len() as u64",
    "allow_zero_cost",
    "subject(\"network\", \"{phone}\")",
    "check_fn = send_code_limit",
    "openapi = SendCodeLimits",
    "cost = 3",
    "wait = \"2s\"",
    "on_outage = \"local\"",
    "on_outage = \"allow\"",
    "deadline = \"50ms\"",
    "warn_at = 0.8",
    "prefetch = \"100ms\"",
    "refund_if = Result::is_err",
    "refund_key = \"{phone}\"",
    "skip_if = user.is_admin()",
    "shadow",
    "prevent_duplicate",
    "prevent_duplicate(per = \"5s\", message = \"again, {phone}\")",
    "prevent_duplicate(release_if = Result::is_err)",
    "settle = |reply: &Reply| reply.tokens()",
    "pause = |reply: &Reply| reply.retry_after()",
    "longest_pause = \"1m\"",
    "pause_key = \"{phone}\"",
    "name = \"sms.send\"",
    "key = \"sms:{phone}\"",
    "key = \"{user.id():lower}/{phone:trim}\"",
    "message = \"slow down, {phone}: {@retry_after}\"",
    "reject = ApiError::limited",
    "limiter = self.limiter",
    "limiter = state.limiter()",
    "crate = ::tallygate",
];

const FUNCTIONS: &[&str] = &[
    "async fn f(phone: &str, user: User) -> Result<(), Rejection> { Ok(()) }",
    "#[doc = \"Text.\"] #[inline] pub(crate) async fn f<T: Display>(&mut self, phone: T) -> Result<T, E> where T: Copy { let x = ; }",
    "fn f(phone: String) -> impl Future<Output = Result<(), E>> + use<> { const N: u8 = 1; async move { Ok(()) } }",
    "fn f(&self) -> Pin<Box<dyn Future<Output = Result<(), E>> + Send + '_>> { Box::pin(async move { self. }) }",
    "fn f<'a, 'async_trait>(&'a self, __arg1: Json<T>) -> Pin<Box<dyn Future<Output = R> + 'async_trait>> { \
     Box::pin(async move { let __self = self; let Json(phone) = { let __arg1 = __arg1; __arg1 }; \
     let __ret: R = { body }; __ret }) }",
    "fn f() -> R { let body = async { Ok(()) }; runtime.block_on(body) }",
    "fn f(phone: &str) -> BoxFuture<'_, R> { if phone.is_empty() { return none(); } async { Ok(()) }.boxed() }",
    "fn f() { }",
    "async fn f();",
];

const TEMPLATE: &[&str] = &[
    "{",
    "}",
    "{{",
    "}}",
    ":",
    "@",
    ".",
    "()",
    "phone",
    "user",
    "self",
    "id",
    "0",
    "hash",
    "lower",
    "retry_after",
    " ",
    "é",
    "r#",
    "%",
    "{phone}",
    "{@count}",
];

const DURATION: &[&str] = &["0", "1", "60", "9", "18446744073709551615", "ms", "s", "m", "h", "d", " ", ".", "-", "é"];

#[derive(Clone, Debug)]
enum Edit {
    Truncate,
    Remove,
    Repeat,
    Insert(String),
}

#[test]
fn every_attribute_has_an_expansion_or_an_error() {
    let attributes = edited(joined(ARGUMENTS, ", "));
    let functions = prop_oneof![3 => function(), 1 => edited(function())];
    let inputs = (attributes, functions).prop_map(|(attribute, function)| format!("{attribute}\n{function}"));
    check(inputs, trial::attribute);
}

#[test]
fn every_template_has_parts_or_an_error() {
    check(joined(TEMPLATE, ""), trial::template);
}

#[test]
fn every_duration_has_a_length_or_an_error() {
    check(joined(DURATION, ""), trial::duration);
}

/// Tries many inputs, and reduces a failing one to the shortest that still fails.
fn check(inputs: impl Strategy<Value = String>, trial: fn(&str)) {
    let long = env::var_os("TALLYGATE_TEST_LONG").is_some_and(|long| long == "1");
    let mut config = Config { failure_persistence: None, ..Config::with_cases(if long { LONG_CASES } else { CASES }) };
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(SEED);
    }
    let mut runner = TestRunner::new(config);
    let outcome = runner.run(&inputs, |input| {
        trial(&input);
        // `proc_macro2` keeps each text for its spans, which slows down all that follow.
        proc_macro2::extra::invalidate_current_thread_spans();
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

fn joined(parts: &'static [&str], separator: &'static str) -> impl Strategy<Value = String> {
    vec(select(parts), 0..7).prop_map(|parts| parts.join(separator))
}

fn function() -> impl Strategy<Value = String> {
    select(FUNCTIONS).prop_map(str::to_owned)
}

/// Changes up to three places of a text.
fn edited(text: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let names = arguments::all().into_iter().chain(WORDS.iter().map(|&word| word.to_owned())).collect::<Vec<_>>();
    let literal = select(LITERALS).prop_map(str::to_owned);
    let word = prop_oneof![select(names), literal].prop_map(|word| format!(" {word} "));
    let punctuation = select(PUNCTUATION).prop_map(str::to_owned);
    let edit = prop_oneof![
        1 => Just(Edit::Truncate),
        1 => Just(Edit::Remove),
        1 => Just(Edit::Repeat),
        2 => word.prop_map(Edit::Insert),
        1 => punctuation.prop_map(Edit::Insert),
    ];
    (text, vec((any::<Index>(), edit), 0..4)).prop_map(|(text, edits)| edits.into_iter().fold(text, apply))
}

fn apply(mut text: String, (position, edit): (Index, Edit)) -> String {
    let positions: Vec<_> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let at = *position.get(&positions);
    match edit {
        Edit::Truncate => text.truncate(at),
        Edit::Remove if at == text.len() => {}
        Edit::Remove => drop(text.remove(at)),
        Edit::Repeat => text.insert_str(at, &text[at..].chars().take(20).collect::<String>()),
        Edit::Insert(inserted) => text.insert_str(at, &inserted),
    }
    text
}
