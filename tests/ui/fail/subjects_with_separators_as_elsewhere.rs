use tallygate::{Policy, Rejection, rate_limit};

static POLICY: std::sync::LazyLock<Policy> = std::sync::LazyLock::new(|| unimplemented!());

#[rate_limit(
    policy = *POLICY,
    subject("network": "{phone}"),
    subject("network" => "{phone}"),
    subject("network"; "{phone}"),
)]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
