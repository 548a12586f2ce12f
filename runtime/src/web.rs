//! Limits on the web: the client of a request, and responses that clients understand.

#[cfg(feature = "actix")]
mod actix;
#[cfg(feature = "admin")]
mod admin;
#[cfg(feature = "axum")]
mod axum;
mod client_ip;
mod decisions;
mod fields;
mod frameworks;
mod layer;
mod limit;
#[cfg(feature = "config")]
mod limits;
#[cfg(feature = "utoipa")]
pub(crate) mod openapi;
mod parts;
mod problem;
#[cfg(feature = "tonic")]
mod tonic;

#[cfg(feature = "admin")]
pub use self::admin::AdminRoutes;
pub use self::client_ip::{ClientIp, ClientIpSource, MissingClientIp};
pub use self::decisions::Decisions;
pub use self::fields::{Draft, Fields, Items, Legacy};
pub use self::layer::{Layer, LayerService, ResponseFuture};
pub use self::limit::{Limit, LimitBody, LimitService, limit};
#[cfg(feature = "config")]
pub use self::limits::{Limits, limits};
#[cfg(feature = "utoipa")]
pub use self::openapi::limit_responses;
pub use self::parts::Parts;
pub use self::problem::{PROBLEM_JSON, Problem};
pub use crate::held::Held;
