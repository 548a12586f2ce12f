//! Translations with a daily quota by plan, counted in pages: `cargo run --example quota`.
//!
//! `TALLYGATE_URL` is the address of the tallies: `memory://`, the default, or `redis://host:port`. Run it twice on
//! Redis, and the second run finds the pages of the first run used up.
#![allow(clippy::print_stdout, reason = "it prints what happens")]

use std::{env, error::Error, time::Instant};

use tallygate::{Limiter, Rejection, rate_limit};

struct Customer {
    name: &'static str,
    plan: Plan,
}

enum Plan {
    Free,
    Team,
}

impl Plan {
    fn pages_a_day(&self) -> u64 {
        match self {
            Self::Free => 20,
            Self::Team => 100,
        }
    }
}

/// As many pages a day as the customer's plan has, and ten pages a second. A faster customer waits for up to two seconds;
/// a customer without pages left is rejected at once.
#[rate_limit(
    name = "translate",
    key = "{customer.name}",
    rule(
        count = customer.plan.pages_a_day(), per = "1d", name = "plan",
        message = "your plan has {@count} pages a day; these are too many"
    ),
    rule(count = 10, per = "1s", name = "pace", message = "no more than {@count} pages at once"),
    cost = pages,
    wait = "2s"
)]
async fn translate(customer: &Customer, pages: u64) -> Result<String, Rejection> {
    Ok(format!("{pages} pages translated"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::var("TALLYGATE_URL").unwrap_or_else(|_| "memory://".into());
    Limiter::connect(&url).await?.install()?;

    let mut zoe = Customer { name: "zoe", plan: Plan::Free };
    println!("zoe's free plan has 20 pages a day; the second eight wait until the first eight are a second old:");
    order(&zoe, 8).await;
    order(&zoe, 8).await;

    println!("\neight more would be 24: rejected at once; four fit:");
    order(&zoe, 8).await;
    order(&zoe, 4).await;

    println!("\nshe buys 100 pages a day, of which 20 are used:");
    zoe.plan = Plan::Team;
    order(&zoe, 8).await;

    println!("\neleven at once are more than the pace ever admits, however long she waits:");
    order(&zoe, 11).await;
    Ok(())
}

async fn order(customer: &Customer, pages: u64) {
    let start = Instant::now();
    let (answer, never) = match translate(customer, pages).await {
        Ok(done) => (done, ""),
        Err(rejection) => {
            let never = if rejection.retry_after().is_none() { " (never)" } else { "" };
            (format!("{}: {rejection}", rejection.kind()), never)
        }
    };
    println!("  {:4.1} s  {answer}{never}", start.elapsed().as_secs_f64());
}
