//! A lottery in which new users have three draws at once, and bots are banned: `cargo run --example lottery`.
//!
//! `TALLYGATE_URL` is the address of the tallies: `memory://`, the default, or `redis://host:port`. Run it twice on
//! Redis, and the second run finds the bot banned by the first.
#![allow(clippy::print_stdout, reason = "it prints what happens")]

use std::{env, error::Error, time::Duration};

use tallygate::{Limiter, Rejection, rate_limit};
use tokio::time::sleep;

/// One draw every two seconds. Unused draws are saved, up to ten; a new user starts with three.
#[rate_limit(
    name = "lottery",
    key = "{user}",
    rule(count = 1, per = "2s", algorithm = "token_bucket", capacity = 10, initial = 3, reset_after = "1h"),
    ban(denials = 10, within = "1m", duration = "10m", message = "no more draws for {@retry_after}"),
    message = "no draw left; the next one comes in {@retry_after}"
)]
async fn draw(user: &str) -> Result<u64, Rejection> {
    Ok(fastrand::u64(1..=49))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::var("TALLYGATE_URL").unwrap_or_else(|_| "memory://".into());
    Limiter::connect(&url).await?.install()?;

    // On Redis, the alice of the last run is not new.
    let alice = format!("alice-{:04x}", fastrand::u16(..));
    println!("alice is new and has three draws; before the fourth she waits for `retry_after`:");
    let mut drawn = 0;
    while drawn < 4 {
        let answer = draw(&alice).await;
        show(&alice, &answer);
        match answer {
            Ok(_) => drawn += 1,
            Err(rejection) => match rejection.retry_after() {
                Some(wait) => sleep(wait).await,
                None => break,
            },
        }
    }

    println!("\na bot does not wait, and is banned after ten denials:");
    for _ in 0..15 {
        show("bot", &draw("bot").await);
    }

    println!("\nthe ban continues when the bot waits:");
    sleep(Duration::from_secs(2)).await;
    show("bot", &draw("bot").await);
    Ok(())
}

fn show(user: &str, answer: &Result<u64, Rejection>) {
    match answer {
        Ok(number) => println!("  {user:11}draws {number}"),
        Err(rejection) => println!("  {user:11}{}: {rejection}", rejection.kind()),
    }
}
