//! Calls whose responses are streamed, in axum and in actix-web: how long they run, and what they count as.

mod actix;
mod axum;
mod bodies;
mod endings;
