//! Calls whose responses are streamed, in axum and in actix-web: how long they run, what they count as, and what
//! a process leaves that stops meanwhile.

mod actix;
mod axum;
mod bodies;
mod endings;
mod shutdown;
