//! What is stored in Redis, and the scripts that write it.

mod bounds;
mod faketime;
mod keys;
mod lifetime;
mod script;
mod scripts;
mod tally;
