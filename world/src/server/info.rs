//! `INFO`: what a server says of itself.

use super::arguments::Arguments;
use super::flavour::Flavour;
use super::keyspace::Keyspace;
use super::refusal::Answer;
use super::reply::Reply;
use super::state::{Role, State};

type Fields = Vec<(&'static str, String)>;

/// The name of a section, and what fills it.
type Section = (&'static str, fn(&State) -> Fields);

const SECTIONS: [Section; 6] = [
    ("Server", server),
    ("Memory", memory),
    ("Persistence", persistence),
    ("Stats", stats),
    ("Replication", replication),
    ("Cluster", cluster),
];

pub(crate) fn info(state: &mut State, arguments: &Arguments) -> Answer {
    let all = ["all", "default", "everything"];
    let is_wanted = |section: &str| {
        arguments.len() == 1
            || (1..arguments.len())
                .any(|index| arguments.is(index, section) || all.iter().any(|all| arguments.is(index, all)))
    };
    let mut sections: Vec<_> = SECTIONS
        .iter()
        .filter(|(name, _)| is_wanted(name))
        .map(|(name, fields)| section(name, fields(state)))
        .collect();
    if is_wanted("Keyspace") {
        sections.push(section("Keyspace", Vec::new()) + &keyspace(state));
    }
    Ok(Reply::Verbatim(sections.join("\r\n")))
}

fn section(name: &str, fields: Fields) -> String {
    let head = format!("# {name}\r\n");
    fields.into_iter().fold(head, |lines, (name, value)| lines + name + ":" + &value + "\r\n")
}

fn server(state: &State) -> Fields {
    let mode = match (&state.primaries, &state.cluster) {
        (Some(_), _) => "sentinel",
        (None, Some(_)) => "cluster",
        (None, None) => "standalone",
    };
    let version = state.flavour.version().to_owned();
    let mut fields = if state.flavour == Flavour::Valkey9 {
        // Valkey says so for clients of Redis.
        vec![("redis_version", "7.2.4".to_owned()), ("server_name", "valkey".to_owned()), ("valkey_version", version)]
    } else {
        vec![("redis_version", version)]
    };
    let field = if state.flavour == Flavour::Valkey9 { "server_mode" } else { "redis_mode" };
    fields.push((field, mode.to_owned()));
    fields.push(("server_time_usec", state.time_us.to_string()));
    fields
}

fn memory(state: &State) -> Fields {
    vec![
        ("used_memory", state.used_memory().to_string()),
        ("maxmemory", state.settings.text("maxmemory").to_owned()),
        ("maxmemory_policy", state.settings.text("maxmemory-policy").to_owned()),
    ]
}

fn persistence(state: &State) -> Fields {
    let status = if state.faults.cannot_save { "err" } else { "ok" };
    vec![
        ("loading", u8::from(state.faults.is_loading).to_string()),
        ("rdb_last_bgsave_status", status.to_owned()),
        ("aof_enabled", u8::from(state.settings.text("appendonly") == "yes").to_string()),
        ("aof_last_write_status", "ok".to_owned()),
    ]
}

fn stats(state: &State) -> Fields {
    vec![
        ("expired_keys", state.expired.to_string()),
        ("evicted_keys", "0".to_owned()),
        ("pubsub_channels", state.subscribers.len().to_string()),
    ]
}

fn replication(state: &State) -> Fields {
    let offset = ("master_repl_offset", state.stream.offset.to_string());
    match &state.role {
        Role::Primary => {
            vec![("role", "master".to_owned()), ("connected_slaves", state.good_replicas.to_string()), offset]
        }
        Role::Replica { host, port, is_connected } => vec![
            ("role", "slave".to_owned()),
            ("master_host", host.clone()),
            ("master_port", port.to_string()),
            ("master_link_status", if *is_connected { "up" } else { "down" }.to_owned()),
            offset,
        ],
    }
}

fn cluster(state: &State) -> Fields {
    vec![("cluster_enabled", u8::from(state.cluster.is_some()).to_string())]
}

fn keyspace(state: &State) -> String {
    let line = |(index, keys): (usize, &Keyspace)| {
        let expiring = keys.iter().filter(|(_, entry)| entry.expires_ms.is_some()).count();
        (keys.len() > 0).then(|| format!("db{index}:keys={},expires={expiring},avg_ttl=0\r\n", keys.len()))
    };
    state.databases.iter().enumerate().filter_map(line).collect()
}
