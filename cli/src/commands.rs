//! The commands, one file each. A command that undoes another shares its file.

pub(crate) mod ban;
pub(crate) mod bans;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod overriding;
pub(crate) mod pause;
pub(crate) mod peek;
pub(crate) mod policies;
pub(crate) mod reset;
pub(crate) mod simulate;
pub(crate) mod top;
pub(crate) mod watch;
