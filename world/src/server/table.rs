//! All commands.

use super::administration::{config, echo, replicaof, role, sentinel, time, wait};
use super::arguments::Arguments;
use super::channels::{publish, subscribe, unsubscribe};
use super::client::{asking, auth, client, hello, ping, quit, readonly, readwrite, reset, select};
use super::cluster_commands::cluster;
use super::command::{
    ADMINISTERS, BEFORE_LOGIN, Command, GROWS, Keys, NOT_IN_SCRIPTS, OF_SENTINELS, OF_SENTINELS_ALONE, Run,
    ScriptCommand, Subcommand, USES_CHANNELS, WHILE_BUSY, WHILE_LISTENING, WHILE_LOADING, WHILE_STALE, WRITES,
};
use super::expiry::{expire, expireat, persist, pexpire, pexpireat, pttl, ttl};
use super::flavour::Flavour;
use super::hashes::{hdel, hexists, hget, hgetall, hkeys, hlen, hmget, hscan, hset};
use super::info::info;
use super::keys::{dbsize, del, exists, flush, keys, kind, scan};
use super::refusal::{Answer, Refusal};
use super::session::Session;
use super::sorted_ranges::{
    zcard, zcount, zrange, zrangebyscore, zremrangebyrank, zremrangebyscore, zrevrange, zrevrangebyscore, zscore,
};
use super::sorted_sets::{zadd, zincrby, zrem};
use super::state::State;
use super::strings::{append, get, getrange, set, setrange, strlen};
use super::user::Access;

type Data = fn(&mut State, &Arguments) -> Answer;
type Client = fn(&mut State, &mut Session, &Arguments) -> Answer;

const fn reads(name: &'static str, arity: i8, category: &'static str, access: Access, run: Data) -> Command {
    Command { name, arity, run: Run::Data(run), keys: Keys::First(access), traits: 0, category, subcommands: &[] }
}

const fn writes(name: &'static str, arity: i8, category: &'static str, access: Access, run: Data) -> Command {
    Command { traits: WRITES, ..reads(name, arity, category, access, run) }
}

/// One that may need more memory.
const fn grows(name: &'static str, arity: i8, category: &'static str, access: Access, run: Data) -> Command {
    Command { traits: WRITES | GROWS, ..reads(name, arity, category, access, run) }
}

const fn keyless(name: &'static str, arity: i8, traits: u16, run: Data) -> Command {
    Command { name, arity, run: Run::Data(run), keys: Keys::None, traits, category: "server", subcommands: &[] }
}

const fn of_client(name: &'static str, arity: i8, traits: u16, run: Client) -> Command {
    let traits = traits | NOT_IN_SCRIPTS | WHILE_STALE | WHILE_LOADING;
    Command { name, arity, run: Run::Client(run), keys: Keys::None, traits, category: "connection", subcommands: &[] }
}

const fn of_scripts(name: &'static str, arity: i8, run: ScriptCommand) -> Command {
    let keys = if matches!(run, ScriptCommand::Script) { Keys::None } else { Keys::Counted(Access::BOTH) };
    let traits = NOT_IN_SCRIPTS;
    Command { name, arity, run: Run::Script(run), keys, traits, category: "scripting", subcommands: &[] }
}

const fn with(command: Command, subcommands: &'static [Subcommand]) -> Command {
    Command { subcommands, ..command }
}

const fn sub(name: &'static str, arity: i8) -> Subcommand {
    since(Flavour::Redis62, name, arity)
}

const fn since(since: Flavour, name: &'static str, arity: i8) -> Subcommand {
    Subcommand { name, arity, since }
}

const ANY_STATE: u16 = WHILE_STALE | WHILE_LOADING;

