//! Random inputs, made of what the grammar is made of: what fuzzing finds in hours, these look for in every test run.

use std::env;

use fastrand::Rng;

use crate::trial;

const CASES: usize = 10_000;

/// Words that mean something somewhere, and some that do nowhere.
const WORDS: [&str; 57] = [
    "rule",
    "count",
    "per",
    "algorithm",
    "capacity",
    "initial",
    "reset_after",
    "cron",
    "tz",
    "prevent_duplicate",
    "name",
    "key",
    "message",
    "policy",
    "cost",
    "wait",
    "refund_if",
    "skip_if",
    "shadow",
    "ban",
    "denials",
    "within",
    "duration",
    "refund",
    "reject",
    "limiter",
    "crate",
    "conut",
    "self",
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

const PUNCTUATION: [&str; 18] =
    ["=", ",", ",", ",", ".", ";", ":", "&", "|", "!", "?", "*", "+", "-", "<", ">", "@", "#"];

const LITERALS: [&str; 20] = [
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

/// Arguments as they ought to be.
const ARGUMENTS: [&str; 28] = [
    "rule(count = 10, per = \"60s\")",
    "rule(count = 20, per = \"120s\", name = \"twice\")",
    "rule(count = user.calls(), per = \"1h\")",
    "rule(count = 5, per = \"1s\", algorithm = \"token_bucket\", capacity = 100, initial = 3, reset_after = \"10s\")",
    "rule(count = 10, per = \"60s\", algorithm = \"fixed_window\", message = \"{@count} per {@per}\")",
    "rule(count = 10, cron = \"0 0 6 * * *\", tz = \"UTC\")",
    "rule(count = 20, per = \"1h\", key = \"{user.id}:{phone}\")",
    "rule(count = 30, per = \"1d\", key = \"all\", message = \"enough\")",
    "prevent_duplicate(key = \"{user.id}\")",
    "ban(denials = 20, within = \"10m\", duration = \"1h\")",
    "ban(denials = 3, within = \"10m\", duration = \"1h\", message = \"{phone:hash} is out for {@retry_after}\")",
    "policy = POLICY",
    "cost = items.len() as u64",
    "cost = 3",
    "wait = \"2s\"",
    "refund_if = Result::is_err",
    "skip_if = user.is_admin()",
    "shadow",
    "prevent_duplicate",
    "prevent_duplicate(per = \"5s\", message = \"again, {phone}\")",
    "name = \"sms.send\"",
    "key = \"sms:{phone}\"",
    "key = \"{user.id():lower}/{phone:trim}\"",
    "message = \"slow down, {phone}: {@retry_after}\"",
    "reject = ApiError::limited",
    "limiter = self.limiter",
    "limiter = state.limiter()",
    "crate = ::tallygate",
];

const FUNCTIONS: [&str; 9] = [
    "async fn f(phone: &str, user: User) -> Result<(), Rejection> { Ok(()) }",
    "/// Text.\n#[inline] pub(crate) async fn f<T: Display>(&mut self, phone: T) -> Result<T, E> where T: Copy { let x = ; }",
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

const TEMPLATE: [&str; 22] = [
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

const DURATION: [&str; 14] =
    ["0", "1", "60", "9", "18446744073709551615", "ms", "s", "m", "h", "d", " ", ".", "-", "é"];

#[test]
fn whatever_the_attribute_says_is_answered() {
    each(
        |random| {
            let mut text = list(random, &ARGUMENTS, ", ");
            spoil(random, &mut text);
            let mut function = random.choice(FUNCTIONS).unwrap().replace('\n', " ");
            if random.u8(..4) == 0 {
                spoil(random, &mut function);
            }
            // A comment of the documentation ends with its line.
            format!("{}\n{}", text.replace('\n', " "), function.replacen("/// Text.", "#[doc = \"Text.\"]", 1))
        },
        trial::attribute,
    );
}

#[test]
fn whatever_a_template_says_is_answered() {
    each(|random| list(random, &TEMPLATE, ""), trial::template);
}

#[test]
fn whatever_a_duration_says_is_answered() {
    each(|random| list(random, &DURATION, ""), trial::duration);
}

/// Tries many inputs. Those of one seed are always the same.
fn each(input: impl Fn(&mut Rng) -> String, trial: fn(&str)) {
    let seed = env::var("TALLYGATE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_260);
    let mut random = Rng::with_seed(seed);
    for case in 0..CASES {
        let input = input(&mut random);
        let tried = std::panic::catch_unwind(|| trial(&input));
        assert!(tried.is_ok(), "case {case} of seed {seed}: {input:?}");
    }
}

fn list(random: &mut Rng, parts: &[&str], separator: &str) -> String {
    let parts: Vec<_> = (0..random.usize(..7)).map(|_| parts[random.usize(..parts.len())]).collect();
    parts.join(separator)
}

/// Puts in, takes out or doubles some of the tokens.
fn spoil(random: &mut Rng, text: &mut String) {
    for _ in 0..random.usize(..4) {
        let Some((at, _)) = text.char_indices().nth(random.usize(..=text.chars().count())) else { continue };
        match random.u8(..6) {
            0 => text.truncate(at),
            1 => drop(text.remove(at)),
            2 => text.insert_str(at, &format!(" {} ", random.choice(WORDS).unwrap())),
            3 => text.insert_str(at, random.choice(PUNCTUATION).unwrap()),
            4 => text.insert_str(at, &format!(" {} ", random.choice(LITERALS).unwrap())),
            _ => text.insert_str(at, &text[at..].chars().take(20).collect::<String>()),
        }
    }
}
