//! What support does for a customer whose limit is used up: look, reset, raise the limit for a while:
//! `cargo run --example support`.
//!
//! `TALLYGATE_URL` is the address of the tallies: `memory://`, the default, or `redis://host:port`. On Redis, the support
//! desk can be another process.
#![allow(clippy::print_stdout, reason = "it prints what happens")]

use std::{env, error::Error};

use tallygate::{Limiter, Rejection, Subject, rate_limit};

#[rate_limit(name = "sms.send", key = "sms:{phone:hash}", rule(count = 2, per = "1h", name = "hourly"))]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    println!("  a code for {phone}");
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::var("TALLYGATE_URL").unwrap_or_else(|_| "memory://".into());
    Limiter::connect(&url).await?.install()?;

    println!("alice asks for three codes:");
    send_codes("13800000000", 3).await;

    println!("\nsupport finds the limit by its name, and the customer by the template of its key:");
    let limiter = Limiter::installed();
    let policy = Limiter::policy("sms.send").ok_or("the function was called")?;
    let alice: Subject = limiter.subject().text("sms:").value("13800000000").hash().build();
    for rule in limiter.peek(&policy, &alice).await?.report() {
        println!("  {}: {} of {} left", rule.rule(), rule.remaining(), rule.limit());
    }

    println!("\nafter a reset she can ask again:");
    limiter.check(&policy, &alice).reset().await?;
    send_codes("13800000000", 1).await;

    println!("\nfor two hours she may ask more often, and no other customer may:");
    limiter.override_policy("sms.send").subject(&alice).text("hourly = 5 per 1h for 2h").set().await?;
    for found in limiter.overrides().await? {
        println!("  {}: {found}", found.policy());
    }
    send_codes("13800000000", 5).await;
    send_codes("13900000000", 3).await;

    // A second run on Redis begins like the first.
    limiter.override_policy("sms.send").subject(&alice).clear().await?;
    for phone in ["13800000000", "13900000000"] {
        let subject = limiter.subject().text("sms:").value(phone).hash().build();
        limiter.check(&policy, &subject).reset().await?;
    }
    Ok(())
}

async fn send_codes(phone: &str, times: u32) {
    for _ in 0..times {
        if let Err(rejection) = send_code(phone).await {
            println!("  {}: {rejection}", rejection.kind());
        }
    }
}
