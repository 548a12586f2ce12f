use tallygate::{Rejection, rate_limit};

#[rate_limit(key = "{{tenant}}:{phone}", rule(count = 10, per = "60s"))]
async fn send_code(tenant: &str, phone: &str) -> Result<(), Rejection> {
    let _ = (tenant, phone);
    Ok(())
}

fn main() {}
