use tallygate::{Rejection, rate_limit};

#[rate_limit(key = "{*:debug}", rule(count = 10, per = "60s"))]
async fn export(user: &str, Order { id, .. }: Order) -> Result<(), Rejection> {
    let _ = (user, id);
    Ok(())
}

fn main() {}
