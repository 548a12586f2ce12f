use std::sync::LazyLock;

use tallygate::{Policy, Rejection, rate_limit};

static POLICY: LazyLock<Policy> = LazyLock::new(|| unreachable!());

#[rate_limit(policy = POLICY, key = "{host}", pause = |_| None, pause_key = "{host}")]
async fn charge(host: &str) -> Result<(), Rejection> {
    let _ = host;
    Ok(())
}

fn main() {}
