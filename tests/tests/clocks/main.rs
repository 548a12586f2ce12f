//! Clocks that stand still beside a real server: a test that pauses the time changes how its whole process waits.

mod away;
mod set_by_tests;
