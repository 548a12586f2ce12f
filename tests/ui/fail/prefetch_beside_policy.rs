use std::sync::LazyLock;

use tallygate::{Policy, Rejection, rate_limit};

static POLICY: LazyLock<Policy> = LazyLock::new(|| unreachable!());

#[rate_limit(policy = POLICY, prefetch = "100ms")]
async fn search() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
