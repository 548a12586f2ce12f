use std::sync::LazyLock;

use tallygate::{Policy, Rejection, rate_limit};

static POLICY: LazyLock<Policy> = LazyLock::new(|| unreachable!());

#[rate_limit(policy = POLICY, longest_pause = "1h")]
async fn charge() -> Result<(), Rejection> {
    Ok(())
}

fn main() {}
