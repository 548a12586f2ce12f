use tallygate::{Rejection, rate_limit};

#[rate_limit(key = &user.0.to_string(), rule(count = 10, per = "60s"))]
async fn send_code(user: &(u64, String)) -> Result<(), Rejection> {
    let _ = user;
    Ok(())
}

fn main() {}
