//! Chance by seed. Each purpose draws from a generator of its own, so that one more draw changes no other.

use fastrand::Rng;

/// A source of chance.
#[derive(Clone, Debug)]
pub struct Chance(Rng);

impl Chance {
    /// Returns the source of that seed for that purpose.
    #[must_use]
    pub fn new(seed: u64, purpose: &str) -> Self {
        let mixed = purpose.bytes().fold(seed, |seed, byte| Rng::with_seed(seed ^ u64::from(byte)).u64(..));
        Self(Rng::with_seed(mixed))
    }

    /// Draws any number.
    pub fn number(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// Draws a number between two, both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        self.0.u64(least..=most.max(least))
    }

    /// Draws a number between two, such that each order of magnitude is as likely as any other.
    pub fn spread(&mut self, least: u64, most: u64) -> u64 {
        let bits = self.between(u64::from(least.max(1).ilog2()), u64::from(most.max(1).ilog2()));
        self.between((1 << bits).max(least), ((2 << bits) - 1).min(most))
    }

    /// Draws an index below that length.
    pub fn index(&mut self, length: usize) -> usize {
        self.0.usize(..length.max(1))
    }

    /// Whether something happens that does so in that share of all cases.
    pub fn happens(&mut self, share: f64) -> bool {
        share > 0.0 && self.0.f64() < share
    }

    /// Draws one of these.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())].clone()
    }
}
