//! Calls limited functions and prints the answer to each call: `cargo run --example quickstart`.
//!
//! No limiter is installed, so the tallies are in this process. Their clock is tokio's, which is paused here and advanced
//! by hand: so a day passes in a moment. Your own tests can do the same instead of sleeping.
#![allow(clippy::print_stdout, reason = "it prints what happens")]

use std::time::Duration;

use tallygate::{Rejection, rate_limit};
use tokio::time::{Instant, advance};

#[rate_limit(
    key = "sms:{phone}",
    rule(count = 1, per = "60s"),
    rule(count = 5, per = "1h"),
    rule(count = 10, per = "24h")
)]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    Ok(())
}

#[rate_limit(rule(count = 10, per = "60s"), rule(count = 20, per = "120s"), prevent_duplicate)]
async fn draw() -> Result<(), Rejection> {
    Ok(())
}

#[rate_limit(key = "{user}", rule(count = 2, per = "60s"))]
async fn search(user: &str) -> Result<(), Rejection> {
    Ok(())
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    println!("The clock is paused and advanced by hand, so that a day passes in a moment.");
    a_code_sender().await;
    a_duplicate_and_a_limit().await;
    two_subjects().await;
    what_a_user_is_shown().await;
}

/// Calls again exactly after `retry_after`, until each of the three rules has denied a call.
async fn a_code_sender() {
    let page =
        Page::open("send_code: 1 per 60s, 5 per 1h and 10 per 24h for each phone, called again after `retry_after`");
    let phone = "13800000000";
    for _ in 0..22 {
        let answer = send_code(phone).await;
        page.line("send_code", &answer);
        if let Some(wait) = answer.err().and_then(|rejection| rejection.retry_after()) {
            advance(wait).await;
        }
    }
}

/// Calls twice at once, a third time too early, and then every five seconds.
async fn a_duplicate_and_a_limit() {
    let page = Page::open("draw: 10 per 60s, 20 per 120s, and no duplicate within 5s");
    page.line("draw", &draw().await);
    page.line("draw", &draw().await);
    advance(seconds(2)).await;
    page.line("draw", &draw().await);
    for _ in 0..10 {
        advance(seconds(5)).await;
        page.line("draw", &draw().await);
    }
}

async fn two_subjects() {
    let page = Page::open("search: 2 per 60s for each user; users do not affect each other");
    for user in ["alice", "alice", "alice", "bob", "alice", "bob", "bob"] {
        page.line(&format!("search({user})"), &search(user).await);
        advance(seconds(1)).await;
    }
}

async fn what_a_user_is_shown() {
    println!("\nA rejection reads like a sentence that a user may be shown:\n");
    advance(seconds(60)).await;
    let answers = [search("carol").await, search("carol").await, search("carol").await, draw().await, draw().await];
    for rejection in answers.into_iter().filter_map(Result::err) {
        println!("  {rejection}");
    }
}

/// One section of the output, whose clock starts at zero.
struct Page {
    opened: Instant,
}

impl Page {
    fn open(title: &str) -> Self {
        println!("\n{title}\n");
        println!("  {:10}{:16}{:11}{:30}wait", "clock", "call", "answer", "rule");
        Self { opened: Instant::now() }
    }

    fn line(&self, call: &str, answer: &Result<(), Rejection>) {
        let clock = clock(self.opened.elapsed());
        match answer {
            Ok(()) => println!("  {clock:10}{call:16}admitted"),
            Err(rejection) => println!("  {clock:10}{call:16}{}", describe(rejection)),
        }
    }
}

fn describe(rejection: &Rejection) -> String {
    let kind = rejection.kind().to_string();
    let rule = rejection.rule().map(|rule| format!("#{}: {}", rule.position(), rule.rule()));
    let wait = rejection.retry_after().map(spell);
    format!("{kind:11}{:30}{}", rule.unwrap_or_default(), wait.unwrap_or_default())
}

fn clock(time: Duration) -> String {
    let [hours, minutes, seconds] = parts(time);
    format!("{hours:02}:{minutes:02}:{seconds:02}")
}

fn spell(time: Duration) -> String {
    let parts = parts(time).into_iter().zip(["h", "m", "s"]);
    let spelt: Vec<_> =
        parts.filter(|&(number, _)| number > 0).map(|(number, unit)| format!("{number}{unit}")).collect();
    spelt.join(" ")
}

/// Hours, minutes and seconds.
fn parts(time: Duration) -> [u64; 3] {
    let seconds = time.as_secs();
    [seconds / 3_600, seconds / 60 % 60, seconds % 60]
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
