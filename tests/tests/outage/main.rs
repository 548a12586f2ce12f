//! Redis fails: each call is answered in time, by what its policy says, and the limiter recovers by itself.

mod failing;
mod faults;
mod on_outage;
