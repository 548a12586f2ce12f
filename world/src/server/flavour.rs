//! Which server it is.

/// The servers whose answers differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flavour {
    /// Redis 6.2.
    Redis62,
    /// Redis 7.0.
    Redis70,
    /// Valkey 9.
    Valkey9,
}

impl Flavour {
    /// Returns the flavour that answers like a server of that version, as in its `INFO server`.
    #[must_use]
    pub fn of(info: &str) -> Option<Self> {
        let version = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        if version("valkey_version").is_some() {
            return Some(Self::Valkey9);
        }
        match version("redis_version")? {
            text if text.starts_with("6.") => Some(Self::Redis62),
            text if text.starts_with("7.") => Some(Self::Redis70),
            _ => None,
        }
    }

    /// How the server calls itself.
    pub(crate) fn product(self) -> &'static str {
        if self == Self::Valkey9 { "Valkey" } else { "Redis" }
    }

    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::Redis62 => "6.2.5",
            Self::Redis70 => "7.0.15",
            Self::Valkey9 => "9.1.2",
        }
    }
}
