//! A form that is submitted once: the same form again is refused, unless the first try has failed: `cargo run --example form`.
//!
//! `TALLYGATE_URL` is the address of the tallies: `memory://`, the default, or `redis://host:port`. Run it twice on
//! Redis, and the second run finds the forms of the first.
#![allow(clippy::print_stdout, reason = "it prints what happens")]

use std::{env, error::Error, fmt};

use tallygate::{Limiter, Rejection, rate_limit};

/// What a customer fills in. All of it decides whether a form is the same.
#[derive(Debug)]
struct Form {
    product: &'static str,
    pieces: u32,
}

/// The same form of the same customer is a duplicate for a minute. If the warehouse fails, it may be sent again at once.
///
/// `{*}` stands for all arguments. They are shown by `Debug`, and hashed: nobody can read an order in a key.
#[rate_limit(
    name = "orders.submit",
    key = "{customer}",
    rule(count = 20, per = "1h", message = "{@count} orders an hour are enough"),
    prevent_duplicate(
        per = "1m",
        key = "{*:debug:hash}",
        release_if = Result::is_err,
        message = "this order is being placed already"
    )
)]
async fn submit(customer: &str, form: &Form) -> Result<String, OrderError> {
    if form.pieces > 10 {
        return Err(OrderError::OutOfStock);
    }
    Ok(format!("{customer} gets {} × {}", form.pieces, form.product))
}

enum OrderError {
    OutOfStock,
    Rejected(Rejection),
}

impl From<Rejection> for OrderError {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}

impl fmt::Display for OrderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfStock => f.write_str("out of stock"),
            Self::Rejected(rejection) => write!(f, "{}: {rejection}", rejection.kind()),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::var("TALLYGATE_URL").unwrap_or_else(|_| "memory://".into());
    Limiter::connect(&url).await?.install()?;

    println!("zoe clicks twice:");
    send("zoe", Form { product: "tea", pieces: 2 }).await;
    send("zoe", Form { product: "tea", pieces: 2 }).await;

    println!("\nshe orders something else, and so does ann the same:");
    send("zoe", Form { product: "tea", pieces: 3 }).await;
    send("ann", Form { product: "tea", pieces: 2 }).await;

    println!("\nan order that fails may be sent again at once:");
    send("bob", Form { product: "tea", pieces: 99 }).await;
    send("bob", Form { product: "tea", pieces: 99 }).await;
    Ok(())
}

async fn send(customer: &str, form: Form) {
    match submit(customer, &form).await {
        Ok(receipt) => println!("  {receipt}"),
        Err(error) => println!("  {customer}: {error}"),
    }
}
