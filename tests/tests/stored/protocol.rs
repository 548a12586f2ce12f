//! The requests and replies of the script, as its header defines them.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use redis::Connection;
use tallygate::{BackendError, Limiter, Policy, Rule, Subject};
use tallygate_harness::clocked::START_US;
use tallygate_harness::server::{Server, ask, patient, refused};
use tallygate_harness::stored::calls;
use tallygate_lua::{
    ADMITTED, DECIDE, DUPLICATE, ENTRY_BYTES, INTEGER_BYTES, NEVER, PROTOCOL, REPLY_FIELDS, SLIDING_WINDOW, UNREADABLE,
    at_callers_time,
};

fn policy<const N: usize>(rules: [(u64, u64); N]) -> Policy {
    let rules = rules.map(|(count, per)| Rule::sliding_window(count, Duration::from_secs(per)));
    Policy::builder("p").rules(rules).build().unwrap()
}

async fn call(limiter: &Limiter, policy: &Policy) -> Result<bool, BackendError> {
    limiter.check(policy, &Subject::of("s")).await.map(|decision| decision.is_allowed())
}

/// Says what clients asked a server, from one marker to the next.
struct Monitor(BufReader<TcpStream>);

impl Monitor {
    fn start(server: &Server) -> Self {
        let mut socket = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        socket.write_all(b"MONITOR\r\n").unwrap();
        let mut monitor = Self(BufReader::new(socket));
        assert_eq!(monitor.line(), "+OK");
        monitor
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// The commands that clients sent since the last time, without those of scripts.
    fn commands(&mut self, connection: &mut Connection) -> Vec<String> {
        let _: () = ask(connection, "ECHO marker");
        let mut commands = Vec::new();
        loop {
            let line = self.line();
            if line.contains("\"ECHO\" \"marker\"") {
                return commands;
            }
            // Overrides are read once a second, whatever is decided meanwhile.
            if !line.contains(" lua] ") && !line.contains(":!overrides\"") {
                commands.push(line.split_once("] ").unwrap().1.to_owned());
            }
        }
    }
}

#[tokio::test]
async fn a_call_is_one_command() {
    let server = Server::start();
    let (limiter, mut connection) = (server.limiter().await, server.connection());
    let policy = policy([(2, 60), (3, 3_600)]);
    let mut monitor = Monitor::start(&server);
    assert!(call(&limiter, &policy).await.unwrap());
    let first = monitor.commands(&mut connection);
    assert!(first.len() == 2 && first[0].starts_with("\"EVALSHA\"") && first[1].starts_with("\"EVAL\""), "{first:?}");
    for _ in 0..5 {
        let _ = call(&limiter, &policy).await.unwrap();
        let commands = monitor.commands(&mut connection);
        assert_eq!(commands.len(), 1, "{commands:?}");
        let words: Vec<_> = commands[0].split(' ').collect();
        assert_eq!((words[0], &words[2..4]), ("\"EVALSHA\"", &["\"1\"", "\"tallygate:p/w1h:s\""][..]));
    }
}

#[tokio::test]
async fn a_user_who_may_not_write_is_not_admitted() {
    let server = Server::start();
    let mut connection = server.connection();
    let _: () = ask(&mut connection, "ACL SETUSER reader on >pass ~* +@all -append -set");
    let url = format!("redis://reader:pass@127.0.0.1:{}/", server.port());
    let refused = refused(&patient(), &url).await;
    assert!(refused.to_string().contains("permissions"), "{refused}");
    let limiter = patient().connect_lazy(&url).unwrap();
    assert!(call(&limiter, &policy([(1, 60)])).await.is_err());
    assert_eq!(ask::<u64>(&mut connection, "DBSIZE"), 0);
}

const MINUTE: i64 = 60_000_000;

/// A server that the script is asked on directly, as its header says.
struct Asked {
    connection: Connection,
    text: String,
    _server: Server,
}

impl Asked {
    fn start() -> Self {
        let server = Server::start();
        Self { connection: server.connection(), text: at_callers_time(DECIDE), _server: server }
    }

    fn ask(&mut self, keys: &[&str], version: &str, requests: &[Vec<u8>]) -> redis::RedisResult<Vec<u8>> {
        let mut command = redis::cmd("EVAL");
        command.arg(&self.text).arg(keys.len()).arg(keys).arg(version);
        for request in requests {
            command.arg(request);
        }
        command.arg(START_US).query(&mut self.connection)
    }

    /// The code and the time to wait of each answer.
    fn answers(&mut self, keys: &[&str], requests: &[Vec<u8>]) -> Vec<(i64, i64)> {
        let reply = self.ask(keys, PROTOCOL, requests).unwrap();
        let answers = reply.chunks_exact(REPLY_FIELDS * INTEGER_BYTES);
        assert!(answers.remainder().is_empty(), "{reply:?}");
        answers.map(answer).collect()
    }

