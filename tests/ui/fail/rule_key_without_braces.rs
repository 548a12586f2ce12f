use tallygate::{Rejection, rate_limit};

struct User {
    id: u64,
}

#[rate_limit(key = "{user.id}", rule(count = 9, per = "1s"), rule(count = 10, per = "60s", key = "user.id"))]
async fn send_code(user: &User) -> Result<(), Rejection> {
    let _ = user.id;
    Ok(())
}

fn main() {}
