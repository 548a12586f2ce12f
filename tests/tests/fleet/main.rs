//! What changes while processes run, and what they tell of themselves: overrides, files, the list of policies.

mod config;
mod overrides;
mod registry;
