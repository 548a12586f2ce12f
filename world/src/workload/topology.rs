//! How the servers of a world are arranged.

/// How the servers are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// One server.
    Server,
    /// A primary with a replica, and three sentinels.
    Sentinel,
    /// Three masters, each with or without a replica.
    Cluster,
}

impl Topology {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Server, Self::Sentinel, Self::Cluster];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Sentinel => "sentinel",
            Self::Cluster => "cluster",
        }
    }
}
