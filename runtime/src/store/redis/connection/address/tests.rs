use proptest::prelude::*;

use super::location::{Location, Target};
use super::*;
use ::redis::IntoConnectionInfo as _;

/// Returns the error. No other part of the address may be in it.
fn refused(url: &str) -> String {
    match Destination::parse(url) {
        Err(error) => error.to_string(),
        Ok(address) => panic!("{url} was read as {address}"),
    }
}

fn parsed(url: &str) -> Location {
    Location::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
}

fn host(name: &str, port: u16) -> Host {
    Host { name: name.to_owned(), port }
}

fn login(user: Option<&str>, password: &str) -> Login {
    Login { user: user.map(str::to_owned), password: password.to_owned() }
}

#[test]
fn a_url_names_a_server() {
    for (url, name, port, database) in [
        ("redis://localhost", "localhost", 6379, 0),
        ("redis://localhost/", "localhost", 6379, 0),
        ("redis://redis.example.com:7000", "redis.example.com", 7000, 0),
        ("redis://10.0.0.1:7000/15", "10.0.0.1", 7000, 15),
        ("REDIS://my_redis-1/3", "my_redis-1", 6379, 3),
        ("redis://[::1]/1", "::1", 6379, 1),
        ("redis://[2001:db8::7]:7000", "2001:db8::7", 7000, 0),
    ] {
        let Location { target, is_encrypted, login, database: found } = parsed(url);
        assert_eq!((target, is_encrypted, found), (Target::Server(host(name, port)), false, database), "{url}");
        assert_eq!(login, None);
    }
    assert!(parsed("rediss://localhost").is_encrypted);
}

#[test]
fn a_url_names_user_and_password() {
    for (text, user, password) in [
        ("alice:secret", Some("alice"), "secret"),
        (":secret", None, "secret"),
        ("alice:", Some("alice"), ""),
        ("alice:a:b@c", Some("alice"), "a:b@c"),
        ("al%69ce:%40%2F%3F%23%25", Some("alice"), "@/?#%"),
        ("alice:p%C3%A4ss", Some("alice"), "päss"),
        ("alice:päss", Some("alice"), "päss"),
    ] {
        for url in [format!("redis://{text}@host/2"), format!("redis+unix://{text}@/run/redis.sock?db=2")] {
            let location = parsed(&url);
            assert_eq!((location.login, location.database), (Some(login(user, password)), 2), "{url}");
        }
    }
    assert_eq!(parsed("redis://@host").login, None);
}

#[test]
fn a_url_names_a_socket() {
    let socket = |path: &str| Target::Socket(path.into());
    assert_eq!(parsed("redis+unix:///run/redis.sock").target, socket("/run/redis.sock"));
    assert_eq!(parsed("redis+unix:///run/our%20redis%40home").target, socket("/run/our redis@home"));
    assert_eq!(parsed("redis+unix:///run/redis.sock?db=7").database, 7);
}

#[test]
fn a_url_names_sentinels_and_the_primary_that_they_watch() {
    let Location { target, is_encrypted, login: found, database } =
        parsed("rediss+sentinel://alice:secret@s1,s2:5000,[::1]:5001/my%20master/4");
    let others = vec![host("s2", 5000), host("::1", 5001)];
    assert_eq!(target, Target::Primary { name: "my master".to_owned(), first: host("s1", 26379), others });
    assert_eq!((is_encrypted, found, database), (true, Some(login(Some("alice"), "secret")), 4));
    assert!(!parsed("redis+sentinel://s1/mymaster").is_encrypted);
}

#[test]
fn a_url_names_nodes_of_a_cluster() {
    let Location { target, is_encrypted, login: found, database } = parsed("redis+cluster://:secret@h1,h2:7000,h3/");
    assert_eq!(target, Target::Cluster { first: host("h1", 6379), others: vec![host("h2", 7000), host("h3", 6379)] });
    assert_eq!((is_encrypted, found, database), (false, Some(login(None, "secret")), 0));
    assert!(parsed("rediss+cluster://h1").is_encrypted);
}

