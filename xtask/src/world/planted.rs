//! Faults that are planted in the library on purpose, one expression each: the world has to find them.
//!
//! They are planted in a copy of the sources. One build has them all, and a variable of the environment says which is at work.

use std::path::Path;
use std::process::Command;
use std::{fs, io};

use crate::step::{self, Outcome};

/// A fault.
struct Planted {
    name: &'static str,
    file: &'static str,
    /// The expression that it replaces.
    old: &'static str,
    new: &'static str,
}

/// The variable that names the fault that is at work.
const VARIABLE: &str = "TALLYGATE_PLANTED";

/// What the copy has in addition, in the root of the library.
const SWITCH: &str = r#"
/// Whether that fault is at work.
pub(crate) fn has_fault(name: &str) -> bool {
    static NAME: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    NAME.get_or_init(|| std::env::var("TALLYGATE_PLANTED").ok()).as_deref() == Some(name)
}
"#;

const ALL: &[Planted] = &[
    Planted {
        name: "a cached denial that outlives a reset",
        file: "runtime/src/limiter/cached_denials.rs",
        old: "self.invalidate(call.tally_ids())",
        new: "()",
    },
    Planted {
        name: "a denial that is cached for too long",
        file: "runtime/src/limiter/cached_denials/denial_cache.rs",
        old: "ends_us.min(asked_us.saturating_add(self.longest_us))",
        new: "ends_us",
    },
    Planted {
        name: "a call that is sent again after a lost reply",
        file: "runtime/src/store/redis/node.rs",
        old: "self.batcher.ask(request, now, until).await?",
        new: "match self.batcher.ask(request, now, until).await {
            Ok(reply) => reply,
            Err(_) => self.batcher.ask(request, now, until).await?,
        }",
    },
    Planted {
        name: "a deadline that is not kept",
        file: "runtime/src/store/redis.rs",
        old: "now + deadline",
        new: "now + 2 * deadline",
    },
    Planted {
        name: "a refund that is sent twice",
        file: "runtime/src/limiter/core.rs",
        old: "layers.below().recount(charge.counted(), recount, &charge.admitted).await",
        new: "{
            let _ = layers.below().recount(charge.counted(), recount, &charge.admitted).await;
            layers.below().recount(charge.counted(), recount, &charge.admitted).await
        }",
    },
    Planted {
        name: "a lease that is kept though its caller is gone",
        file: "runtime/src/limiter/leases.rs",
        old: "drop(answer.send(Ok(LayeredAnswer { lease: Some(Box::new(lease)), ..admitted })))",
        new: "std::mem::forget(answer.send(Ok(LayeredAnswer { lease: Some(Box::new(lease)), ..admitted })))",
    },
    Planted {
        name: "a lease that frees another one",
        file: "runtime/src/store/redis/node.rs",
        old: "giving_back(leases)",
        new: "::redis::cmd(\"ZREMRANGEBYRANK\").arg(leases.key.as_str()).arg(0).arg(0).to_owned()",
    },
    Planted {
        name: "a waiter that is not woken",
        file: "runtime/src/sleepers.rs",
        old: "most.min(self.by_number.len())",
        new: "0",
    },
    Planted {
        name: "a lease that is renewed too late",
        file: "runtime/src/limiter/leases/keeper.rs",
        old: "since_us.saturating_add(shortest_us(leases) / 2)",
        new: "since_us.saturating_add(2 * shortest_us(leases))",
    },
    Planted {
        name: "attempts to connect without a budget",
        file: "runtime/src/store/redis/connection/attempt_budget.rs",
        old: "next.filter(|&next| next > now)",
        new: "None::<Instant>",
    },
    Planted {
        name: "an answer that another caller gets",
        file: "runtime/src/store/redis/batching/batch.rs",
        old: "callers.iter_mut().zip(replies).for_each(|(caller, reply)| caller.answer(reply))",
        new: "callers.iter_mut().rev().zip(replies).for_each(|(caller, reply)| caller.answer(reply))",
    },
    Planted {
        name: "an outage that admits what it should deny",
        file: "runtime/src/limiter/outage.rs",
        old: "policy.on_outage().unwrap_or(self.default)",
        new: "OnOutage::Allow",
    },
    Planted {
        name: "a peek that is sent as a call",
        file: "runtime/src/store/redis/script/pack.rs",
        old: "if request.options.peek { lua::PEEK } else { 0 }",
        new: "0",
    },
    Planted {
        name: "a cost that is sent as one",
        file: "runtime/src/store/redis/script/pack.rs",
        old: "cost.min(MAX_EXACT + 1)",
        new: "cost.min(1)",
    },
    Planted {
        name: "costs of two units that are swapped",
        file: "runtime/src/policy/units.rs",
        old: "named.map_or(Self::Later, |(_, cost)| Self::Unit(*cost))",
        new: "{ given.iter() }
            .find(|(other, _)| **other != *unit)
            .or(named)
            .map_or(Self::Later, |(_, cost)| Self::Unit(*cost))",
    },
    Planted {
        name: "a settlement of the wrong unit",
        file: "runtime/src/decision/charge.rs",
        old: "used.of(group.unit.as_ref())",
        new: "group.unit.as_ref().and_then(|_| used.0.values().next().copied())",
    },
    Planted {
        name: "a part that another unit is charged for",
        file: "runtime/src/limiter/prefetch/ledger.rs",
        old: "Call { options, awaited: None, ..call }",
        new: "Call { options, awaited: None, ..Call::new(call.policy, call.subjects, call.options) }",
    },
    Planted {
        name: "a part that is taken of another unit",
        file: "runtime/src/limiter/prefetch.rs",
        old: "self.below.decide(call).await",
        new: "self.below.decide(Call::new(call.policy, call.subjects, call.options)).await",
    },
    Planted {
        name: "a part from which calls take the cost in another unit",
        file: "runtime/src/limiter/prefetch/several.rs",
        old: "call.parts().map(|part| shared.take(stored, part)).collect()",
        new: "call.parts().map(|part| shared.take(stored, Call { options: call.options, ..part })).collect()",
    },
    Planted {
        name: "a key in the wrong slot",
        file: "runtime/src/call/tally_key.rs",
        old: "[prefix, \":\", segment, \":{\", prefix, \":\", slot, \":\", subject, \"}\"]",
        new: "[prefix, \":\", segment, \":{\", prefix, \":\", segment, \":\", subject, \"}\"]",
    },
    Planted {
        name: "a drain that does not wait for corrections",
        file: "runtime/src/system/under_way.rs",
        old: "*under_way.of(kind) += 1",
        new: "*under_way.of(kind) += usize::from(!matches!(kind, TaskKind::Correction))",
    },
    Planted {
        name: "a process that admits the whole count by itself",
        file: "runtime/src/policy/variants.rs",
        old: "rule.clone().divided(processes)",
        new: "rule.clone()",
    },
    Planted {
        name: "a process that decides alone and charges units as calls",
        file: "runtime/src/store/memory.rs",
        old: "charge(tally, id.group, outcome, call, call.cost_at(index), now_us)",
        new: "charge(tally, id.group, outcome, call, call.cost_at(0), now_us)",
    },
    Planted {
        name: "an override that is adopted too late",
        file: "runtime/src/limiter/overrides/refresh.rs",
        old: "now.saturating_duration_since(self.started) + PERIOD",
        new: "now.saturating_duration_since(self.started) + 60 * PERIOD",
    },
    Planted {
        name: "a window that is no longer although calls are taken ahead",
        file: "runtime/src/policy/rule_group.rs",
        old: "rule.ahead(ahead).unwrap_or_else(|| rule.clone())",
        new: "rule.clone()",
    },
    Planted {
        name: "a process that was told of a pause and still sends",
        file: "runtime/src/limiter/pausing.rs",
        old: "self.pauses.find(id, || self.clock.now_us())",
        new: "None",
    },
    Planted {
        name: "a pace that hears a pause and still sends",
        file: "runtime/src/client/pace/paced_call.rs",
        old: "self.permit.begin_pause_logged(said)",
        new: "_ = said",
    },
    Planted {
        name: "a probe that is never free again",
        file: "runtime/src/decision/pause.rs",
        old: "Arc::clone(&self.pauser).give_back(&self.pausable, probe, true)",
        new: "_ = probe",
    },
    Planted {
        name: "an epoch that is taken for seconds",
        file: "runtime/src/client/moment.rs",
        old: "at(Timestamp::new(whole.try_into().ok()?, nanos))",
        new: "Some(Self::After(number))",
    },
    Planted {
        name: "milliseconds that are taken for seconds",
        file: "runtime/src/client/moment.rs",
        old: "at(Timestamp::from_millisecond(whole.try_into().ok()?))",
        new: "at(Timestamp::from_second(whole.try_into().ok()?))",
    },
    Planted {
        name: "a part that never ends",
        file: "runtime/src/limiter/prefetch/part.rs",
        old: "now_us < self.ends_us",
        new: "true",
    },
];

