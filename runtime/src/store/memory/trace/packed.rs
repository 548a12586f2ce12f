//! A remnant in six bytes.

use tallygate_rules::{MAX_EXACT, MAX_STANDSTILL};

use crate::algorithm::Remnant;

/// The bits of a time, of its grain, of an amount, and of a mark.
const TIME_BITS: u32 = 20;
const GRAIN_BITS: u32 = 3;
const AMOUNT_BITS: u32 = 10;
pub(super) const MARK_BITS: u32 = 15;

/// The longest time to the end of a remnant, in grains. Beyond it, a time is over.
const LONGEST: u64 = 1 << 17;

/// The smallest grain of time is 2^12 microseconds. Each further one is eight times as long, so that a time is rounded up by at
/// most 2^-14 of itself.
const SMALLEST_GRAIN: u32 = 12;
const GREATEST_GRAIN: u32 = (1 << GRAIN_BITS) - 1;
const GRAIN_STEP: u32 = 3;

/// The longest time to an end, beyond 30 years.
const LATEST_US: u64 = (LONGEST - 2) << (SMALLEST_GRAIN + GREATEST_GRAIN * GRAIN_STEP);

/// How often a table has to drop what is over: sooner than a time of the smallest grain seems to come again.
pub(super) const SWEEP_US: u64 = LONGEST << SMALLEST_GRAIN;

/// How far the clock may go back while time stands still.
#[allow(clippy::cast_possible_truncation, reason = "it is less than a second")]
const STANDSTILL_US: u64 = MAX_STANDSTILL.as_micros() as u64;

/// Amounts are exact below 2^6; greater ones are rounded up to as many bits.
const EXACT_BITS: u32 = 6;

/// How many bits a step shifts an amount.
const SHIFTED: u64 = 3;

/// An amount of which only this is known: it is greater than all that can be written.
const BEYOND: u64 = (1 << AMOUNT_BITS) - 1;

/// A remnant, with the mark of its owner. Both the end and the amount are rounded up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PackedRemnant([u8; 6]);

impl PackedRemnant {
    /// A free place.
    pub(super) const FREE: Self = Self([0; 6]);

    pub(super) fn new(mark: u16, remnant: Remnant, now_us: u64) -> Self {
        let ends_us = remnant.ends_us.min(now_us.saturating_add(LATEST_US));
        let left_us = ends_us.saturating_sub(base(now_us));
        // Some of the longest times are kept free, because the clock may go back.
        let fits = |grain: &u32| (left_us + 2 * STANDSTILL_US) >> shift(*grain) < LONGEST - 1;
        let grain = (0..GREATEST_GRAIN).find(fits).unwrap_or(GREATEST_GRAIN);
        let time = ends_us.div_ceil(1 << shift(grain)) & ((1 << TIME_BITS) - 1);
        let packed = (time << GRAIN_BITS | u64::from(grain)) << AMOUNT_BITS | pack_amount(remnant.amount);
        let [_, _, bytes @ ..] = (packed << MARK_BITS | u64::from(mark)).to_be_bytes();
        Self(bytes)
    }

    /// Returns the mark and the remnant; `None` if it is over for so long that the clock does not stand still till then.
    pub(super) fn read(self, now_us: u64) -> Option<(u16, Remnant)> {
        let amount = unpack_amount(self.field(MARK_BITS, AMOUNT_BITS));
        if amount == 0 {
            return None;
        }
        let (shift, base_us) = (shift(self.grain()), base(now_us));
        let time = self.field(MARK_BITS + AMOUNT_BITS + GRAIN_BITS, TIME_BITS);
        let base = base_us >> shift;
        let left = time.wrapping_sub(base) & ((1 << TIME_BITS) - 1);
        let ends_us = (base + left) << shift;
        let mark = u16::try_from(self.field(0, MARK_BITS)).unwrap_or_default();
        (left <= LONGEST && ends_us > base_us).then_some((mark, Remnant::until(ends_us, amount)))
    }

    /// Whether it has this mark, also if it is over. A free place has mark 0.
    pub(super) fn is_of(self, mark: u16) -> bool {
        let [.., high, low] = self.0;
        u16::from_be_bytes([high, low]) & ((1 << MARK_BITS) - 1) == mark
    }

