//! A lottery whose newcomers have three draws at once, and whose bots are banned: `cargo run --example lottery`.
//!
//! `TALLYGATE_URL` says where the tallies are: `memory://`, which is the default, or `redis://host:port`. Run it twice on
//! Redis, and the second run finds the bot banned by the first.
#![allow(clippy::print_stdout, reason = "it prints for whoever tries it")]

use std::{env, error::Error, time::Duration};

use tallygate::{Limiter, Rejection, rate_limit};
use tokio::time::sleep;

/// A draw every two seconds, of which up to ten are saved; a newcomer has three.
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

    println!("alice is new, and has three draws; for the fourth she waits as long as she is told:");
    let mut drawn = 0;
    while drawn < 4 {
        let answer = draw("alice").await;
        show("alice", &answer);
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

    println!("\nwhich goes on when it does wait:");
    sleep(Duration::from_secs(2)).await;
    show("bot", &draw("bot").await);
    Ok(())
}

fn show(user: &str, answer: &Result<u64, Rejection>) {
    match answer {
        Ok(number) => println!("  {user:6}draws {number}"),
        Err(rejection) => println!("  {user:6}{}: {rejection}", rejection.kind()),
    }
}
