//! A login where only failures count, and where who keeps guessing a password is banned: `cargo run --example login`.
//!
//! `TALLYGATE_URL` is the address of the tallies: `memory://`, the default, or `redis://host:port`. Run it twice on
//! Redis, and the second run finds the account closed to the attacker by the first.
#![allow(clippy::print_stdout, reason = "it prints what happens")]

use std::net::IpAddr;
use std::{env, error::Error, fmt};

use tallygate::{Limiter, Rejection, rate_limit};

/// At most five wrong passwords in ten minutes from one network for one user, and fifty from one network for all users. A right
/// one is refunded, so that logging in never locks a user out.
///
/// Twenty more attempts lead to a ban of an hour, in which the right password does not help either. It is a ban of the network
/// from that account: whoever could ban the user by wrong passwords could lock out anybody.
#[rate_limit(
    name = "login",
    key = "{user:trim:lower} {address:subnet}",
    rule(count = 5, per = "10m"),
    rule(count = 50, per = "10m", key = "{address:subnet}"),
    ban(denials = 20, within = "10m", duration = "1h", message = "{user:trim} is closed to you for {@retry_after}"),
    message = "{@count} wrong passwords in {@per} are enough; try again in {@retry_after}",
    refund_if = Result::is_ok
)]
async fn login(user: &str, address: IpAddr, password: &str) -> Result<Session, LoginError> {
    if password != "correct horse" {
        return Err(LoginError::WrongPassword);
    }
    Ok(Session { user: user.to_owned() })
}

struct Session {
    user: String,
}

enum LoginError {
    WrongPassword,
    Rejected(Rejection),
}

impl From<Rejection> for LoginError {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}

impl fmt::Display for LoginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongPassword => f.write_str("wrong password"),
            Self::Rejected(rejection) => write!(f, "{}: {rejection}", rejection.kind()),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::var("TALLYGATE_URL").unwrap_or_else(|_| "memory://".into());
    Limiter::connect(&url).await?.install()?;

    let (home, elsewhere) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([198, 51, 100, 7]));

    println!("alice logs in ten times; successful logins do not count:");
    repeat(10, "alice", home, "correct horse").await;

    println!("\nan attacker guesses her password: five guesses are checked, twenty are rejected:");
    repeat(25, "alice", elsewhere, "123456").await;

    println!("\nalice's account is closed to the attacker now, also with the right password:");
    repeat(1, "Alice ", elsewhere, "correct horse").await;

    println!("\nalice still logs in:");
    repeat(1, "alice", home, "correct horse").await;
    Ok(())
}

/// Logs in several times, and prints each run of equal answers once, with its length.
async fn repeat(times: u32, user: &str, address: IpAddr, password: &str) {
    let mut answers: Vec<(String, u32)> = Vec::new();
    for _ in 0..times {
        let answer = match login(user, address, password).await {
            Ok(session) => format!("welcome, {}", session.user),
            Err(error) => error.to_string(),
        };
        match answers.last_mut() {
            Some((last, times)) if *last == answer => *times += 1,
            _ => answers.push((answer, 1)),
        }
    }
    for (answer, times) in answers {
        println!("  {times:2} × {answer}");
    }
}
