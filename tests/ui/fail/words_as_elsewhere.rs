use tallygate::{Rejection, rate_limit};

#[rate_limit(
    rule(permits = 1, every = "60s", strategy = "x", by = "{phone}"),
    rule(count = 2, per = "1h", burst = 9, fallback = f),
    prevent_duplicate(window = "5s", id = "{phone}", msg = "again"),
    concurrency(max_concurrent = 3, ttl = "30s", identifier = "{phone}"),
    ban(threshold = 9, findtime = "10m", bantime = "1h", key = "{phone}", on_outage = "deny"),
    fail_open = true,
    exemptWhen = true,
    dry_run = true,
)]
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

fn main() {}