/// Copies the sources into a folder, with all faults. What is there already is written only where it differs, so that a
/// build has little to do.
pub(super) fn copy(folder: &Path) -> Outcome {
    step::announce("plant faults in a copy of the library");
    copy_folder(&step::root(), folder).map_err(|error| format!("cannot copy the sources: {error}"))?;
    let mut files: Vec<_> = ALL.iter().map(|planted| planted.file).collect();
    files.dedup();
    for file in files {
        write(&folder.join(file), &plant(file, step::read(file)?)?)?;
    }
    let root = "runtime/src/lib.rs";
    write(&folder.join(root), &["#![allow(unused_parens)]\n", &step::read(root)?, SWITCH].concat())
}

/// Returns a command that plays a fault.
pub(super) fn command(program: &Path, name: &str) -> Command {
    let mut command = Command::new(program);
    command.env(VARIABLE, name).args(["--planted-in-library", name]);
    command
}

/// The names of all faults.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|planted| planted.name)
}

/// Plays each fault until it is found.
pub(super) fn play(program: &Path, options: &[&str]) -> Outcome {
    step::announce("faults in the library");
    let options: Vec<_> = options.iter().copied().filter(|option| *option != "--planted").collect();
    let is_found = |name| command(program, name).args(&options).status().is_ok_and(|ended| ended.success());
    let missed = names().filter(|name| !is_found(name));
    match missed.count() {
        0 => Ok(()),
        number => Err(format!("{number} faults of the library were not found")),
    }
}

