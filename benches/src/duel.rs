//! Two contenders, measured in turn.

use serde::Serialize;

/// What each of two contenders took, round by round.
pub(crate) struct Duel {
    rounds: Vec<[f64; 2]>,
}

/// Where the middle half of the rounds lies.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Spread {
    pub(crate) low: f64,
    pub(crate) median: f64,
    pub(crate) high: f64,
}

impl Duel {
    /// Measures both in every round, so that whatever else the machine does meets them alike. Who comes first changes
    /// from round to round. A round before the first warms up.
    pub(crate) fn of(rounds: usize, mut ours: impl FnMut() -> f64, mut peer: impl FnMut() -> f64) -> Self {
        let mut played = Vec::with_capacity(rounds);
        for round in 0..=rounds {
            let pair = if round % 2 == 0 {
                let ours = ours();
                [ours, peer()]
            } else {
                let peer = peer();
                [ours(), peer]
            };
            if round > 0 {
                played.push(pair);
            }
        }
        Self { rounds: played }
    }

    /// Returns what the contenders took.
    pub(crate) fn each(&self) -> [Spread; 2] {
        [self.spread(|[ours, _]| ours), self.spread(|[_, peer]| peer)]
    }

    /// Returns ours divided by the peer's, round by round.
    pub(crate) fn ratio(&self) -> Spread {
        self.spread(|[ours, peer]| ours / peer)
    }

    /// Returns ours less the peer's, round by round.
    pub(crate) fn difference(&self) -> Spread {
        self.spread(|[ours, peer]| ours - peer)
    }

    fn spread(&self, of: impl Fn([f64; 2]) -> f64) -> Spread {
        Spread::of(self.rounds.iter().copied().map(of).collect())
    }
}

impl Spread {
    pub(crate) fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |quarters: usize| values[(values.len() - 1) * quarters / 4];
        Self { low: at(1), median: at(2), high: at(3) }
    }
}
