//! What a server is to the limiter, and who says where it is: the remedy for a server that refuses depends on both.

/// What a server is to the limiter, and who says where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerRole {
    /// The server of the url, which is by itself.
    Server,
    /// A sentinel of the url.
    Sentinel,
    /// The primary that the sentinels name.
    Primary,
    /// A node of a cluster in the url.
    Seed,
    /// A node that the nodes of a cluster announce.
    Node,
}
