//! The clients that are found for sockets and fields: one table for each kind of trust.

use super::{ClientIp, ClientIpSource};

/// The client, for a socket's address (`-` for none) and the lines of the field.
fn found(source: &ClientIpSource, peer: &str, lines: &[&str]) -> String {
    let client = source.resolve(peer.parse().ok(), lines.iter().map(|line| line.as_bytes()));
    client.map_or("-".to_owned(), |client| client.to_string())
}

fn assert_all(source: &ClientIpSource, vectors: &[(&str, &[&str], &str)]) {
    for (peer, lines, client) in vectors {
        assert_eq!(found(source, peer, lines), *client, "{peer}, {lines:?}, {source:?}");
    }
}

fn proxies() -> ClientIpSource {
    ClientIp::behind(["10.0.0.0/8", "fd00::/8", "192.0.2.7"]).unwrap()
}

#[test]
fn without_proxies_the_client_is_the_socket_whatever_the_fields_say() {
    assert_all(
        &ClientIp::socket(),
        &[
            ("203.0.113.9", &[], "203.0.113.9"),
            ("203.0.113.9", &["198.51.100.1"], "203.0.113.9"),
            ("203.0.113.9", &["for=198.51.100.1"], "203.0.113.9"),
            ("127.0.0.1", &["198.51.100.1"], "127.0.0.1"),
            ("-", &["198.51.100.1"], "-"),
            // IPv4 within IPv6: mapped, and by NAT64.
            ("::ffff:203.0.113.9", &[], "203.0.113.9"),
            ("64:ff9b::203.0.113.9", &[], "203.0.113.9"),
            // By a local translator, and through a tunnel.
            ("64:ff9b:1::cb00:7109", &[], "203.0.113.9"),
            ("2002:cb00:7109:ff::1", &[], "203.0.113.9"),
            // Not mapped.
            ("::203.0.113.9", &[], "::/64"),
            ("2001:db8:1:2:3:4:5:6", &[], "2001:db8:1:2::/64"),
            ("2001:db8:1:2::", &[], "2001:db8:1:2::/64"),
            ("fe80::1", &[], "fe80::/64"),
            ("::1", &[], "::/64"),
        ],
    );
    assert_eq!(ClientIp::socket().field(), None);
}

