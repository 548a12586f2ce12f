//! The permissions of the user of a limiter, and the script and the keys on the server.

use crate::admin::finding::{Finding, Level};
use crate::store::{
    Access, CONCURRENT_CALLS, CommandPurpose, Permission, RehearsedStep, SEVERAL_KEYS, Sample, ScriptState, ServerInfo,
};

const PERMISSIONS: &str = "permissions";
const KEYS: &str = "keys";

/// The writing commands among those that are tried.
const WRITING: [&str; 11] =
    ["append", "hdel", "hset", "pexpire", "set", "setrange", "unlink", "zadd", "zincrby", "zrem", "zremrangebyrank"];

/// The commands that a user needs to read policies and subjects.
const LOOKING: [&str; 9] = ["eval", "evalsha", "getrange", "hget", "hgetall", "hlen", "hscan", "strlen", "time"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaseUse {
    Taken,
    Unknown,
}

pub(super) fn judge(known: &ServerInfo, leases: LeaseUse) -> Vec<Finding> {
    let mut findings = permissions(&known.permissions, leases);
    findings.extend(known.script.map(script));
    if read_only(&known.permissions).is_none() && known.script != Some(ScriptState::Disabled) {
        // Most users need no permission for leases. Another finding names it where it is missing.
        let has_leases = leases == LeaseUse::Taken || refused(&known.permissions, CommandPurpose::Leases).is_empty();
        let steps = known.rehearsed.iter().filter(|step| has_leases || step.name != CONCURRENT_CALLS);
        findings.extend(steps.map(rehearsed));
    }
    findings.push(keys(known.sample.as_ref()));
    findings
}

fn permissions(all: &[Permission], leases: LeaseUse) -> Vec<Finding> {
    if let Some(finding) = read_only(all) {
        return vec![finding];
    }
    let purposes = [CommandPurpose::Decisions, CommandPurpose::Leases, CommandPurpose::Lists, CommandPurpose::Denials];
    let mut findings: Vec<_> = purposes.into_iter().filter_map(|purpose| missing(all, purpose, leases)).collect();
    if findings.is_empty() {
        findings.push(Finding::ok(PERMISSIONS, granted(all)));
    }
    findings
}

/// Returns the finding on a user that may only read.
fn read_only(all: &[Permission]) -> Option<Finding> {
    let has = |commands: &[&str], access| {
        all.iter().any(|permission| commands.contains(&permission.command) && permission.access == access)
    };
    // Before Redis 7, `append` cannot be tried. It is refused if all other writing commands are.
    let only_looks =
        has(&WRITING, Access::Refused) && !has(&WRITING, Access::Granted) && !has(&LOOKING, Access::Refused);
    let text = "the user may only read; whether the users of the programs may decide calls is not known";
    let finding = || Finding::warning(PERMISSIONS, text).with_remedy("run it as the user of the programs, too");
    only_looks.then(finding)
}

/// Returns the finding on refused commands for that purpose.
fn missing(all: &[Permission], purpose: CommandPurpose, leases: LeaseUse) -> Option<Finding> {
    let refused = refused(all, purpose);
    if refused.is_empty() {
        return None;
    }
    let (level, therefore) = match purpose {
        CommandPurpose::Decisions => (Level::Problem, "calls are not decided"),
        CommandPurpose::Leases if leases == LeaseUse::Taken => {
            (Level::Problem, "calls of policies that limit concurrent calls are not decided")
        }
        CommandPurpose::Lists => (Level::Warning, "overrides and the list of policies cannot be read or changed"),
        // Most fleets need neither leases nor lists of denials.
        CommandPurpose::Leases | CommandPurpose::Denials => return None,
    };
    let text = format!("the user may not send {}, so {therefore}", refused.join(", "));
    Some(Finding::new(PERMISSIONS, level, text).with_remedy(remedy(&refused)))
}

fn refused(all: &[Permission], purpose: CommandPurpose) -> Vec<&'static str> {
    let refused = |permission: &&Permission| permission.access == Access::Refused && permission.purpose == purpose;
    all.iter().filter(refused).map(|permission| permission.command).collect()
}

fn granted(all: &[Permission]) -> String {
    let untried = all.iter().filter(|permission| permission.access == Access::Untried);
    let untried: Vec<_> = untried.map(|permission| permission.command).collect();
    let granted = match &untried[..] {
        [] => "all that decisions and overrides need".to_owned(),
        some => format!("all that was tried; {} cannot be tried without a change", some.join(", ")),
    };
    let also = [
        (CommandPurpose::Leases, "concurrency limits, which no listed policy has,"),
        (CommandPurpose::Denials, "denied subjects, which are kept only if asked for,"),
    ];
    also.into_iter().fold(granted, |granted, (purpose, what)| match &refused(all, purpose)[..] {
        [] => granted,
        some => format!("{granted}; {what} also need {}", some.join(", ")),
    })
}

fn remedy(commands: &[&str]) -> String {
    let words: Vec<_> = commands.iter().map(|command| format!("+{command}")).collect();
    format!("give the user `{}` on the keys with the prefix, as the guide lists under production", words.join(" "))
}

fn script(state: ScriptState) -> Finding {
    const TOPIC: &str = "script";
    match state {
        ScriptState::Known => Finding::ok(TOPIC, "the server has it"),
        ScriptState::Unseen => Finding::ok(TOPIC, "the server does not have it; the next call sends it"),
        ScriptState::Disabled => {
            Finding::problem(TOPIC, "scripts are disabled on the server, so calls are not decided")
                .with_remedy("restart the server with its module `lua`")
        }
    }
}

