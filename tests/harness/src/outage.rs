//! A limiter of tests in which its server goes away. A call takes at most the deadline and [`GRACE`]; a busy machine adds to
//! it, as [`Punctuality`](crate::punctuality::Punctuality) measures.

use std::time::Duration;

use tallygate::{Limiter, Rejection, rate_limit};
use tokio::sync::{Mutex, MutexGuard};

/// The deadline of the limiter.
pub const DEADLINE: Duration = Duration::from_millis(250);
/// What a machine at rest adds to the deadline.
pub const GRACE: Duration = Duration::from_millis(50);
/// Recovery takes half a second at worst; a busy machine may need more.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until no other test of this process is [`alone`]: tests that run at the same time would make each other late.
pub async fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());
    ONE_AT_A_TIME.lock().await
}

/// Returns a limiter with the [`DEADLINE`], which connects with the first call.
///
/// # Panics
///
/// The URL is not sound.
pub fn limiter(url: &str) -> Limiter {
    Limiter::builder().deadline(DEADLINE).registry(false).connect_lazy(url).expect("the settings are sound")
}

/// Is admitted unless the server is away.
///
/// # Errors
///
/// The call is rejected.
#[rate_limit(name = "outage", key = "s", limiter = limiter, rule(count = 1_000_000, per = "1h"))]
pub async fn limited(limiter: &Limiter) -> Result<(), Rejection> {
    Ok(())
}
