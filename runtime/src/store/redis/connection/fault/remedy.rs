//! What to do about an error of a server. That depends on its role and on the URL.

use std::borrow::Cow;

use crate::store::redis::connection::address::{Address, ServerRole};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Remedy {
    /// One text for all servers; empty if the error says all.
    Fixed(&'static str),
    /// Log in.
    Login,
    /// Log in as another user.
    OtherLogin,
    /// Ask the nodes of a cluster.
    Cluster,
    /// Ask a server that is not part of a cluster.
    NoCluster,
    /// Ask the primary.
    Primary,
}

impl Remedy {
    /// Says what to do about the server at this address.
    pub(crate) fn text(self, address: &Address) -> Cow<'static, str> {
        let role = address.role;
        match self {
            Self::Fixed(text) => text.into(),
            Self::Login if !address.has_login() => login(role).into(),
            Self::Login | Self::OtherLogin => other_login(role).into(),
            Self::Cluster => cluster(role, address.scheme()),
            Self::NoCluster => no_cluster(role, address.scheme()),
            Self::Primary => primary(role).into(),
        }
    }
}

fn login(role: ServerRole) -> &'static str {
    match role {
        ServerRole::Sentinel => {
            "the sentinel wants a login: put user and password into the url, for it and for the primary"
        }
        _ => "put user and password into the url",
    }
}

fn other_login(role: ServerRole) -> &'static str {
    match role {
        ServerRole::Server | ServerRole::Seed => "check user and password in the url",
        ServerRole::Node => "check user and password in the url: all nodes of the cluster have to take them",
        ServerRole::Primary => "check user and password in the url: they are those of the primary",
        ServerRole::Sentinel => {
            "check user and password in the url: a sentinel gets those of the primary, so set the same there, or none"
        }
    }
}

fn cluster(role: ServerRole, scheme: &str) -> Cow<'static, str> {
    match role {
        // The URL says already that it is a cluster.
        ServerRole::Seed | ServerRole::Node => "".into(),
        ServerRole::Server | ServerRole::Sentinel | ServerRole::Primary => {
            format!("the server is a node of a cluster: begin the url with `{scheme}+cluster://`").into()
        }
    }
}

fn no_cluster(role: ServerRole, scheme: &str) -> Cow<'static, str> {
    match role {
        ServerRole::Node => {
            "the server is not part of a cluster, and the nodes announce it: check what they announce".into()
        }
        _ => format!("the server is not part of a cluster: begin the url with `{scheme}://`").into(),
    }
}

fn primary(role: ServerRole) -> &'static str {
    match role {
        ServerRole::Server => "the server is a replica: the url has to lead to the primary",
        ServerRole::Sentinel | ServerRole::Primary => "the server is a replica: the sentinels will name the primary",
        ServerRole::Seed | ServerRole::Node => "the server is a replica: the nodes will say which one is the primary",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::redis::connection::address::Destination;

    const ALL: [Remedy; 5] = [Remedy::Login, Remedy::OtherLogin, Remedy::Cluster, Remedy::NoCluster, Remedy::Primary];

    /// Returns the advice for each server that this URL leads to.
    fn texts(url: &str) -> Vec<[String; 5]> {
        let addresses = match Destination::parse(url).unwrap() {
            Destination::Server(address) => vec![address],
            Destination::Primary { sentinels, address, .. } => vec![sentinels[0].clone(), address],
            Destination::Cluster { seeds, address } => vec![address.clone(), address.at_node(&seeds[0]).unwrap()],
        };
        addresses.iter().map(|address| ALL.map(|remedy| remedy.text(address).into_owned())).collect()
    }

    #[test]
    fn a_remedy_fits_the_server_and_what_the_url_says() {
        let put = "put user and password into the url";
        let check = "check user and password in the url";
        let server = "the server is not part of a cluster: begin the url with `redis://`";
        let cluster = "the server is a node of a cluster: begin the url with `redis+cluster://`";
        let starts = [
            ("redis://h", vec![[put, check, cluster, server, "the server is a replica: the url"]]),
            ("redis://:p@h", vec![[check, check, cluster, server, "the server is a replica: the url"]]),
            (
                "redis+sentinel://h/m",
                vec![
                    ["the sentinel wants a login: put", "check", cluster, server, "the server is a replica: the sent"],
                    [put, "check", cluster, server, "the server is a replica: the sentinels"],
                ],
            ),
            (
                "redis+cluster://:p@h",
                vec![
                    [check, check, "", server, "the server is a replica: the nodes"],
                    [
                        "check",
                        "check",
                        "",
                        "the server is not part of a cluster, and",
                        "the server is a replica: the n",
                    ],
                ],
            ),
        ];
        for (url, starts) in starts {
            let texts = texts(url);
            assert_eq!(texts.len(), starts.len());
            for (text, start) in texts.iter().flatten().zip(starts.iter().flatten()) {
                assert!(text.starts_with(start) && text.is_empty() == start.is_empty(), "{url}: {text}");
            }
        }
    }

    #[test]
    fn whose_login_is_mistaken_is_said() {
        for (url, words) in [
            ("redis+sentinel://u:p@h/m", ["a sentinel gets those of the primary", "they are those of the primary"]),
            ("redis+cluster://u:p@h", ["in the url", "all nodes of the cluster"]),
        ] {
            for (texts, words) in texts(url).iter().zip(words) {
                // A server that refuses a login asks for another one.
                assert!(texts[..2].iter().all(|text| text.contains(words)), "{texts:?}");
            }
        }
    }
}
