//! Overrides: rules that change while the program runs.

mod active;
mod builder;
mod checks;
mod content;
#[cfg(feature = "config")]
mod from_file;
mod known;
mod listed;
mod refresh;
mod store;
mod target;
mod text;
#[cfg(test)]
#[cfg(tallygate_shuttle)]
mod threads;

pub use self::builder::OverrideBuilder;
pub(crate) use self::known::Overrides;
pub use self::listed::Override;