    /// Whether it is over for sure after a time without any use of the table.
    pub(super) fn is_over_after(self, unused_us: u64) -> bool {
        unused_us > LONGEST << shift(self.grain())
    }

    fn grain(self) -> u32 {
        u32::try_from(self.field(MARK_BITS + AMOUNT_BITS, GRAIN_BITS)).unwrap_or(GREATEST_GRAIN)
    }

    fn field(self, low: u32, bits: u32) -> u64 {
        let mut bytes = [0; 8];
        bytes[2..].copy_from_slice(&self.0);
        u64::from_be_bytes(bytes) >> low & ((1 << bits) - 1)
    }
}

fn base(now_us: u64) -> u64 {
    now_us.saturating_sub(STANDSTILL_US)
}

fn shift(grain: u32) -> u32 {
    SMALLEST_GRAIN + GRAIN_STEP * grain
}

/// Returns an amount as its highest bits and how far they are shifted.
fn pack_amount(amount: u64) -> u64 {
    let most = (1 << EXACT_BITS) - 1;
    let shifts = 0..1 << (AMOUNT_BITS - EXACT_BITS);
    let found = shifts.map(|shift| (shift, amount.div_ceil(1 << (shift * SHIFTED)))).find(|(_, bits)| *bits <= most);
    found.map_or(BEYOND, |(shift, bits)| shift << EXACT_BITS | bits)
}

fn unpack_amount(packed: u64) -> u64 {
    match packed {
        BEYOND => MAX_EXACT,
        _ => (packed & ((1 << EXACT_BITS) - 1)) << ((packed >> EXACT_BITS) * SHIFTED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START_US: u64 = 1_800_000_000_000_000;

    #[test]
    fn a_remnant_is_rounded_up_and_by_little() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..100_000 {
            let [left_us, amount] = [random.u32(1..50), random.u32(1..50)].map(|bits| 1 + random.u64(..1 << bits));
            let (now_us, mark) = (START_US + random.u64(..1 << 40), random.u16(..1 << MARK_BITS));
            let remnant = Remnant::until(now_us + left_us, amount);
            let (found, kept) = PackedRemnant::new(mark, remnant, now_us).read(now_us).unwrap();
            assert!(found == mark && kept.covers(remnant));
            assert!(kept.ends_us - remnant.ends_us <= ((left_us + 3 * STANDSTILL_US) >> 14).max(1 << SMALLEST_GRAIN));
            assert!(kept.amount - amount <= amount / 8 && (amount >= 64 || kept.amount == amount), "{amount}");
        }
        let most = Remnant::until(START_US + 1, u64::MAX);
        assert_eq!(PackedRemnant::new(0, most, START_US).read(START_US).unwrap().1.amount, MAX_EXACT);
    }

    #[test]
    fn an_end_that_was_rounded_up_stays_as_it_is_however_often_it_is_kept() {
        let mut random = fastrand::Rng::with_seed(8);
        for _ in 0..10_000 {
            let (mut now_us, left_us) = (START_US, random.u64(1 << 20..1 << 45));
            let end_us = now_us + left_us;
            let mut kept = Remnant::until(end_us, 1);
            while now_us < end_us {
                let before = kept;
                kept = PackedRemnant::new(0, kept, now_us).read(now_us).unwrap().1;
                assert!(end_us <= kept.ends_us);
                assert!(before.ends_us == end_us || before.ends_us == kept.ends_us);
                now_us += 1 + random.u64(..left_us / 4);
            }
        }
    }

    #[test]
    fn a_remnant_is_read_while_the_clock_stands_still() {
        for left_us in [1, 1_000, STANDSTILL_US, 500_000_000, 536_700_000, 536_800_000, 1 << 40] {
            let remnant = Remnant::until(START_US + left_us, 1);
            let packed = PackedRemnant::new(3, remnant, START_US);
            assert!(packed.read(START_US - STANDSTILL_US).is_some(), "{left_us}");
            assert!(packed.read(remnant.ends_us + STANDSTILL_US - 1).is_some(), "{left_us}");
        }
    }
}
