//! Commands that change something, while the server goes away before each of their requests.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tallygate::Subject;
use tallygate_harness::server::{Server, connected, patient};

use crate::console::{Console, Printed};
use crate::seeded::{CALLER, Seeded, sms};

/// What an error says after which something may be changed.
const MAY_BE_CHANGED: &str = "part of it may have been changed already, and the command can be repeated";

/// A proxy in front of a server, through which so many requests pass and no more.
struct Bounded {
    url: String,
    asked: Arc<AtomicUsize>,
}

impl Bounded {
    fn start(port: u16, passes: usize) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("redis://{}/", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap());
                let (requests, counter) =
                    ((client.try_clone().unwrap(), server.try_clone().unwrap()), Arc::clone(&counter));
                thread::spawn(move || {
                    relay(requests.0, requests.1, || counter.fetch_add(1, Ordering::SeqCst) < passes);
                });
                thread::spawn(move || relay(server, client, || true));
            }
        });
        Self { url, asked }
    }

    /// How many requests there were, those included that did not pass.
    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

/// Passes on what comes until one end closes, or something may not pass.
fn relay(mut from: TcpStream, mut to: TcpStream, passes: impl Fn() -> bool) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        if !passes() || to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// All keys of a server, and what is stored there, in the form that restores it.
fn dumps(server: &Server) -> BTreeMap<String, Vec<u8>> {
    let keys: Vec<String> = server.ask("KEYS *");
    let dump = |key: String| {
        let value = redis::cmd("DUMP").arg(&key).query(&mut server.connection()).unwrap();
        (key, value)
    };
    keys.into_iter().map(dump).collect()
}

/// What is stored, in a form that does not depend on the order in which the fields of a hash happen to be.
fn stored(server: &Server) -> BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>> {
    let fields = |(key, dump): (String, Vec<u8>)| {
        let kind: String = server.ask(&format!("TYPE {key}"));
        let fields = if kind == "hash" { server.ask(&format!("HGETALL {key}")) } else { [(Vec::new(), dump)].into() };
        (key, fields)
    };
    dumps(server).into_iter().map(fields).collect()
}

fn restore(server: &Server, dumps: &BTreeMap<String, Vec<u8>>) {
    server.ask::<()>("FLUSHALL");
    for (key, value) in dumps {
        redis::cmd("RESTORE").arg(key).arg(0).arg(value).exec(&mut server.connection()).unwrap();
    }
}

/// Runs a command while the server goes away before its first request, before its second, and so on until it is done. Returns
/// what was printed where the server was changed, and went away then. What is stored is as before in the end.
fn interrupted(seeded: &Seeded, words: &[&str]) -> Vec<Printed> {
    let (dumps, before) = (dumps(&seeded.server), stored(&seeded.server));
    let mut changed = Vec::new();
    for passes in 0..100 {
        restore(&seeded.server, &dumps);
        let proxy = Bounded::start(seeded.server.port(), passes);
        let printed = Console { url: &proxy.url, ..seeded.console() }.run_words(words);
        if proxy.asked() <= passes {
            printed.expect(0);
            restore(&seeded.server, &dumps);
            return changed;
        }
        if stored(&seeded.server) == before {
            assert_eq!(printed.code, 3, "{printed:?}");
        } else {
            changed.push(printed);
        }
    }
    panic!("{words:?} asks without end");
}

/// Checks that a command has failed each time, and said what that means.
fn assert_explained(interrupted: &[Printed]) {
    assert!(!interrupted.is_empty());
    for printed in interrupted {
        assert_eq!(printed.code, 3, "{printed:?}");
        assert!(printed.errors.trim_end().ends_with(MAY_BE_CHANGED) && printed.out.is_empty(), "{printed:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_that_is_in_force_is_no_failure_although_it_cannot_be_read_again() {
    let seeded = Seeded::start().await;
    let words = ["override", "sms.send", "2 per 1m", "--rule", "0", "--for", "2h", "--yes"];
    let (done, failed): (Vec<_>, Vec<_>) = interrupted(&seeded, &words).into_iter().partition(|one| one.code == 0);
    assert!(!done.is_empty());
    for printed in done {
        assert_eq!(printed.out, "sms.send is overridden: 0 = 2 per 1m for 2h\n");
        assert!(printed.errors.is_empty(), "{printed:?}");
    }
    // Where the change itself was not answered.
    assert_explained(&failed);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_that_could_not_be_read_again_has_no_rules_in_json() {
    let seeded = Seeded::start().await;
    let words = ["override", "sms.send", "2 per 1m", "--for", "2h", "--yes", "--json"];
    let changed = interrupted(&seeded, &words);
    let done = changed.iter().find(|printed| printed.code == 0).expect("one is in force and cannot be read");
    let set = &done.json()["set"];
    assert_eq!((&set["policy"], &set["expires_in_ms"]), (&"sms.send".into(), &7_200_000.into()));
    assert!(set["rules"].is_null(), "{set}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_and_a_ban_that_are_interrupted_say_that_a_part_may_be_done() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    // The overrides have tallies of their own, beside those of the policies.
    console.run_words(&["override", "sms.send", "2 per 2h", "--yes"]).expect(0);
    console.run_words(&["override", "login", "5 per 2h", "--yes"]).expect(0);
    // One that lists nothing meanwhile.
    let fleet = connected(&patient(), console.url).await;
    assert!(fleet.check(&sms(), &Subject::of("sms").and(CALLER)).await.unwrap().is_allowed());
    for words in [&["reset", "sms.send", CALLER, "--yes"][..], &["reset", "sms.send", CALLER, "--all", "--yes"]] {
        assert_explained(&interrupted(&seeded, words));
    }
    assert_explained(&interrupted(&seeded, &["ban", "login", "alice", "--yes"]));
    console.run("ban login alice --yes").expect(0);
    assert_explained(&interrupted(&seeded, &["unban", "login", "alice", "--yes"]));
}
