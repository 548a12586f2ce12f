//! Who sends a request, and what their plan allows.

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{Response, StatusCode};

use crate::errors::error;

/// What a user has in a minute.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) requests: u64,
    pub(crate) tokens: u64,
}

const FREE: Plan = Plan { requests: 3, tokens: 10_000 };
const PRO: Plan = Plan { requests: 20, tokens: 60_000 };

/// A user, and the organisation that pays.
#[derive(Clone, Copy)]
pub(crate) struct User {
    pub(crate) name: &'static str,
    pub(crate) org: &'static str,
    pub(crate) plan: Plan,
}

/// All users, by their keys. A real gateway finds the digest of a key in its database.
const USERS: [(&str, User); 4] = [
    ("sk-alice", User { name: "alice", org: "acme", plan: FREE }),
    ("sk-bob", User { name: "bob", org: "acme", plan: PRO }),
    ("sk-carol", User { name: "carol", org: "acme", plan: PRO }),
    ("sk-dave", User { name: "dave", org: "globex", plan: PRO }),
];

impl<S: Sync> FromRequestParts<S> for User {
    type Rejection = Response<String>;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Response<String>> {
        let key = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let user = USERS.iter().find(|(known, _)| Some(*known) == key).map(|(_, user)| *user);
        user.ok_or_else(|| error(StatusCode::UNAUTHORIZED, "invalid_request_error", "no user has this key"))
    }
}
