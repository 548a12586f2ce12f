//! The server of the world beside real ones: the same commands have the same answers.
//!
//! | file | what is asked |
//! | --- | --- |
//! | `random` | commands at random, and scripts that call them |
//! | `texts` | what is wrong, and what servers say about that |
//! | `users` | what users may do |
//! | `states` | servers that cannot do what they are asked |
//! | `nodes` | nodes of a cluster |
//! | `library` | what limiters send |

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

mod draw;
mod library;
mod nodes;
mod random;
mod states;
mod texts;
mod twin;
mod users;
mod witness;
