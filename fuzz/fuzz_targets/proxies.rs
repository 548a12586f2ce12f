//! What proxies add to their fields is read, whatever a client has written before it.

#![no_main]

// Only what finds the entries: the whole runtime would take minutes to build.
#[allow(dead_code)]
#[path = "../../runtime/src/address.rs"]
mod address;
#[allow(dead_code)]
#[path = "../../runtime/src/web/client_ip/entries.rs"]
mod entries;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use entries::{forwarded, x_forwarded_for};

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 9));
const PROXY: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x17));

libfuzzer_sys::fuzz_target!(|written: &[u8]| {
    let elements = r#"For="203\.0.113.9:_p";host="a\",for=192.0.2.1;\\", host=",;";for="[2001:db8::17]:443""#;
    let found = |lines: &[&[u8]]| forwarded(lines).collect::<Vec<_>>();
    check(written, elements.as_bytes(), &found);
    let found = |lines: &[&[u8]]| x_forwarded_for(lines).collect::<Vec<_>>();
    check(written, b"203.0.113.9:_p, [2001:db8::17]:443", &found);
});

/// Checks what proxies have added on the line of the client, and on one of their own.
fn check(written: &[u8], added: &[u8], found: &dyn Fn(&[&[u8]]) -> Vec<Option<IpAddr>>) {
    let commas = written.iter().filter(|&&byte| byte == b',').count();
    let on_one_line = [written, b", ", added].concat();
    for lines in [&[&on_one_line[..]][..], &[written, added]] {
        let found = found(lines);
        assert_eq!(found.get(..2), Some(&[Some(PROXY), Some(CLIENT)][..]));
        assert!(found.len() <= commas + 3, "each comma stands between two entries at most");
    }
}
