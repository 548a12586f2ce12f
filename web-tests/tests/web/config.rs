//! Limits from a file: what is accepted, what is refused and in which words, and which requests are limited.

mod accepted;
mod effects;
mod messages;
mod mistakes;
mod refused;
mod requests;
mod schema;
mod syntax;
mod values;
