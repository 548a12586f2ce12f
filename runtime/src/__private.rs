//! The only thing that expansions of the attribute call. Nothing here is part of the public interface.

mod call;
mod entering;
mod extras;
mod in_context;
mod kept;
mod message;
mod policy_cell;
mod question;
mod refund;
mod values;

pub use tallygate_rules::{Ban, OnOutage};
#[cfg(feature = "utoipa")]
pub use utoipa::IntoResponses;

pub use self::call::{LimitedCall, call};
pub use self::entering::Entering;
pub use self::in_context::{
    FilteredInContext, InContext, context, context_filtered, push_context, push_context_filtered,
};
pub use self::kept::Kept;
pub use self::message::{
    denying_rule, is_ban, push_count, push_per, push_retry_after, push_rule, push_shown, push_string, push_text,
};
pub use self::policy_cell::PolicyCell;
pub use self::refund::{Doing, Due, finish, refund_if, release_if, settle};
pub use self::values::{Value, Values, debug, hash, lower, subject, subnet, trim};
use crate::decision::Rejection;
pub use crate::decision::{Answered, answered, rejected};
use crate::limiter::Limiter;
#[cfg(feature = "utoipa")]
pub use crate::web::openapi::{Responses, limit_responses, responses};

/// Returns the limiter that the user named.
///
/// It is the element of an array, because the compiler then underlines it alone when its type is wrong.
#[inline]
pub fn limiter([named]: [&Limiter; 1]) -> &Limiter {
    named
}

/// Returns the limiter that is installed at this moment.
#[inline]
pub fn installed() -> &'static Limiter {
    Limiter::installed()
}

/// Makes what the function returns of the rejection, by what the user named.
pub fn reject<T>(rejection: Rejection, reject: impl FnOnce(Rejection) -> T) -> T {
    reject(rejection)
}