#[test]
fn a_mistake_names_the_part_and_what_to_write() {
    for (url, words) in [
        ("", "no scheme; write `redis://"),
        ("localhost:6379", "no scheme; write `redis://"),
        ("me:secret@host://", "no scheme; write `redis://"),
        ("://host", "no scheme"),
        ("reddis://host", "unknown scheme `reddis`; did you mean `redis://`?"),
        ("valkey://host", "unknown scheme `valkey`; write `redis://host:port`"),
        ("redis+sentinels://host", "did you mean `redis+sentinel://`?"),
        ("redis://", "no host; write `redis://127.0.0.1:6379`"),
        ("redis://:6379", "no host"),
        ("redis://alice:secret@", "no host"),
        ("redis://my host", "host that is no name"),
        ("redis://h%C3%B6st", "host that is no name"),
        ("redis://0.0.0.0", "address to listen on; write `127.0.0.1`"),
        ("redis://[::]", "address to listen on"),
        ("redis://::1", "IPv6 address without brackets; write `redis://[::1]:6379`"),
        ("redis://[::1", "brackets that hold no IPv6 address"),
        ("redis://[host]", "brackets that hold no IPv6 address"),
        ("redis://[::1]6379", "brackets that hold no IPv6 address"),
        ("redis://host:", "port that is no number from 1 to 65535"),
        ("redis://host:0", "port that is no number"),
        ("redis://host:65536", "port that is no number"),
        ("redis://host:+80", "port that is no number"),
        ("redis://host:port", "port that is no number"),
        ("redis://host/zero", "database that is no number; write `redis://host:6379/0`"),
        ("redis://host/-1", "database that is no number"),
        ("redis://host/0/1", "database that is no number"),
        ("redis://host/4294967296", "database that is no number"),
        ("redis://h1,h2", "several hosts; write `redis+sentinel://"),
        ("redis://host?db=1", "settings behind a `?`"),
        ("redis://host/#insecure", "behind a `#`"),
        ("redis://alice@host", "user without a password; write `user:password@host`"),
        ("redis://alice:100%@host", "password that is not percent-encoded; write `%` as `%25`"),
        ("redis://al%zzice:x@host", "user that is not percent-encoded"),
        ("redis://alice:%FF@host", "password that is not percent-encoded"),
        ("redis://alice:se/cret@host", "an `@` behind the host; in user and password, write `/` as `%2F`"),
        ("redis://alice:se?cret@host", "an `@` behind the host"),
        ("redis://alice:se#cret@host", "an `@` behind the host"),
        ("redis+unix://run/redis.sock", "a Unix socket has a path only; write `redis+unix:///path`"),
        ("redis+unix://", "no path"),
        ("redis+unix:///", "no path"),
        ("redis+unix:///run/%zz", "no path"),
        ("redis+unix:///run/redis.sock?db=", "settings behind a `?` other than `db`"),
        ("redis+unix:///run/redis.sock?pass=secret", "user and password stand before the path"),
        ("redis+unix:///run/redis.sock?db=x", "database that is no number"),
        ("redis+sentinel://s1,s2", "which primary the sentinels watch; write its name behind the hosts"),
        ("redis+sentinel://s1,,s2/m", "no host"),
        ("redis+sentinel://s1/m/x", "database that is no number"),
        ("redis+cluster://h1/1", "a cluster has only one"),
        ("redis+cluster://h1:x,h2", "port that is no number"),
    ] {
        let text = refused(url);
        assert!(text.starts_with("`url` ") && text.contains(words), "{url}: {text}");
    }
}

#[cfg(not(feature = "tls"))]
#[test]
fn a_url_that_asks_for_tls_says_which_feature_it_needs() {
    assert!(refused("rediss://host").contains("enable the feature `tls`"));
}

#[test]
fn connections_notice_when_the_other_end_is_gone() {
    let settings_of =
        |destination: &Destination| destination.address().client.get_connection_info().tcp_settings().clone();
    let usual = settings_of(&Destination::parse("redis://host").unwrap());
    assert!(usual.nodelay() && usual.keepalive().is_some());
    #[cfg(target_os = "linux")]
    assert_eq!(usual.user_timeout(), Some(UNACKNOWLEDGED));

    let own = TcpSettings::default().set_keepalive(TcpKeepalive::new().with_time(Duration::from_secs(77)));
    #[cfg(target_os = "linux")]
    let own = own.set_user_timeout(Duration::from_secs(78));
    let info = "redis://host".into_connection_info().unwrap().set_tcp_settings(own);
    let kept = settings_of(&Destination::of_client(&Client::open(info).unwrap()).unwrap());
    assert!(kept.nodelay() && format!("{:?}", kept.keepalive()).contains("77"));
    #[cfg(target_os = "linux")]
    assert_eq!(kept.user_timeout(), Some(Duration::from_secs(78)));
}

const CANARY: &str = "canary7391";

fn piece() -> impl Strategy<Value = String> {
    let marks = ":/?#@[],%&=+ \u{e9}\\.0x";
    prop::collection::vec(prop::sample::select(marks.chars().collect::<Vec<_>>()), 0..5)
        .prop_map(|letters| letters.into_iter().collect())
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(url in ".{0,40}", scheme in 0..7_usize, rest in "[a-c0:/?#@,%\\[\\]]{0,30}") {
        let schemes = ["redis", "rediss", "redis+unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "x"];
        for text in [url, format!("{}://{rest}", schemes[scheme])] {
            let _ = Destination::parse(&text);
        }
    }

    /// However a password is mistyped, an error does not show it, and an address shows only host and port.
    #[test]
    fn no_address_shows_its_password(
        scheme in prop::sample::select(vec!["redis", "rediss", "redis+unix", "redis+sentinel", "redis+cluster", "reddis"]),
        before in piece(),
        after in piece(),
        user in prop::sample::select(vec!["", "alice"]),
        tail in prop::sample::select(vec!["host", "host:7000/1", "h1,h2/m", "/run/redis.sock", "host:x", "host/x", ""]),
    ) {
        let url = format!("{scheme}://{user}:{before}{CANARY}{after}@{tail}");
        let shown = match Destination::parse(&url) {
            Ok(address) => format!("{address} {address:?}"),
            Err(error) => format!("{error} {error:?}"),
        };
        prop_assert!(!shown.contains(CANARY), "{url}: {shown}");
        if let Ok(location) = Location::parse(&url) {
            prop_assert!(!format!("{location:?}").contains(CANARY), "{location:?}");
        }
    }
}

#[test]
fn many_names_are_counted() {
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    let shown = [0, 1, 5, 7].map(|length| ShortList(&names[..length]).to_string());
    assert_eq!(shown, ["", "a", "a, b, c, d, e", "a, b, c, d, e and 2 more"]);
}