/// In the order of their names.
static COMMANDS: &[Command] = &[
    with(
        Command { run: Run::Users, ..of_client("acl", -2, ADMINISTERS | OF_SENTINELS, reset) },
        &[sub("cat", -2), sub("deluser", -3), sub("setuser", -3), sub("users", 2), sub("whoami", 2)],
    ),
    grows("append", 3, "string", Access::WRITE, append),
    of_client("asking", 1, 0, asking),
    of_client("auth", -2, BEFORE_LOGIN | WHILE_BUSY | OF_SENTINELS, auth),
    with(
        of_client("client", -2, OF_SENTINELS, client),
        &[sub("getname", 2), sub("id", 2), since(Flavour::Valkey9, "setinfo", 4), sub("setname", 3)],
    ),
    with(
        keyless("cluster", -2, WHILE_STALE, cluster),
        &[
            sub("countkeysinslot", 3),
            sub("getkeysinslot", 4),
            sub("info", 2),
            sub("keyslot", 3),
            sub("myid", 2),
            sub("nodes", 2),
            sub("setslot", -4),
            since(Flavour::Redis70, "shards", 2),
            sub("slots", 2),
        ],
    ),
    with(
        keyless("config", -2, ANY_STATE | NOT_IN_SCRIPTS | ADMINISTERS, config),
        &[
            sub("get", 3),
            since(Flavour::Redis70, "get", -3),
            sub("resetstat", 2),
            sub("rewrite", 2),
            sub("set", 4),
            since(Flavour::Redis70, "set", -4),
        ],
    ),
    keyless("dbsize", 1, 0, dbsize),
    Command { keys: Keys::All(Access::WRITE), ..writes("del", -2, "keyspace", Access::WRITE, del) },
    keyless("echo", 2, ANY_STATE, echo),
    of_scripts("eval", -3, ScriptCommand::Eval),
    of_scripts("evalsha", -3, ScriptCommand::EvalSha),
    Command { keys: Keys::All(Access::ABOUT), ..reads("exists", -2, "keyspace", Access::ABOUT, exists) },
    writes("expire", -3, "keyspace", Access::WRITE, expire),
    writes("expireat", -3, "keyspace", Access::WRITE, expireat),
    keyless("flushall", -1, WRITES | ADMINISTERS, flush),
    keyless("flushdb", -1, WRITES | ADMINISTERS, flush),
    reads("get", 2, "string", Access::READ, get),
    reads("getrange", 4, "string", Access::READ, getrange),
    writes("hdel", -3, "hash", Access::WRITE, hdel),
    of_client("hello", -1, BEFORE_LOGIN | WHILE_BUSY | OF_SENTINELS, hello),
    reads("hexists", 3, "hash", Access::ABOUT, hexists),
    reads("hget", 3, "hash", Access::READ, hget),
    reads("hgetall", 2, "hash", Access::READ, hgetall),
    reads("hkeys", 2, "hash", Access::READ, hkeys),
    reads("hlen", 2, "hash", Access::ABOUT, hlen),
    reads("hmget", -3, "hash", Access::READ, hmget),
    reads("hscan", -3, "hash", Access::READ, hscan),
    grows("hset", -4, "hash", Access::WRITE, hset),
    keyless("info", -1, ANY_STATE | OF_SENTINELS, info),
    keyless("keys", 2, 0, keys),
    writes("persist", 2, "keyspace", Access::WRITE, persist),
    writes("pexpire", -3, "keyspace", Access::WRITE, pexpire),
    writes("pexpireat", -3, "keyspace", Access::WRITE, pexpireat),
    Command { traits: NOT_IN_SCRIPTS | WHILE_LISTENING | OF_SENTINELS, ..of_client("ping", -1, 0, ping) },
    reads("pttl", 2, "keyspace", Access::READ, pttl),
    keyless("publish", 3, ANY_STATE | USES_CHANNELS | OF_SENTINELS, publish),
    of_client("quit", -1, BEFORE_LOGIN | WHILE_BUSY | WHILE_LISTENING | OF_SENTINELS, quit),
    of_client("readonly", 1, 0, readonly),
    of_client("readwrite", 1, 0, readwrite),
    keyless("replicaof", 3, WHILE_STALE | NOT_IN_SCRIPTS | ADMINISTERS, replicaof),
    of_client("reset", 1, BEFORE_LOGIN | WHILE_BUSY | WHILE_LISTENING, reset),
    keyless("role", 1, ANY_STATE | NOT_IN_SCRIPTS | OF_SENTINELS, role),
    Command { category: "keyspace", ..keyless("scan", -2, 0, scan) },
    with(
        of_scripts("script", -2, ScriptCommand::Script),
        &[sub("exists", -3), sub("flush", -2), sub("kill", 2), sub("load", 3)],
    ),
    of_client("select", 2, 0, select),
    with(
        keyless("sentinel", -2, NOT_IN_SCRIPTS | OF_SENTINELS | OF_SENTINELS_ALONE, sentinel),
        &[sub("get-master-addr-by-name", 3), sub("masters", 2)],
    ),
    grows("set", -3, "string", Access::WRITE, set),
    grows("setrange", 4, "string", Access::WRITE, setrange),
    reads("strlen", 2, "string", Access::ABOUT, strlen),
    of_client("subscribe", -2, WHILE_LISTENING | USES_CHANNELS | OF_SENTINELS, subscribe),
    keyless("time", 1, ANY_STATE, time),
    reads("ttl", 2, "keyspace", Access::READ, ttl),
    reads("type", 2, "keyspace", Access::ABOUT, kind),
    Command { keys: Keys::All(Access::WRITE), ..writes("unlink", -2, "keyspace", Access::WRITE, del) },
    of_client("unsubscribe", -1, WHILE_LISTENING | OF_SENTINELS, unsubscribe),
    keyless("wait", 3, NOT_IN_SCRIPTS, wait),
    grows("zadd", -4, "sortedset", Access::WRITE, zadd),
    reads("zcard", 2, "sortedset", Access::ABOUT, zcard),
    reads("zcount", 4, "sortedset", Access::READ, zcount),
    grows("zincrby", 4, "sortedset", Access::BOTH, zincrby),
    reads("zrange", -4, "sortedset", Access::READ, zrange),
    reads("zrangebyscore", -4, "sortedset", Access::READ, zrangebyscore),
    writes("zrem", -3, "sortedset", Access::WRITE, zrem),
    writes("zremrangebyrank", 4, "sortedset", Access::WRITE, zremrangebyrank),
    writes("zremrangebyscore", 4, "sortedset", Access::WRITE, zremrangebyscore),
    reads("zrevrange", -4, "sortedset", Access::READ, zrevrange),
    reads("zrevrangebyscore", -4, "sortedset", Access::READ, zrevrangebyscore),
    reads("zscore", 3, "sortedset", Access::READ, zscore),
];

