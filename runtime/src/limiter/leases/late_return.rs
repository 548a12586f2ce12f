//! Leases of a call whose answer did not come.

use std::sync::atomic::Ordering;

use crate::call::{Call, OwnedCall};
use crate::limiter::core::Core;
use crate::limiter::lease_returns::ReturnUnderWay;
use crate::micros;

/// How many calls at most are given back at a time whose answers did not come.
const MOST_LATE: usize = 1_000;

/// The leases of a call whose answer did not come. They are given back once it is not executed any more; without a place, they
/// end by themselves.
pub(super) struct LateReturn<'a> {
    leases: Call<'a>,
    since_us: u64,
    place: LatePlace<'a>,
    _under_way: Option<ReturnUnderWay>,
}

impl<'a> LateReturn<'a> {
    /// Returns `None` if there is no place, or no lease.
    pub(super) fn begin(core: &'a Core, call: &'a OwnedCall, since_us: u64) -> Option<Self> {
        let leases = call.as_call().leases()?;
        let place = LatePlace::take(core)?;
        Some(Self { leases, since_us, place, _under_way: ReturnUnderWay::begin(leases, &core.prefix) })
    }

    pub(super) async fn run(self) {
        let LatePlace(core) = self.place;
        let over_us = self.since_us.saturating_add(patience_us(core, self.leases));
        core.clock.sleep_until(over_us).await;
        core.give_back_leases(self.leases, over_us.saturating_add(longest_us(self.leases))).await;
    }
}

/// A place among the calls whose answers did not come. It is free again also if the runtime ends before.
struct LatePlace<'a>(&'a Core);

impl<'a> LatePlace<'a> {
    /// Takes a place, if there is one.
    fn take(core: &'a Core) -> Option<Self> {
        let place = Self(core);
        (core.late.fetch_add(1, Ordering::Relaxed) < MOST_LATE).then_some(place)
    }
}

impl Drop for LatePlace<'_> {
    fn drop(&mut self) {
        self.0.late.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How long a call may be executed after it was asked: in a cluster, what was charged is taken back within as long again.
pub(super) fn patience_us(core: &Core, call: Call<'_>) -> u64 {
    core.patience(call.policy).map_or(0, micros::from_duration)
}

/// How long the longest of the leases lasts.
pub(super) fn longest_us(leases: Call<'_>) -> u64 {
    leases.groups().iter().filter_map(|group| group.lease_us).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tallygate_rules::Rule;
    use tokio::runtime::Builder;

    use super::*;
    use crate::call::{CallOptions, LeaseName};
    use crate::limiter::Limiter;
    use crate::policy::Policy;
    use crate::subject::Subject;

    #[test]
    fn a_runtime_that_ends_takes_no_place_of_lost_answers_along() {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        // Nobody asks the server.
        let limiter = Limiter::builder().connect_lazy("redis://127.0.0.1:1/").unwrap();
        let policy = Policy::builder("p").rule(Rule::concurrency(1, Duration::from_secs(60))).build().unwrap();
        let options = CallOptions { lease: Some(LeaseName::next()), ..CallOptions::PLAIN };
        let call = OwnedCall::new(Call::new(&policy, &[Subject::of("s").key()], options));
        let core = Arc::clone(&limiter.core);
        let late = || limiter.core.late.load(Ordering::Relaxed);
        runtime.block_on(async {
            tokio::spawn(async move {
                let late = LateReturn::begin(&core, &call, core.clock.now_us()).unwrap();
                late.run().await;
            });
            tokio::task::yield_now().await;
        });
        assert_eq!(late(), 1);
        drop(runtime);
        assert_eq!(late(), 0);
    }
}
