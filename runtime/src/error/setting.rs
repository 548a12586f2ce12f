//! The settings that errors name.

/// A setting that an error names: see [`Error::setting`](crate::Error::setting).
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
