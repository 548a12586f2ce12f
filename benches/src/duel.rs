//! Two contenders, measured in turn.

use serde::Serialize;

/// The results of two contenders, round by round.
pub(crate) struct Duel {
    rounds: Vec<Round>,
}

/// The results of one round. The peer is measured twice: the difference is due to the machine.
#[derive(Clone, Copy, Default)]
struct Round {
    ours: f64,
    peer: f64,
    again: f64,
}

/// The middle half of the rounds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Spread {
    pub(crate) low: f64,
    pub(crate) median: f64,
    pub(crate) high: f64,
}

impl Duel {
    /// Measures both in every round, in random order, so that other load on the machine affects both alike. A round
    /// before the first warms up.
    pub(crate) fn of(rounds: usize, mut ours: impl FnMut() -> f64, mut peer: impl FnMut() -> f64) -> Self {
        let mut round = || {
            let mut measured = Round::default();
            let mut order = [0, 1, 2];
            fastrand::shuffle(&mut order);
            for contender in order {
                match contender {
                    0 => measured.ours = ours(),
                    1 => measured.peer = peer(),
                    _ => measured.again = peer(),
                }
            }
            measured
        };
        round();
        Self { rounds: (0..rounds).map(|_| round()).collect() }
    }

    /// Compares values that are the same in every measurement.
    pub(crate) fn once(ours: impl FnOnce() -> f64, peer: impl FnOnce() -> f64) -> Self {
        let (ours, peer) = (ours(), peer());
        Self { rounds: vec![Round { ours, peer, again: peer }] }
    }

    /// Returns the results.
    pub(crate) fn each(&self) -> [Spread; 2] {
        [self.spread(|round| round.ours), self.spread(|round| round.peer)]
    }

    /// Returns ours divided by the peer's, round by round.
    pub(crate) fn ratio(&self) -> Spread {
        self.spread(|round| round.ours / round.peer)
    }

    /// Returns the peer's divided by the peer's: 1, except for the influence of the machine.
    pub(crate) fn control(&self) -> Spread {
        self.spread(|round| if round.again.total_cmp(&round.peer).is_eq() { 1.0 } else { round.again / round.peer })
    }

    /// Returns ours less the peer's, round by round.
    pub(crate) fn difference(&self) -> Spread {
        self.spread(|round| round.ours - round.peer)
    }

    fn spread(&self, of: impl Fn(Round) -> f64) -> Spread {
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
