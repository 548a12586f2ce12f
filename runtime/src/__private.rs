//! Everything that expansions of the attribute call. Nothing of it is part of the public interface.

mod admission;
mod call;
mod correction;
mod pause;
mod policy_cell;
mod rejection;
mod values;

#[cfg(feature = "config")]
pub use inventory;
pub use tallygate_rules::{Ban, OnOutage, RejectionField};
#[cfg(feature = "utoipa")]
pub use utoipa::IntoResponses;

pub use self::admission::{Admission, Admitted, WaitingCall, run_body};
pub use self::call::{DeferredCall, LimitedCall, call, installed, limiter};
pub use self::correction::{
    AmountUsed, Correction, blocking_finish, finish, finish_holding, refund_if, refund_on, settle, settle_metered,
    settle_units, used,
};
pub use self::pause::{PauseLength, blocking_pause, pause, pause_by, unless_refunded};
pub use self::policy_cell::PolicyCell;
pub use self::rejection::{
    denying_rule, is_ban, push_context, push_context_filtered, push_shown, push_string, push_text, reject,
    with_messages,
};
pub use self::values::{
    Alternative, FilteredInContext, FirstInContext, InContext, Value, Values, context, context_filtered, debug,
    first_in_context, hash, lower, subject, subnet, trim,
};
pub use crate::__announce as announce;
pub use crate::decision::{Answered, Holding, MeteredCall, hold, hold_any, metered, push_field, unmetered};
#[cfg(feature = "config")]
pub use crate::policy::registry::Announced;
#[cfg(feature = "utoipa")]
pub use crate::web::openapi::{Responses, limit_responses, responses, without_content};
