//! Commands at random.

use fastrand::Rng;

use crate::twin::{Words, split};

/// Commands, in which a letter in braces stands for a word of that kind.
const COMMANDS: &[&str] = &[
    "GET {k}",
    "STRLEN {k}",
    "GETRANGE {k} {i} {i}",
    "APPEND {k} {v}",
    "SETRANGE {k} {o} {v}",
    "SET {k} {v}",
    "SET {k} {v} PX {t}",
    "SET {k} {v} EX {e}",
    "SET {k} {v} NX",
    "SET {k} {v} XX KEEPTTL",
    "SET {k} {v} XX GET",
    "SET {k} {v} PX {t} NX",
    "SET {k} {v} PXAT {p}",
    "SET {k} {v} EXAT 4000000000",
    "set {k} {v} keepttl",
    "SET {k} {v} GET",
    "DEL {k}",
    "DEL {k} {k}",
    "UNLINK {k}",
    "EXISTS {k} {k}",
    "TYPE {k}",
    "PEXPIRE {k} {t}",
    "EXPIRE {k} {e}",
    "PEXPIREAT {k} {p}",
    "PEXPIREAT {k} 1",
    "PTTL {k}",
    "TTL {k}",
    "PERSIST {k}",
    "DBSIZE",
    "KEYS *",
    "KEYS {k}*",
    "KEYS [a-h]?",
    "SCAN 0 COUNT 1000",
    "SCAN 0 MATCH s* COUNT 1000",
    "SCAN 0 COUNT 1000 TYPE hash",
    "HSET {k} {m} {v}",
    "HSET {k} {m} {v} {m} {v}",
    "HGET {k} {m}",
    "HMGET {k} {m} {m}",
    "HDEL {k} {m}",
    "HDEL {k} {m} {m}",
    "HLEN {k}",
    "HEXISTS {k} {m}",
    "HGETALL {k}",
    "HKEYS {k}",
    "HSCAN {k} 0 COUNT 1000",
    "HSCAN {k} 0 MATCH *1 COUNT 1000",
    "ZADD {k} {s} {m}",
    "ZADD {k} {s} {m} {s} {m}",
    "ZADD {k} NX {s} {m}",
    "ZADD {k} XX CH {s} {m}",
    "ZADD {k} GT {s} {m}",
    "ZADD {k} LT CH {s} {m}",
    "ZADD {k} INCR {s} {m}",
    "ZADD {k} XX INCR {s} {m}",
    "ZREM {k} {m} {m}",
    "ZCARD {k}",
    "ZSCORE {k} {m}",
    "ZINCRBY {k} {s} {m}",
    "ZCOUNT {k} {s} {s}",
    "ZCOUNT {k} ({s} +inf",
    "ZRANGE {k} {i} {i}",
    "ZRANGE {k} {i} {i} WITHSCORES",
    "ZREVRANGE {k} {i} {i} WITHSCORES",
    "ZRANGEBYSCORE {k} {s} {s} WITHSCORES",
    "ZRANGEBYSCORE {k} -inf ({s} LIMIT {i} {i}",
    "ZREVRANGEBYSCORE {k} +inf {s} WITHSCORES LIMIT 0 {i}",
    "ZREMRANGEBYRANK {k} {i} {i}",
    "ZREMRANGEBYSCORE {k} {s} {s}",
    "EVAL {l} 1 {k} {v} {m}",
    "EVAL {l} 2 {k} {k} {m} {s}",
    "EVAL {l} 1 {k} {i} {i}",
    "EVAL {l} {i} {k}",
    "PING",
    "PING {v}",
    "ECHO {v}",
    "SELECT {i}",
    "EVALSHA 0000000000000000000000000000000000000000 0",
    "SCRIPT EXISTS {v} {v}",
    "WAIT 0 {i}",
    "CLIENT SETNAME {m}",
    "CLIENT GETNAME",
    "ROLE",
    "FLUSHDB",
    "PUBLISH {m} {v}",
    "CONFIG GET maxmemory",
];

