//! What a server stores beside tallies: overrides, the registry of policies, and denied subjects.

pub(super) mod denials;
pub(super) mod overrides;
pub(super) mod policies;
pub(super) mod reserved_keys;
