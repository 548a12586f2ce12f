//! The settings that errors name.

/// A setting that an error names: see [`NamedSetting`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Setting {
    /// The prefix of all keys.
    Prefix,
    /// The secret of digests.
    Secret,
    /// The longest time that a decision takes.
    Deadline,
    /// The settings of TLS beside a URL that does not ask for it.
    Tls,
    /// The certificates of authorities.
    Ca,
    /// The certificate of the client.
    ClientCertificate,
    /// The private key of the client.
    PrivateKey,
    /// The certificate of the client and its private key.
    KeyPair,
    /// A subject that is given as a whole, in place of the values of its key.
    Subject,
}

/// A setting that the text of an error names, and what the text says around the name: see
/// [`Error::named_setting`](crate::Error::named_setting).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NamedSetting {
    pub(super) setting: Setting,
    pub(super) before: String,
    pub(super) after: &'static str,
}

impl NamedSetting {
    /// Returns the setting.
    #[must_use]
    pub fn setting(&self) -> Setting {
        self.setting
    }

    /// Returns what the text says before the name; nothing where the text begins with the name.
    #[must_use]
    pub fn before(&self) -> &str {
        &self.before
    }

    /// Returns what the text says after the name, without the remedy in code that follows; nothing where the name is the remedy.
    #[must_use]
    pub fn after(&self) -> &str {
        self.after
    }
}
