//! A call, and the answer to it.

use super::Plan;

/// What is asked about one call.
#[derive(Clone, Debug)]
pub struct Call {
    /// The rules that it is asked by.
    pub plan: Plan,
    /// Its subjects, the main one first: each rule counts one of them.
    pub subjects: [usize; 3],
    /// Its weight.
    pub cost: u64,
    /// Whether to tell where every rule stands.
    pub report: bool,
    /// Whether to count nothing.
    pub peek: bool,
}

/// What is answered to one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether it is admitted.
    pub verdict: Verdict,
    /// Where every rule stands after the call: the greatest cost that fits, and the microseconds until it is whole again.
    pub standings: Vec<(u128, u128)>,
}

/// Whether a call is admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Admitted,
    /// The position of the rule that is named, and the microseconds to wait; `None` is for ever.
    Denied(usize, Option<u128>),
    /// The main subject is banned; the microseconds to wait as above.
    Banned(Option<u128>),
}