/// Returns the command of that name, in any case.
pub(crate) fn find(name: &[u8]) -> Option<&'static Command> {
    let lower = |byte: &u8| byte.to_ascii_lowercase();
    let found = COMMANDS.binary_search_by(|command| command.name.bytes().cmp(name.iter().map(lower)));
    found.ok().map(|index| &COMMANDS[index])
}

/// Returns the command that a client has sent, if this server has it, and it is complete.
pub(crate) fn find_complete(state: &State, arguments: &Arguments) -> Result<&'static Command, Refusal> {
    let unknown = || Refusal::unknown_command(state.flavour, arguments);
    let command = find(arguments.word(0)).ok_or_else(unknown)?;
    let is_sentinel = state.primaries.is_some();
    if is_sentinel && !command.has(OF_SENTINELS) || !is_sentinel && command.has(OF_SENTINELS_ALONE) {
        return Err(unknown());
    }
    if state.flavour > Flavour::Redis62 {
        command.check_subcommand(state.flavour, arguments)?;
    }
    if command.takes(arguments.len()) { Ok(command) } else { Err(Refusal::arity(command.name)) }
}

/// Tells whether there is a category of that name.
pub(crate) fn has_category(name: &str) -> bool {
    ["read", "write", "admin", "dangerous", "fast", "slow", "all", "pubsub", "blocking"].contains(&name)
        || COMMANDS.iter().any(|command| command.category == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_in_any_case() {
        assert!(COMMANDS.is_sorted_by_key(|command| command.name));
        for command in COMMANDS {
            let name = command.name.to_ascii_uppercase();
            assert_eq!(find(name.as_bytes()).map(|found| found.name), Some(command.name));
        }
        assert!(find(b"nothing").is_none());
    }
}
