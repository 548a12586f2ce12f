//! The costs of calls.

/// What is known about the costs of the calls that a policy decides.
///
/// It decides which rules can bind: beside `prevent_duplicate per 5s`, at most 12 calls fit into 60 seconds, but they may
/// weigh more if calls may cost more than 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Costs {
    /// Every call has this cost: 1, unless the attribute has a `cost`.
    Always(u64),
    /// Each call may have another cost.
    Any,
    /// Each call may have another cost, and may be refunded or settled later, as in a check by hand: then a rule may count
    /// more than it admits, and longer than another one.
    Recounted,
}
