//! Random numbers from the seed of the process.

use std::hash::BuildHasher;

use foldhash::quality::FixedState;

use super::process::current;

/// A hasher for tables whose order must not be predictable.
#[derive(Clone, Debug)]
pub(crate) struct RandomState(FixedState);

impl Default for RandomState {
    fn default() -> Self {
        Self(FixedState::with_seed(random()))
    }
}

impl BuildHasher for RandomState {
    type Hasher = <FixedState as BuildHasher>::Hasher;

    fn build_hasher(&self) -> Self::Hasher {
        self.0.build_hasher()
    }
}

fn random() -> u64 {
    current().map_or_else(|| foldhash::quality::RandomState::default().hash_one(()), |process| process.random())
}

#[cfg(feature = "redis")]
pub(crate) use self::redis::*;

/// Items that only the store in Redis uses.
#[cfg(feature = "redis")]
mod redis {
    use std::ops::RangeBounds;

    use fastrand::Rng;

    use super::random;

    pub(crate) fn random_fraction() -> f64 {
        Rng::with_seed(random()).f64()
    }

    pub(crate) fn random_number(range: impl RangeBounds<u64>) -> u64 {
        Rng::with_seed(random()).u64(range)
    }

    pub(crate) fn shuffle<T>(values: &mut [T]) {
        Rng::with_seed(random()).shuffle(values);
    }
}