    /// The weight of all calls that a tally has counted.
    fn weight(&mut self, key: &str) -> u32 {
        let log: Vec<u8> = ask(&mut self.connection, &format!("GETRANGE {key} 0 -1"));
        calls(&log).iter().map(|(_, weight)| weight).sum()
    }
}

fn answer(packed: &[u8]) -> (i64, i64) {
    let mut integers = packed.chunks_exact(INTEGER_BYTES).map(|integer| {
        let bits = integer.iter().fold(0, |bits, &byte| bits << 8 | i64::from(byte));
        bits << 8 >> 8
    });
    assert_eq!(integers.next(), i64::try_from(START_US).ok());
    (integers.next().unwrap(), integers.next().unwrap())
}

type Rule3 = (u8, u64, i64);

/// Seven bytes, big endian.
fn integer(number: impl TryInto<u64>) -> Vec<u8> {
    number.try_into().ok().unwrap().to_be_bytes()[1..].to_vec()
}

/// Packs a request as the script's header says, for subjects that only sliding windows count.
fn request(cost: u64, subjects: &[&[Rule3]]) -> Vec<u8> {
    let mut packed = vec![u8::try_from(subjects.len()).unwrap(), 0];
    packed.extend(integer(cost));
    for rules in subjects {
        let (largest, longest) = (rules.iter().map(|rule| rule.1).max(), rules.iter().map(|rule| rule.2).max());
        packed.extend([u8::try_from(rules.len()).unwrap(), 0, 0, 0, 0]);
        packed.extend(u32::try_from(largest.unwrap()).unwrap().to_be_bytes());
        packed.extend(integer(longest.unwrap()));
        packed.extend(10_000_u32.to_be_bytes());
        let want = u16::try_from(ENTRY_BYTES).unwrap() * (u16::try_from(largest.unwrap()).unwrap().max(2) + 1);
        packed.extend(want.to_be_bytes());
        let ttl_ms = longest.unwrap() * 2 / 1_000;
        packed.extend(format!("-{want}\0{ttl_ms}\0").as_bytes());
        for &(kind, count, window_us) in *rules {
            packed.push(kind);
            packed.extend(integer(count));
            packed.extend(integer(window_us));
        }
    }
    packed
}

#[tokio::test]
async fn a_request_of_another_version_is_refused_by_name() {
    let mut script = Asked::start();
    let request = request(1, &[&[(SLIDING_WINDOW, 1, MINUTE)]]);
    for version in ["0", "6", "8", "x"] {
        let error = script.ask(&["k"], version, std::slice::from_ref(&request)).unwrap_err();
        assert_eq!(error.code(), Some("TALLYGATE"), "{error}");
        assert!(error.to_string().contains(&format!("not {version}")), "{error}");
    }
    assert_eq!(script.weight("k"), 0);
    assert_eq!(script.answers(&["k"], &[request]), [(ADMITTED, 0)]);
}

#[tokio::test]
async fn an_unknown_algorithm_is_refused_by_name() {
    let mut script = Asked::start();
    let error = script.ask(&["k"], PROTOCOL, &[request(1, &[&[(b'?', 1, MINUTE)]])]).unwrap_err();
    assert!(error.to_string().contains("no algorithm ?"), "{error}");
}

#[tokio::test]
async fn a_cost_weighs_as_much_as_so_many_calls() {
    let mut script = Asked::start();
    let limit = |cost| [request(cost, &[&[(SLIDING_WINDOW, 10, MINUTE)]])];
    assert_eq!(script.answers(&["k"], &limit(7)), [(ADMITTED, 0)]);
    assert_eq!(script.answers(&["k"], &limit(4)), [(0, MINUTE)]);
    assert_eq!(script.answers(&["k"], &limit(11)), [(0, NEVER)]);
    assert_eq!(script.answers(&["k"], &limit(3)), [(ADMITTED, 0)]);
    assert_eq!(script.weight("k"), 10);
}

#[tokio::test]
async fn a_duplicate_weighs_calls_and_not_their_cost() {
    let mut script = Asked::start();
    let request = [request(5, &[&[(DUPLICATE, 1, 5_000_000), (SLIDING_WINDOW, 10, MINUTE)]])];
    assert_eq!(script.answers(&["k"], &request), [(ADMITTED, 0)]);
    assert_eq!(script.answers(&["k"], &request), [(0, 5_000_000)]);
}

#[tokio::test]
async fn subjects_of_one_request_are_charged_together_or_not_at_all() {
    let mut script = Asked::start();
    let both = [request(1, &[&[(SLIDING_WINDOW, 5, MINUTE)], &[(SLIDING_WINDOW, 2, 2 * MINUTE)]])];
    assert_eq!(script.answers(&["a", "b"], &both), [(ADMITTED, 0)]);
    assert_eq!(script.answers(&["c", "b"], &both), [(ADMITTED, 0)]);
    // Rules are counted across the subjects.
    assert_eq!(script.answers(&["a", "b"], &both), [(1, 2 * MINUTE)]);
    assert_eq!((script.weight("a"), script.weight("b"), script.weight("c")), (1, 2, 1));
}

#[tokio::test]
async fn a_subject_that_cannot_be_read_leaves_the_others_uncharged() {
    let mut script = Asked::start();
    let _: () = ask(&mut script.connection, "LPUSH b foreign");
    let rule: &[Rule3] = &[(SLIDING_WINDOW, 5, MINUTE)];
    assert!(script.ask(&["a", "b"], PROTOCOL, &[request(1, &[rule, rule])]).is_err());
    assert_eq!(script.weight("a"), 0);
}

#[tokio::test]
async fn a_tally_that_cannot_be_read_fails_its_own_request_alone() {
    let mut script = Asked::start();
    let _: () = ask(&mut script.connection, "LPUSH b foreign");
    let limit = request(1, &[&[(SLIDING_WINDOW, 1, MINUTE)]]);
    let answers = script.answers(&["a", "b", "a"], &[limit.clone(), limit.clone(), limit]);
    assert_eq!(answers, [(ADMITTED, 0), (UNREADABLE, 0), (0, MINUTE)]);
}

#[tokio::test]
async fn requests_of_one_call_are_decided_in_turn_and_apart() {
    let mut script = Asked::start();
    let limit = request(1, &[&[(SLIDING_WINDOW, 1, MINUTE)]]);
    let answers = script.answers(&["a", "a", "b"], &[limit.clone(), limit.clone(), limit]);
    assert_eq!(answers, [(ADMITTED, 0), (0, MINUTE), (ADMITTED, 0)]);
}
