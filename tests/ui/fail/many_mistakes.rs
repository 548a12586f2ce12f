use tallygate::{Rejection, rate_limit};

#[rate_limit(
    key = "{from}{too}",
    name = "",
    rule(count = 0, per = "60"),
    rule(count = 0, per = "60s"),
    rule(count = 5),
    limits(count = 5, per = "60s"),
    name = "transfer",
)]
const fn transfer(from: u32, to: u32) -> Result<(), Rejection> {
    let _ = (from, to);
    Ok(())
}

fn main() {}