/// Scripts for one key or more.
const SCRIPTS: &[&str] = &[
    "return redis.call('GET', KEYS[1])",
    "return redis.call('SET', KEYS[1], ARGV[1])",
    "return redis.call('SET', KEYS[1], ARGV[1], 'PX', 7200000)",
    "return redis.pcall('APPEND', KEYS[1], ARGV[1])",
    "return redis.call('GETRANGE', KEYS[1], ARGV[1], ARGV[2])",
    "return redis.call('HSET', KEYS[1], ARGV[2], ARGV[1])",
    "return #redis.call('HGETALL', KEYS[1])",
    "return redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])",
    "return redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')",
    "return redis.call('ZINCRBY', KEYS[1], 1 / 3, ARGV[1])",
    "return redis.pcall('ZSCORE', KEYS[1], ARGV[1])",
    "return redis.call('TYPE', KEYS[1])",
    "return { redis.call('EXISTS', KEYS[1]), KEYS, ARGV, #ARGV, 1.9, -1.9, true, 'x', false, 'not last', nil, 'never' }",
    "return { redis.call('TYPE', KEYS[1]), redis.status_reply('fine'), { ok = 'done' }, { err = 'BAD luck' } }",
    "return redis.call('SET', KEYS[1], 1e15) and redis.call('GET', KEYS[1])",
    "return redis.call('SET', KEYS[1], 2 ^ 53 + 0.5) and redis.call('GET', KEYS[1]) .. ' ' .. 2 ^ 53",
    "return redis.call('SET', KEYS[1], 0.1) and redis.call('APPEND', KEYS[1], -1e20)",
    "redis.call('SET', KEYS[1], 'written') error('gone wrong')",
    "redis.call('SET', KEYS[1], 'written') return redis.call('HGET', KEYS[1], 'f')",
    "local x = redis.pcall('HGET', KEYS[1], 'f') if type(x) == 'table' then return x.err end return x",
    "local done, what = pcall(redis.call, 'HGET', KEYS[1], 'f') return { tostring(done), tostring(what) }",
    "local done, what = pcall(function() return 1 + {} end) return { tostring(done), what }",
    "return redis.call('GET')",
    "return redis.call('NOTHING', KEYS[1])",
    "return redis.pcall('EVAL', 'return 1', 0)",
    "return redis.call('GET', {})",
    "return redis.call()",
    "return missing",
    "made = 1",
    "return ARGV[1] + 1",
    "return string.rep('x', ARGV[1])",
    "local function deeper()\n  return redis.call('HGET')\nend\nreturn deeper()",
    "\n\nreturn redis.call('ZADD', KEYS[1], 'x', 'y')",
    "return redis.error_reply('MY error')",
    "return redis.error_reply('plain')",
    "return redis.sha1hex(ARGV[1])",
    "return struct.pack('>I7I4B', 1795299912000000, 4000000000, 255) .. struct.pack('>i7i7', -1, 7)",
    "return { struct.unpack('>I7I4Bs', struct.pack('>I7I4Bs', 1795299912000000, 4000000000, 255, 'text')) }",
    "return { struct.unpack('<i2>h!4Bi4', struct.pack('<i2>h!4Bi4', -2, -3, 200, -70000)) }",
    "return { struct.unpack('>c0d', struct.pack('c0>d', 'abc', 1.5)) }",
    "return tostring(select(2, struct.unpack('Bc0f', struct.pack('BAf', 3, 1))))",
    "return { struct.unpack('Bc0>d', struct.pack('Bc0>d', 3, 'abc', 2.5)) }",
    "return struct.unpack('>I7', ARGV[1])",
    "return struct.pack('>I7', ARGV[1])",
    "return struct.pack('c5', ARGV[1])",
    "return struct.pack('q', 1)",
    "return { tonumber('12'), tonumber('0x10'), math.floor(2.7), ('a'):byte(), #('x'):rep(5) }",
    "return { string.format('%.0f|%5d|%s', 2 ^ 53, 42, KEYS[1]), table.concat({ 1, 2, 3 }, ',') }",
    "return unpack({ 1, 2 })",
    "return { 2 ^ 70, -2 ^ 70, 0 / 0, 1 / 0, 2 ^ 63, -2 ^ 63, 2 ^ 53 }",
    "return {}",
    "return",
    "return { {}, { { 1 } }, 'x' }",
    "=",
    "return (",
];