#[test]
fn behind_known_proxies_the_client_is_the_last_address_that_is_not_theirs() {
    let longest = "203.0.113.1,".repeat(100 * 1024 / 12);
    let long = format!("{longest} 198.51.100.1");
    let endless = "10.0.0.1,".repeat(100 * 1024 / 9);
    let zeros = "0".repeat(100 * 1024);
    assert_all(
        &proxies(),
        &[
            // One proxy, two, and one that is named alone.
            ("10.0.0.1", &["198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["198.51.100.1, 10.9.9.9"], "198.51.100.1"),
            ("192.0.2.7", &["198.51.100.1"], "198.51.100.1"),
            ("fd00::7", &["2001:db8::1, fd12::1"], "2001:db8::/64"),
            ("::ffff:10.0.0.1", &["198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["198.51.100.1, ::ffff:10.9.9.9"], "198.51.100.1"),
            // The socket is no proxy's, so the client wrote the field.
            ("203.0.113.9", &["198.51.100.1"], "203.0.113.9"),
            ("192.0.2.8", &["198.51.100.1, 10.0.0.1"], "192.0.2.8"),
            ("-", &["198.51.100.1"], "-"),
            // Forged: the client wrote the first entries, and the proxy added the last.
            ("10.0.0.1", &["1.1.1.1, 198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["10.1.1.1, 198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["127.0.0.1", "198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["garbage, 198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["\"", "198.51.100.1"], "198.51.100.1"),
            // Several lines are one list.
            ("10.0.0.1", &["1.1.1.1", "198.51.100.1", "10.2.2.2"], "198.51.100.1"),
            ("10.0.0.1", &["1.1.1.1, 198.51.100.1", "10.2.2.2,10.3.3.3"], "198.51.100.1"),
            // All addresses are proxies: the farthest one is the client.
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["10.2.2.2, 10.3.3.3"], "10.2.2.2"),
            // A text that is no address ends the walk at the last trusted proxy. Nothing before it counts.
            ("10.0.0.1", &[""], "10.0.0.1"),
            ("10.0.0.1", &[","], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1,"], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1", ""], "10.0.0.1"),
            ("10.0.0.1", &["unknown"], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1, unknown"], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1, -, 10.2.2.2"], "10.2.2.2"),
            ("10.0.0.1", &["198.51.100.1 198.51.100.2"], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100"], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.256"], "10.0.0.1"),
            ("10.0.0.1", &["198.051.100.001"], "10.0.0.1"),
            ("10.0.0.1", &["0x7f000001"], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1/32"], "10.0.0.1"),
            ("10.0.0.1", &["\"198.51.100.1\""], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.１"], "10.0.0.1"),
            ("10.0.0.1", &["\u{a0}198.51.100.1"], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1\0"], "10.0.0.1"),
            ("10.0.0.1", &["localhost"], "10.0.0.1"),
            // Ports, zones and brackets.
            ("10.0.0.1", &["198.51.100.1:443"], "198.51.100.1"),
            ("10.0.0.1", &["\t198.51.100.1 "], "198.51.100.1"),
            ("10.0.0.1", &["[2001:db8:1:2::7]:443"], "2001:db8:1:2::/64"),
            ("10.0.0.1", &["[2001:db8:1:2::7]"], "2001:db8:1:2::/64"),
            ("10.0.0.1", &["2001:db8:1:2::7"], "2001:db8:1:2::/64"),
            ("10.0.0.1", &["fe80::1%eth0"], "fe80::/64"),
            ("10.0.0.1", &["[fe80::1%25eth0]:443"], "fe80::/64"),
            ("10.0.0.1", &["[::ffff:198.51.100.1]:443"], "198.51.100.1"),
            ("10.0.0.1", &["64:ff9b::198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["198.51.100.1:_hidden"], "198.51.100.1"),
            ("10.0.0.1", &["198.51.100.1:"], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1:+80"], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1:65536"], "10.0.0.1"),
            ("10.0.0.1", &["[198.51.100.1]"], "10.0.0.1"),
            ("10.0.0.1", &["[2001:db8::7"], "10.0.0.1"),
            ("10.0.0.1", &["[2001:db8::7]443"], "10.0.0.1"),
            ("10.0.0.1", &["[2001:db8::7]]"], "10.0.0.1"),
            ("10.0.0.1", &["2001:db8::7%"], "10.0.0.1"),
            // Very long fields.
            ("10.0.0.1", &[&long], "198.51.100.1"),
            ("10.0.0.1", &[&longest], "10.0.0.1"),
            ("10.0.0.1", &[endless.trim_end_matches(',')], "10.0.0.1"),
            ("10.0.0.1", &[&zeros], "10.0.0.1"),
        ],
    );
    assert_eq!(proxies().field(), Some("x-forwarded-for"));
}

#[test]
fn bytes_that_are_no_text_are_no_address() {
    let client = proxies().resolve("10.0.0.1".parse().ok(), [&b"198.51.100.1, \xff\xfe"[..]]).unwrap();
    assert_eq!(client.to_string(), "10.0.0.1");
}

#[test]
fn the_standard_field_is_read_from_its_end_too() {
    let unclosed = format!("for=\"{}", "x".repeat(100 * 1024));
    assert_all(
        &proxies().forwarded(),
        &[
            ("10.0.0.1", &["for=198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["For=198.51.100.1;proto=https;by=10.0.0.1"], "198.51.100.1"),
            ("10.0.0.1", &["proto=https; for=\"198.51.100.1:443\""], "198.51.100.1"),
            ("10.0.0.1", &["for=\"[2001:db8:1:2::7]:443\""], "2001:db8:1:2::/64"),
            ("10.0.0.1", &["for=\"[2001:db8:1:2::7]\", for=10.2.2.2"], "2001:db8:1:2::/64"),
            ("10.0.0.1", &["for=1.1.1.1, for=198.51.100.1", "for=10.2.2.2"], "198.51.100.1"),
            ("203.0.113.9", &["for=198.51.100.1"], "203.0.113.9"),
            ("10.0.0.1", &[], "10.0.0.1"),
            // This field has another form.
            ("10.0.0.1", &["198.51.100.1"], "10.0.0.1"),
            // Every form that the standard has: hidden ports, and backslashes in quoted strings.
            ("10.0.0.1", &["for=\"[2001:db8:1:2::17]:_p\""], "2001:db8:1:2::/64"),
            ("10.0.0.1", &["for=\"198.51.100.1:_sec-ret.1\""], "198.51.100.1"),
            ("10.0.0.1", &["For=\"[2001:db8:cafe::17]:4711\""], "2001:db8:cafe::/64"),
            ("10.0.0.1", &["for=198.51.100.60;proto=http;by=203.0.113.43"], "198.51.100.60"),
            ("10.0.0.1", &["for=192.0.2.7, for=198.51.100.17"], "198.51.100.17"),
            ("10.0.0.1", &["for=198.51.100.17, for=192.0.2.7", "for=10.2.2.2"], "198.51.100.17"),
            ("10.0.0.1", &["for=\"198.51.100\\.1\""], "198.51.100.1"),
            ("10.0.0.1", &["for=198.51.100.1;host=\"a\\\\\""], "198.51.100.1"),
            ("10.0.0.1", &["host=\"a\\\"b\";for=198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["for=198.51.100.1:443;"], "198.51.100.1"),
            // Hidden, unknown, missing, twice, no pair, no value.
            ("10.0.0.1", &["for=unknown"], "10.0.0.1"),
            ("10.0.0.1", &["for=198.51.100.1:_"], "10.0.0.1"),
            ("10.0.0.1", &["for=198.51.100.1 proto=http"], "10.0.0.1"),
            ("10.0.0.1", &["for=\"198.51.100.1\"x"], "10.0.0.1"),
            ("10.0.0.1", &["for=198.51.100.1;x"], "10.0.0.1"),
            ("10.0.0.1", &["for=_hidden"], "10.0.0.1"),
            ("10.0.0.1", &["for=\"_gazonk:8080\""], "10.0.0.1"),
            ("10.0.0.1", &["for="], "10.0.0.1"),
            ("10.0.0.1", &["for"], "10.0.0.1"),
            ("10.0.0.1", &[""], "10.0.0.1"),
            ("10.0.0.1", &["by=10.0.0.1;proto=https"], "10.0.0.1"),
            ("10.0.0.1", &["for=1.1.1.1;for=198.51.100.1"], "10.0.0.1"),
            ("10.0.0.1", &["for=198.51.100.1, for=unknown, for=10.2.2.2"], "10.2.2.2"),
            // Quotes that the client opens or closes cannot hide or replace what the proxy adds.
            ("10.0.0.1", &["for=\"1.1.1.1, for=198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["for=1.1.1.1\", for=198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["for=\"1.1.1.1", "for=198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["for=198.51.100.1;host=\"a,for=1.1.1.1\""], "198.51.100.1"),
            ("10.0.0.1", &["for=198.51.100.1;host=\"a\\\",for=1.1.1.1;b=\\\"c\""], "198.51.100.1"),
            ("10.0.0.1", &["for=1.1.1.1\\, for=198.51.100.1;host=\"a\""], "198.51.100.1"),
            ("10.0.0.1", &["for=\"1.1.1.1\\", "for=198.51.100.1;host=\"a\""], "198.51.100.1"),
            ("10.0.0.1", &["for=\"1.1.1.1\\\", for=\"198.51.100.1\""], "198.51.100.1"),
            ("10.0.0.1", &["for=198.51.100.1;host=\"a;for=1.1.1.1\""], "198.51.100.1"),
            ("10.0.0.1", &["for=\"198.51.100.1"], "10.0.0.1"),
            ("10.0.0.1", &[&unclosed], "10.0.0.1"),
        ],
    );
    assert_eq!(proxies().forwarded().field(), Some("forwarded"));
}

#[test]
fn the_examples_of_the_standard_are_read() {
    let [last, farthest] = [1, 9].map(|proxies| ClientIp::hops(proxies).unwrap().forwarded());
    let dense = "for=192.0.2.43,for=\"[2001:db8:cafe::17]\",for=unknown";
    let spaced = dense.replace(',', ", ");
    let longest = "for=192.0.2.43, for=198.51.100.17;by=203.0.113.60;proto=http;host=example.com";
    let examples: [(&[&str], &str, &str); 14] = [
        (&["for=\"_gazonk\""], "-", "-"),
        (&["For=\"[2001:db8:cafe::17]:4711\""], "2001:db8:cafe::/64", "2001:db8:cafe::/64"),
        (&["for=192.0.2.60;proto=http;by=203.0.113.43"], "192.0.2.60", "192.0.2.60"),
        (&["for=192.0.2.43, for=198.51.100.17"], "198.51.100.17", "192.0.2.43"),
        (&["for=\"192.0.2.43:47011\""], "192.0.2.43", "192.0.2.43"),
        (&["for=\"[2001:db8:cafe::17]:47011\""], "2001:db8:cafe::/64", "2001:db8:cafe::/64"),
        (&["for=_hidden, for=_SEVKISEK"], "-", "-"),
        (&[dense], "-", "-"),
        (&[&spaced], "-", "-"),
        (&["for=192.0.2.43", "for=\"[2001:db8:cafe::17]\", for=unknown"], "-", "-"),
        (&["for=192.0.2.43, for=\"[2001:db8:cafe::17]\""], "2001:db8:cafe::/64", "192.0.2.43"),
        (&["for=192.0.2.43", "for=\"[2001:db8:cafe::17]\""], "2001:db8:cafe::/64", "192.0.2.43"),
        (&["for=\"unknown:1234\""], "-", "-"),
        (&[longest], "198.51.100.17", "192.0.2.43"),
    ];
    for (lines, last_client, farthest_client) in examples {
        assert_all(&last, &[("-", lines, last_client)]);
        assert_all(&farthest, &[("-", lines, farthest_client)]);
    }
}

#[test]
fn behind_a_number_of_proxies_the_client_is_that_far_from_the_end() {
    let two = ClientIp::hops(2).unwrap();
    assert_all(
        &two,
        &[
            ("10.0.0.1", &["198.51.100.1, 203.0.113.9"], "198.51.100.1"),
            ("10.0.0.1", &["1.1.1.1, 198.51.100.1, 203.0.113.9"], "198.51.100.1"),
            ("10.0.0.1", &["1.1.1.1", "198.51.100.1", "203.0.113.9"], "198.51.100.1"),
            // A socket without an address, such as a Unix socket.
            ("-", &["198.51.100.1, 203.0.113.9"], "198.51.100.1"),
            // There are fewer entries than proxies, or an entry is no address: the last known address counts.
            ("10.0.0.1", &["203.0.113.9"], "203.0.113.9"),
            ("10.0.0.1", &["unknown, 203.0.113.9"], "203.0.113.9"),
            ("10.0.0.1", &["198.51.100.1, unknown"], "10.0.0.1"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("-", &[], "-"),
            ("-", &["unknown"], "-"),
        ],
    );
    assert_all(&ClientIp::hops(1).unwrap(), &[("10.0.0.1", &["1.1.1.1, 198.51.100.1"], "198.51.100.1")]);
    assert_all(&two.forwarded(), &[("-", &["for=198.51.100.1, for=203.0.113.9"], "198.51.100.1")]);
}

#[test]
fn a_field_of_a_network_of_proxies_counts_once_and_from_them_alone() {
    let source = proxies().header("CF-Connecting-IP").unwrap();
    assert_all(
        &source,
        &[
            ("10.0.0.1", &["198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &[" 2001:db8:1:2::7 "], "2001:db8:1:2::/64"),
            ("10.0.0.1", &["[2001:db8:1:2::7%eth0]:_p"], "2001:db8:1:2::/64"),
            ("10.0.0.1", &["198.51.100.1:443"], "198.51.100.1"),
            ("10.0.0.1", &["198.51.100.1,"], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1", ""], "10.0.0.1"),
            ("203.0.113.9", &["198.51.100.1"], "203.0.113.9"),
            ("10.0.0.1", &["198.51.100.1", "1.1.1.1"], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1, 1.1.1.1"], "10.0.0.1"),
            ("10.0.0.1", &["unknown"], "10.0.0.1"),
            ("10.0.0.1", &[""], "10.0.0.1"),
            ("10.0.0.1", &[], "10.0.0.1"),
        ],
    );
    assert_eq!(source.field(), Some("cf-connecting-ip"));
}

#[test]
fn the_network_of_an_ipv6_client_is_as_long_as_it_is_set() {
    let shown = |bits| found(&ClientIp::socket().ipv6_prefix(bits).unwrap(), "2001:db8:aabb:ccdd:1:2:3:4", &[]);
    assert_eq!(shown(32), "2001:db8::/32");
    assert_eq!(shown(56), "2001:db8:aabb:cc00::/56");
    assert_eq!(shown(127), "2001:db8:aabb:ccdd:1:2:3:4/127");
    assert_eq!(shown(128), "2001:db8:aabb:ccdd:1:2:3:4");
    assert_eq!(shown(1), "::/1");
    assert_eq!(found(&ClientIp::socket().ipv6_prefix(1).unwrap(), "203.0.113.9", &[]), "203.0.113.9");
}

#[test]
fn a_source_that_cannot_be_used_says_what_to_write() {
    let mistake = |source: Result<ClientIpSource, crate::Error>| source.unwrap_err().to_string();
    assert!(mistake(ClientIp::behind([""; 0])).starts_with("`behind` needs a network of proxies"));
    assert!(mistake(ClientIp::behind(["10.0.0.0/33"])).starts_with("`behind`: `10.0.0.0/33` is no network; write one"));
    assert!(mistake(ClientIp::behind(["proxy.local"])).contains("is no network"));
    assert!(mistake(ClientIp::behind(["::ffff:10.0.0.0/104"])).contains("write it as IPv4, like `10.0.0.0/8`"));
    assert!(mistake(ClientIp::behind(["64:ff9b::10.0.0.0/104"])).contains("write it as IPv4, like `10.0.0.0/8`"));
    for everybody in ["0.0.0.0/0", "::/0", "10.0.0.1/0"] {
        let mistake = mistake(ClientIp::behind(["10.0.0.0/8", everybody]));
        assert_eq!(mistake, format!("`behind`: `{everybody}` trusts everybody; list your proxies, or use `hops`"));
    }
    assert!(mistake(ClientIp::hops(0)).starts_with("`hops` must be at least 1"));
    assert!(mistake(ClientIp::socket().ipv6_prefix(0)).starts_with("`ipv6_prefix` must be from 1 to 128 bits"));
    assert!(mistake(ClientIp::socket().ipv6_prefix(129)).starts_with("`ipv6_prefix` must be from 1 to 128 bits"));
    assert!(mistake(proxies().header("x real ip")).contains("`x real ip` is none"));
    assert!(ClientIp::behind(["10.1.2.3/8"]).is_ok());
}

#[test]
fn debug_output_leaves_out_the_address() {
    let client = proxies().resolve("203.0.113.9".parse().ok(), []);
    assert_eq!(format!("{client:?}"), "Some(ClientIp { .. })");
}
