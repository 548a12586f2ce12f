//! A call, and the answer to it.

use super::Plan;

/// A call to decide.
#[derive(Clone, Debug)]
pub struct Call {
    /// The rules that decide it.
    pub plan: Plan,
    /// Its subjects, the main one first: each rule counts one of them.
    pub subjects: [usize; 3],
    /// Its cost.
    pub cost: u64,
    /// Whether to report the state of every rule.
    pub report: bool,
    /// Whether to count nothing.
    pub peek: bool,
}

/// The answer to one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether it is admitted.
    pub verdict: Verdict,
    /// The state of every rule after the call: the greatest cost that fits, and the microseconds until the rule is as
    /// if it had never counted.
    pub standings: Vec<(u128, u128)>,
}

/// Whether a call is admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The call is admitted.
    Admitted,
    /// The position of the reported rule, and the microseconds to wait; `None` means for ever.
    Denied(usize, Option<u128>),
    /// The main subject is banned: the microseconds to wait, as above.
    Banned(Option<u128>),
}