fn rehearsed(step: &RehearsedStep) -> Finding {
    const TOPIC: &str = "decisions";
    match &step.fault {
        None => Finding::ok(TOPIC, format!("{}: known calls are decided as they should be", step.name)),
        Some(fault) if step.name == SEVERAL_KEYS => {
            let text = format!("{}: {fault}", step.name);
            Finding::warning(TOPIC, text).with_remedy(
                "the limiter asks slot by slot, and decides a call of a policy with several subjects in two round trips: connect \
                 to the cluster itself by `redis+cluster://` if you can",
            )
        }
        Some(fault) => Finding::problem(TOPIC, format!("{}: {fault}", step.name))
            .with_remedy("see the page on managed servers for what calls need of a server"),
    }
}

fn keys(sample: Option<&Sample>) -> Finding {
    let Some(Sample { keys, foreign, example, is_whole }) = sample else {
        let text = "the user may not SCAN, so keys of other programs with the prefix are not noticed";
        return Finding::ok(KEYS, text);
    };
    let looked_at = if *is_whole { format!("{keys} with the prefix") } else { format!("{keys} looked at, of more") };
    match example {
        None => Finding::ok(KEYS, looked_at),
        Some(example) => {
            let text = format!("{looked_at}; {foreign} are not of this library, like `{example}`");
            Finding::warning(KEYS, text).with_remedy("give each program a prefix of its own")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permission(command: &'static str, purpose: CommandPurpose, access: Access) -> Permission {
        Permission { command, purpose, access }
    }

    #[test]
    fn each_missing_permission_is_named_with_its_remedy() {
        let all = [
            permission("set", CommandPurpose::Decisions, Access::Refused),
            permission("time", CommandPurpose::Decisions, Access::Granted),
            permission("unlink", CommandPurpose::Decisions, Access::Granted),
            permission("append", CommandPurpose::Decisions, Access::Untried),
            permission("hset", CommandPurpose::Lists, Access::Refused),
        ];
        let found = permissions(&all, LeaseUse::Unknown);
        assert_eq!(found.iter().map(Finding::level).collect::<Vec<_>>(), [Level::Problem, Level::Warning]);
        assert!(found[0].to_string().contains("may not send set,") && found[0].to_string().contains("`+set`"));
        assert!(found[1].to_string().contains("may not send hset,"), "{}", found[1]);
    }

    #[test]
    fn what_leases_need_is_a_problem_where_calls_take_some() {
        let all = [
            permission("set", CommandPurpose::Decisions, Access::Granted),
            permission("zadd", CommandPurpose::Leases, Access::Refused),
        ];
        let found = permissions(&all, LeaseUse::Taken);
        assert_eq!(found.iter().map(Finding::level).collect::<Vec<_>>(), [Level::Problem]);
        assert!(
            found[0].to_string().contains("concurrent calls are not decided")
                && found[0].to_string().contains("`+zadd`")
        );
        let found = permissions(&all, LeaseUse::Unknown);
        assert_eq!(found.iter().map(Finding::level).collect::<Vec<_>>(), [Level::Ok]);
        assert!(found[0].text().ends_with("also need zadd"), "{}", found[0]);
    }

    #[test]
    fn what_denied_subjects_need_is_only_named() {
        let all = [
            permission("set", CommandPurpose::Decisions, Access::Granted),
            permission("zincrby", CommandPurpose::Denials, Access::Refused),
        ];
        let found = permissions(&all, LeaseUse::Taken);
        assert_eq!(found.iter().map(Finding::level).collect::<Vec<_>>(), [Level::Ok]);
        assert!(found[0].text().ends_with("denied subjects, which are kept only if asked for, also need zincrby"));
    }

    #[test]
    fn a_user_that_only_looks_is_told_from_one_that_cannot_decide() {
        let permissions_of = |set, get| {
            let all = [
                permission("set", CommandPurpose::Decisions, set),
                permission("getrange", CommandPurpose::Decisions, get),
                permission("pttl", CommandPurpose::Decisions, set),
                permission("append", CommandPurpose::Decisions, Access::Untried),
            ];
            let found = permissions(&all, LeaseUse::Unknown);
            (found[0].level(), found[0].text().to_owned())
        };
        let (level, text) = permissions_of(Access::Refused, Access::Granted);
        assert_eq!(level, Level::Warning);
        assert!(text.starts_with("the user may only read"), "{text}");
        let (level, text) = permissions_of(Access::Refused, Access::Refused);
        assert!(level == Level::Problem && text.contains("calls are not decided"), "{text}");
    }

    #[test]
    fn what_could_not_be_tried_is_said() {
        let all = [permission("append", CommandPurpose::Decisions, Access::Untried)];
        assert_eq!(
            permissions(&all, LeaseUse::Unknown)[0].text(),
            "all that was tried; append cannot be tried without a change"
        );
    }

    #[test]
    fn keys_of_another_program_are_a_warning() {
        let sample = Sample { keys: 9, foreign: 2, example: Some("app:session".to_owned()), is_whole: true };
        let found = keys(Some(&sample));
        assert_eq!(found.level(), Level::Warning);
        assert_eq!(found.text(), "9 with the prefix; 2 are not of this library, like `app:session`");
        assert_eq!(keys(Some(&Sample::default())).level(), Level::Ok);
    }
}
