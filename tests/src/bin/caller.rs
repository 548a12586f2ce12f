//! One of several processes that share a tally: says `ready`, waits for a line, calls from many tasks at once, and says
//! how many calls were admitted.

#![allow(clippy::print_stdout, reason = "the tests read it")]

use std::env;
use std::error::Error;
use std::io::stdin;
use std::time::Duration;

use tallygate::{Limiter, Policy, Rule, Subject};
use tallygate_harness::load;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let (Some(url), Some(count), Some(calls)) = (arguments.next(), arguments.next(), arguments.next()) else {
        return Err("usage: caller URL COUNT CALLS_PER_TASK".into());
    };
    let policy = Policy::builder("processes").rule(Rule::sliding_window(count.parse()?, Duration::from_secs(600)));
    let policy = policy.build()?;
    let limiter = Limiter::builder().deadline(Duration::from_secs(30)).connect(&url).await?;
    println!("ready");
    stdin().read_line(&mut String::new())?;
    println!("{}", load::admitted_at_once(&limiter, &policy, &Subject::of("all"), calls.parse()?).await);
    Ok(())
}
