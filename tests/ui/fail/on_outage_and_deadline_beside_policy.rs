use std::sync::LazyLock;

use tallygate::{Policy, Rejection, rate_limit};

static POLICY: LazyLock<Policy> = LazyLock::new(|| unreachable!());

#[rate_limit(policy = POLICY, on_outage = "local", deadline = "50ms")]
async fn search() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
