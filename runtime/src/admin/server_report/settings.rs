//! The version and the settings of a server.

use std::collections::HashMap;

use crate::admin::finding::Finding;
use crate::store::ServerInfo;

type Info = HashMap<String, String>;

/// The oldest supported version of Redis.
const OLDEST: (u64, u64) = (6, 2);

/// The share of its memory, in percent, above which a server counts as almost full.
const ALMOST_FULL: u64 = 80;

const MEMORY: &str = "raise `maxmemory`, or see which limits store the most";

/// Judges the answer to `INFO`.
pub(super) fn judge(known: &ServerInfo) -> Vec<Finding> {
    let Some(info) = &known.info else {
        let text = "the user may not ask for INFO, so version, eviction, memory and persistence are not known";
        return vec![Finding::warning("info", text).with_remedy("run it as a user with `+info`")];
    };
    let persistence = persistence(info, known.save.as_deref());
    [version(info), eviction(info), memory(info), evicted(info), persistence].into_iter().flatten().collect()
}

fn version(info: &Info) -> Option<Finding> {
    if let Some(version) = info.get("valkey_version") {
        return Some(Finding::ok("version", format!("Valkey {version}")));
    }
    let version = info.get("redis_version")?;
    let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
    let number = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let text = format!("Redis {version}");
    Some(if number >= OLDEST {
        Finding::ok("version", text)
    } else {
        Finding::problem("version", text).with_remedy("use Redis 6.2 or later, or Valkey")
    })
}

fn eviction(info: &Info) -> Option<Finding> {
    let policy = info.get("maxmemory_policy")?;
    Some(match policy.as_str() {
        "noeviction" => Finding::ok("eviction", "a full server evicts no tally (noeviction)"),
        other => {
            let text =
                format!("a full server may evict tallies ({other}), and an evicted tally is a limit that starts again");
            Finding::warning("eviction", text).with_remedy("set `maxmemory-policy noeviction`")
        }
    })
}

fn memory(info: &Info) -> Option<Finding> {
    let (used, most) = (number(info, "used_memory")?, number(info, "maxmemory")?);
    if most == 0 {
        return Some(Finding::ok("memory", format!("{} are used; there is no `maxmemory`", bytes(used))));
    }
    let percent = used.saturating_mul(100) / most;
    let text = format!("{} of {} are used ({percent} %)", bytes(used), bytes(most));
    Some(match percent {
        0..ALMOST_FULL => Finding::ok("memory", text),
        ALMOST_FULL..100 => {
            Finding::warning("memory", format!("{text}, and a full server refuses to count")).with_remedy(MEMORY)
        }
        _ => {
            Finding::problem("memory", format!("{text}: the server is full, and refuses to count")).with_remedy(MEMORY)
        }
    })
}

fn evicted(info: &Info) -> Option<Finding> {
    match number(info, "evicted_keys")? {
        0 => None,
        keys => {
            let text = format!(
                "{keys} keys were evicted since the server started; each tally of them is a limit that started again"
            );
            Some(Finding::warning("eviction", text).with_remedy(MEMORY))
        }
    }
}

fn persistence(info: &Info, save: Option<&str>) -> Option<Finding> {
    const TOPIC: &str = "persistence";
    let failed = |field: &str| info.get(field).is_some_and(|status| status != "ok");
    let remedy = "see the log of the server, and the space on its disk";
    if failed("aof_last_write_status") {
        return Some(Finding::problem(TOPIC, "the last write to the append-only file failed").with_remedy(remedy));
    }
    if failed("rdb_last_bgsave_status") {
        let text = "the last snapshot failed, after which a server refuses to count by default";
        return Some(Finding::problem(TOPIC, text).with_remedy(remedy));
    }
    Some(match (info.get("aof_enabled")?.as_str(), save) {
        ("1", _) => Finding::ok(TOPIC, "append-only file"),
        (_, Some("")) => {
            let text = "none: a restart starts every limit again, which is right for short windows only";
            Finding::warning(TOPIC, text).with_remedy("set `appendonly yes`")
        }
        (_, Some(save)) => Finding::ok(TOPIC, format!("snapshots ({save})")),
        (_, None) => {
            Finding::warning(TOPIC, "no append-only file, and the user may not ask whether there are snapshots")
                .with_remedy("run it as a user with `+config|get`")
        }
    })
}

fn number(info: &Info, field: &str) -> Option<u64> {
    info.get(field)?.parse().ok()
}

/// Returns a number of bytes in a unit that suits it, with one decimal.
fn bytes(number: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.into_iter().find(|(size, _)| number >= *size);
    let in_unit = |(size, name): (u64, &str)| {
        let tenths = u128::from(number) * 10 / u128::from(size);
        format!("{}.{} {name}", tenths / 10, tenths % 10)
    };
    unit.map_or_else(|| format!("{number} B"), in_unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::finding::Level;

    fn info(fields: &[(&str, &str)]) -> Info {
        fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn level(finding: Option<Finding>) -> Option<Level> {
        finding.map(|finding| finding.level())
    }

    #[test]
    fn a_server_that_is_too_old_is_a_problem() {
        for (number, expected) in [("6.0.16", Level::Problem), ("6.2.5", Level::Ok), ("10.0.1", Level::Ok)] {
            assert_eq!(level(version(&info(&[("redis_version", number)]))), Some(expected), "{number}");
        }
        let valkey = version(&info(&[("redis_version", "7.2.4"), ("valkey_version", "9.1.2")])).unwrap();
        assert_eq!(valkey.to_string(), "Valkey 9.1.2");
    }

    #[test]
    fn any_eviction_is_a_warning_that_says_what_to_set() {
        let found = eviction(&info(&[("maxmemory_policy", "allkeys-lru")])).unwrap();
        assert_eq!((found.level(), found.remedy()), (Level::Warning, Some("set `maxmemory-policy noeviction`")));
        assert_eq!(level(eviction(&info(&[("maxmemory_policy", "noeviction")]))), Some(Level::Ok));
        assert_eq!(level(evicted(&info(&[("evicted_keys", "3")]))), Some(Level::Warning));
        assert_eq!(evicted(&info(&[("evicted_keys", "0")])), None);
    }

    #[test]
    fn a_server_is_judged_by_how_full_it_is() {
        for (used, most, expected) in [
            ("9", "0", Level::Ok),
            ("79", "100", Level::Ok),
            ("80", "100", Level::Warning),
            ("100", "100", Level::Problem),
        ] {
            assert_eq!(level(memory(&info(&[("used_memory", used), ("maxmemory", most)]))), Some(expected), "{used}");
        }
        assert_eq!([bytes(12), bytes(1_536), bytes(3 << 30)], ["12 B", "1.5 KiB", "3.0 GiB"]);
    }

    #[test]
    fn what_a_restart_loses_is_told() {
        let off = [("aof_enabled", "0"), ("rdb_last_bgsave_status", "ok"), ("aof_last_write_status", "ok")];
        assert_eq!(level(persistence(&info(&off), Some(""))), Some(Level::Warning));
        assert_eq!(level(persistence(&info(&off), Some("3600 1"))), Some(Level::Ok));
        assert_eq!(level(persistence(&info(&off), None)), Some(Level::Warning));
        assert_eq!(level(persistence(&info(&[("aof_enabled", "1")]), Some(""))), Some(Level::Ok));
        assert_eq!(level(persistence(&info(&[("rdb_last_bgsave_status", "err")]), None)), Some(Level::Problem));
    }
}