/// The text of a file with all its faults.
fn plant(file: &str, text: String) -> Result<String, String> {
    ALL.iter().filter(|planted| planted.file == file).try_fold(text, |text, Planted { name, old, new, .. }| {
        if text.contains(old) {
            let root = "crate";
            let either = format!("(if {root}::has_fault({name:?}) {{ {new} }} else {{ {old} }})");
            Ok(text.replace(old, &either))
        } else {
            Err(format!("{file} has no `{old}` any more, which the fault `{name}` replaces"))
        }
    })
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (name, to) = (entry.file_name(), to.join(entry.file_name()));
        if name == "target" || name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &to)?;
        } else if !is_planted(&to) && fs::read(&to).ok() != Some(fs::read(entry.path())?) {
            fs::copy(entry.path(), &to)?;
        }
    }
    Ok(())
}

/// Whether a file is written with its faults.
fn is_planted(path: &Path) -> bool {
    path.ends_with("runtime/src/lib.rs") || ALL.iter().any(|planted| path.ends_with(planted.file))
}

fn write(path: &Path, text: &str) -> Outcome {
    if fs::read_to_string(path).is_ok_and(|before| before == text) {
        return Ok(());
    }
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_replaces_an_expression_that_the_library_has() {
        for Planted { file, .. } in ALL {
            plant(file, step::read(file).unwrap()).unwrap();
        }
    }
}