const KEYS: &[&str] = &["s1", "s2", "h1", "h2", "z1", "z2", "any"];
const MEMBERS: &[&str] = &["a", "b", "c1", "d1", "e", "", "\0\r\n"];
const INDICES: &[&str] = &["0", "1", "2", "5", "-1", "-2", "-7", "100"];
const OFFSETS: &[&str] = &["0", "1", "3", "20", "-1"];
const SCORES: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "-1",
    "2.5",
    "0.1",
    "0.2",
    "1e3",
    "1e17",
    "-inf",
    "inf",
    "+inf",
    "1795299912000000",
    "1e-7",
    "123456789012345678",
    "-0.5",
    "3.0",
];
/// Milliseconds, seconds, and points in time. None of them passes while a test runs.
const MILLIS: &[&str] = &["7200000", "100000000", "3600001"];
const SECONDS: &[&str] = &["7200", "100000", "4000000000"];
const POINTS: &[&str] = &["4000000000000", "99999999999999"];
const NONSENSE: &[&str] =
    &["", "x", "1.5", " 1", "+1", "01", "-", "nan", "(", "9223372036854775808", "-9223372036854775809"];

/// Returns a command.
pub(crate) fn command(random: &mut Rng) -> Words {
    let template = choice(random, COMMANDS);
    let mut words: Words = split(template).into_iter().map(|word| filled(random, &word)).collect();
    match random.u32(0..40) {
        0 => _ = words.pop().filter(|_| words.len() > 1),
        1 => words.push(choice(random, NONSENSE).into()),
        // What another cursor than 0 finds depends on the server.
        2 if words.len() > 1 && !words[0].ends_with(b"SCAN") => {
            let index = random.usize(1..words.len());
            words[index] = choice(random, NONSENSE).into();
        }
        _ => {}
    }
    words
}

fn choice<'a>(random: &mut Rng, words: &[&'a str]) -> &'a str {
    words[random.usize(..words.len())]
}

/// Returns a word of a template, with one of its kind for each letter in braces.
fn filled(random: &mut Rng, word: &[u8]) -> Vec<u8> {
    let word = String::from_utf8_lossy(word).into_owned();
    let Some((before, rest)) = word.split_once('{') else { return word.into_bytes() };
    let (kind, behind) = rest.split_once('}').unwrap();
    let filling: Vec<u8> = match kind {
        "k" => choice(random, KEYS).into(),
        "m" => choice(random, MEMBERS).into(),
        "i" => choice(random, INDICES).into(),
        "o" => choice(random, OFFSETS).into(),
        "s" => choice(random, SCORES).into(),
        "t" => choice(random, MILLIS).into(),
        "e" => choice(random, SECONDS).into(),
        "p" => choice(random, POINTS).into(),
        "l" => choice(random, SCRIPTS).into(),
        "v" => value(random),
        other => panic!("there is no kind {other}"),
    };
    [before.as_bytes(), &filling, behind.as_bytes()].concat()
}

fn value(random: &mut Rng) -> Vec<u8> {
    match random.u32(0..10) {
        0 => Vec::new(),
        // Too long for a small hash.
        1 => vec![b'l'; random.usize(60..70)],
        2 => random.i64(-20..20).to_string().into_bytes(),
        _ => (0..random.usize(1..12)).map(|_| random.u8(..)).collect(),
    }
}
