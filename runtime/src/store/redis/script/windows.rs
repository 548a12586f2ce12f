//! The scripts for sliding windows alone. They decide most calls with less work: those whose cost fits every window. The
//! headers of `windows.lua`, for one subject, and `windows_together.lua`, for several, describe arguments and replies.

use std::slice;

use tallygate_lua as lua;
use tallygate_rules::MAX_EXACT;

use super::pack;
use super::wire::Reply;
use crate::algorithm::{Window, pack_integer};
use crate::call::{Call, CallOptions, Scope};
use crate::decision::{Report, Wait};
use crate::policy::RuleGroup;
use crate::store::answer::{Answer, Outcome};

/// Consecutive requests with the same rules and the same cost.
#[derive(Clone, Copy)]
struct Run<'r> {
    group: &'r RuleGroup,
    cost: u64,
    requests: u16,
}

/// Returns whether the script for windows decides this request. Several such requests can share a call, whatever their
/// policies and costs are. In a call with other requests, the general script decides it.
pub(crate) fn is_plain(request: Call<'_>) -> bool {
    let CallOptions { cost, report, peek, late, .. } = request.options;
    let [group] = request.policy.groups() else { return false };
    !report && !peek && !late && cost > 0 && fits_windows(group, cost)
}

/// Returns the number of subjects of each of these requests, if the script for windows of so many subjects decides them.
pub(crate) fn subjects_together(requests: &[Call<'_>]) -> Option<usize> {
    let subjects = requests.first()?.groups().len();
    let is_one = |request: &Call<'_>| request.groups().len() == subjects && is_plain_together(*request);
    let fits = subjects > 1 && rules(requests) <= lua::max_together_rules(subjects);
    (fits && requests.iter().all(is_one)).then_some(subjects)
}

fn is_plain_together(request: Call<'_>) -> bool {
    let CallOptions { report, peek, late, .. } = request.options;
    let is_whole = matches!(request.scope, Scope::Call | Scope::Rest);
    let fits = |(index, group): (usize, &RuleGroup)| {
        let cost = request.cost_at(index);
        cost > 0 && fits_windows(group, cost) && group.windows.iter().all(|window| !window.is_duplicate)
    };
    is_whole && !(report || peek || late) && request.groups().iter().enumerate().all(fits)
}

/// Whether all rules are sliding windows, each large enough for the cost.
fn fits_windows(group: &RuleGroup, cost: u64) -> bool {
    let is_large_enough = group.windows.iter().all(|window| {
        let weight = if window.is_duplicate { 1 } else { cost };
        weight <= window.count
    });
    let rules = 1..=lua::MAX_PLAIN_RULES;
    rules.contains(&group.rules.len()) && group.is_windows && is_large_enough
}

/// The number of rules for which the script is written: the most rules of a request.
pub(crate) fn rules(requests: &[Call<'_>]) -> usize {
    requests.iter().flat_map(|request| request.policy.groups()).map(|group| group.rules.len()).max().unwrap_or_default()
}

/// Packs the arguments for the script with this number of rules: one for each run of requests.
pub(crate) fn pack(requests: &[Call<'_>], rules: usize) -> Vec<Vec<u8>> {
    let mut runs: Vec<Run<'_>> = Vec::new();
    for request in requests {
        let Some(group) = group(request) else { continue };
        let cost = request.options.cost;
        match runs.last_mut() {
            Some(run) if run.cost == cost && run.requests < u16::MAX && are_alike(run.group, group) => {
                run.requests += 1;
            }
            _ => runs.push(Run { group, cost, requests: 1 }),
        }
    }
    runs.into_iter().map(|run| run.pack(rules)).collect()
}

/// Packs the arguments for the script for several subjects, each with this number of rules: one for each request.
pub(crate) fn pack_together(requests: &[Call<'_>], rules: usize) -> Vec<Vec<u8>> {
    requests.iter().map(|request| pack_subjects(*request, rules)).collect()
}

/// Packs the fields of the subjects of a request.
fn pack_subjects(request: Call<'_>, rules: usize) -> Vec<u8> {
    let subjects = || request.groups().iter().enumerate().map(|(index, group)| (group, request.cost_at(index)));
    let mut packed = Vec::with_capacity(64 * subjects().len() * (1 + rules));
    subjects().for_each(|(group, cost)| pack_rules(&mut packed, group, cost, rules));
    subjects().for_each(|(group, cost)| pack_terms(&mut packed, group, cost));
    for (group, cost) in subjects() {
        packed.push(b'-');
        pack::decimal(&mut packed, near(group, cost, rules));
    }
    for (group, cost) in subjects() {
        let near = near(group, cost, rules);
        for (_, back) in backs(group, cost, rules) {
            if back > near { write_range(&mut packed, back) } else { packed.extend([0, 0]) }
        }
    }
    for (group, _) in subjects() {
        let end = packed.len() + lua::TTL_BYTES;
        pack::decimal(&mut packed, pack::ttl_ms(group.longest_us));
        packed.resize(end, 0);
    }
    packed.push(0);
    packed
}

/// Returns how many bytes of the end of a log are read first. More bytes take longer than another read, unless they are
/// few.
fn near(group: &RuleGroup, cost: u64, rules: usize) -> u64 {
    let backs = backs(group, cost, rules).map(|(_, back)| back);
    let near = backs.filter(|&back| back <= lua::END_BYTES as u64).max();
    near.unwrap_or_default().max(2 * lua::ENTRY_BYTES as u64)
}

/// Packs the numbers of the rules, the reach of the windows, what the call weighs, and the TTL.
fn pack_windows(group: &RuleGroup, cost: u64, rules: usize) -> Vec<u8> {
    let mut packed = Vec::with_capacity(64 + 32 * rules);
    pack_rules(&mut packed, group, cost, rules);
    pack_terms(&mut packed, group, cost);
    pack::decimal(&mut packed, pack::ttl_ms(group.longest_us));
    packed
}

fn pack_rules(packed: &mut Vec<u8>, group: &RuleGroup, cost: u64, rules: usize) {
    for (window, back) in backs(group, cost, rules) {
        packed.extend(&(back - 1).to_be_bytes()[3..]);
        pack_integer(packed, window.per_us);
    }
}

fn pack_terms(packed: &mut Vec<u8>, group: &RuleGroup, cost: u64) {
    pack_integer(packed, group.reach_us);
    packed.extend(pack::most_bytes(group).to_be_bytes());
    packed.extend(pack::four(cost.min(group.largest)));
}

/// Packs where the entry at `back` has its time.
fn write_range(packed: &mut Vec<u8>, back: u64) {
    for from_end in [back, back + 1 - lua::INTEGER_BYTES as u64] {
        packed.push(b'-');
        pack::decimal(packed, from_end);
    }
}

/// Returns each window, and the distance in bytes from the end of a log to the entry that leaves too little room, if each
/// call weighs 1. If a policy has fewer rules, its last one is repeated, which does not change the decision.
fn backs(group: &RuleGroup, cost: u64, rules: usize) -> impl Iterator<Item = (Window, u64)> {
    let last = ordered(group).last();
    ordered(group).chain(last.into_iter().cycle()).take(rules).map(move |window| {
        let weight = if window.is_duplicate { 1 } else { cost };
        (*window, lua::ENTRY_BYTES as u64 * (window.count.saturating_sub(weight) + 1))
    })
}

/// Reads the server's time and the replies to several requests, which have so many rules for each subject; `None` if the
/// reply is malformed.
pub(crate) fn read(reply: &[u8], requests: &[Call<'_>], rules: usize) -> Option<(u64, Vec<Reply>)> {
    let (now, rest) = reply.split_at_checked(lua::INTEGER_BYTES)?;
    let at_us = integer(now)?;
    let (codes, mut waits) = rest.split_at_checked(requests.len())?;
    let mut replies = Vec::with_capacity(requests.len());
    for (request, &code) in requests.iter().zip(codes) {
        let reply = match code {
            lua::PLAIN_ADMITTED => admitted(at_us),
            lua::PLAIN_UNREADABLE => Reply::Unreadable,
            lua::PLAIN_ASK_AGAIN => Reply::AskAgain,
            rule => {
                let (wait, others) = waits.split_at_checked(lua::INTEGER_BYTES)?;
                waits = others;
                denied(request, usize::from(rule), rules, wait, at_us)?
            }
        };
        replies.push(reply);
    }
    waits.is_empty().then_some((at_us, replies))
}

/// Reads the reply of the script for one request. If the request is admitted, it is an entry of the log.
pub(crate) fn read_one(reply: &[u8], request: &Call<'_>, rules: usize) -> Option<(u64, Vec<Reply>)> {
    if reply.len() != lua::ENTRY_BYTES {
        return read(reply, slice::from_ref(request), rules);
    }
    let at_us = integer(reply.get(..lua::INTEGER_BYTES)?)?;
    Some((at_us, vec![admitted(at_us)]))
}

fn admitted(at_us: u64) -> Reply {
    Reply::Answer(Answer::new(Outcome::Admitted, Report::default(), at_us))
}

fn denied(request: &Call<'_>, code: usize, rules: usize, wait: &[u8], at_us: u64) -> Option<Reply> {
    let group = request.policy.groups().get(code.checked_div(rules)?)?;
    let window = ordered(group).nth(code % rules)?;
    let wait_us = integer(wait).filter(|&us| us > 0)?;
    let rule = request.policy.position(request.policy.first_place(code / rules) + window.place);
    let outcome = Outcome::denied(rule, Wait::us(wait_us));
    Some(Reply::Answer(Answer::new(outcome, Report::default(), at_us)))
}

/// Reads a time of seven bytes; `None` if there are more or fewer bytes, or if the number is too great.
fn integer(bytes: &[u8]) -> Option<u64> {
    let bytes: [u8; lua::INTEGER_BYTES] = bytes.try_into().ok()?;
    let mut all = [0; 8];
    all[8 - lua::INTEGER_BYTES..].copy_from_slice(&bytes);
    Some(u64::from_be_bytes(all)).filter(|&us| us <= MAX_EXACT)
}

fn group<'r>(request: &Call<'r>) -> Option<&'r RuleGroup> {
    request.policy.groups().first()
}

fn are_alike(one: &RuleGroup, other: &RuleGroup) -> bool {
    std::ptr::eq(one, other) || one.rules == other.rules
}

/// The windows in the order in which the script takes them: duplicate rules first.
fn ordered(group: &RuleGroup) -> impl Iterator<Item = &Window> + Clone {
    let of = |is_duplicate| group.windows.iter().filter(move |window: &&Window| window.is_duplicate == is_duplicate);
    of(true).chain(of(false))
}

impl Run<'_> {
    /// Packs the fields for the script with this number of rules.
    fn pack(self, rules: usize) -> Vec<u8> {
        let Self { group, cost, requests } = self;
        let mut packed = pack_windows(group, cost, rules);
        if !pack::is_read_whole(group) {
            backs(group, cost, rules).for_each(|(_, back)| write_range(&mut packed, back));
        }
        let duplicates = group.windows.iter().filter(|window| window.is_duplicate).count();
        packed.extend(requests.to_be_bytes());
        packed.push(u8::try_from(duplicates).unwrap_or(u8::MAX));
        packed
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tallygate_rules::{Ban, Rule};

    use super::*;
    use crate::policy::{Policy, PolicyBuilder};
    use crate::subject::Subject;

    const MINUTE: Duration = Duration::from_secs(60);

    fn window(count: u64) -> PolicyBuilder {
        Policy::builder("p").rule(Rule::sliding_window(count, MINUTE))
    }

    fn is_plain_with(policy: &Policy, options: CallOptions) -> bool {
        is_plain(Call::new(policy, &[], options))
    }

    #[test]
    fn windows_and_duplicates_of_one_subject_are_plain() {
        let policy = window(2).rule(Rule::sliding_window(3, 2 * MINUTE)).rule(Rule::duplicate(MINUTE / 60));
        assert!(is_plain_with(&policy.build().unwrap(), CallOptions::PLAIN));
    }

    #[test]
    fn other_rules_bans_and_subjects_are_not_plain() {
        let bucket = window(2).rule(Rule::fixed_window(1, 2 * MINUTE));
        let banning = window(2).ban(Ban::new(3, MINUTE, 60 * MINUTE));
        let several = window(2).rule_on("network", Rule::sliding_window(2, MINUTE));
        for policy in [bucket, banning, several] {
            assert!(!is_plain_with(&policy.build().unwrap(), CallOptions::PLAIN));
        }
    }

    #[test]
    fn requests_of_as_many_subjects_are_decided_together() {
        let of = |subjects: usize, rules: u64| {
            let rule = |rule| Rule::sliding_window(2 + rule, u32::try_from(rule).unwrap() * MINUTE);
            let labels = (1..subjects).map(|subject| format!("s{subject}"));
            let policy = Policy::builder("p").rules((1..=rules).map(rule));
            labels.fold(policy, |policy, label| policy.rule_on(label, rule(1))).build().unwrap()
        };
        let together = |policies: &[Policy]| {
            let subjects = [(); 5].map(|()| Subject::everyone().key());
            let request = |policy| {
                let groups = Policy::groups(policy).len();
                Call::new(policy, &subjects[..groups], CallOptions::PLAIN)
            };
            let requests: Vec<_> = policies.iter().map(request).collect();
            subjects_together(&requests)
        };
        assert_eq!(together(&[of(2, 1), of(2, 11)]), Some(2));
        assert_eq!(together(&[of(4, 4)]), Some(4));
        assert_eq!(together(&[of(2, 1), of(3, 1)]), None);
        assert_eq!(together(&[of(2, 1), of(2, 12)]), None);
        assert_eq!([together(&[of(1, 1)]), together(&[of(4, 5)]), together(&[of(5, 1)]), together(&[])], [None; 4]);
    }

    #[test]
    fn of_several_subjects_the_rest_of_a_call_is_plain_if_it_is_one() {
        let users = window(9).rule_on("tenant", Rule::sliding_window(1_000, MINUTE)).rule(Rule::duplicate(MINUTE / 60));
        let policy = users.prefetch(MINUTE / 60).build().unwrap();
        let rest = policy.stored().unwrap().rest(&[true, false]);
        assert!(is_plain_with(&rest, CallOptions::PLAIN));
        let subjects = [Subject::everyone().key()];
        let denied = denied(&Call::new(&rest, &subjects, CallOptions::PLAIN), 0, 2, &[0, 0, 0, 0, 0, 0, 9], 7).unwrap();
        // The third rule of the policy is the second of the rest, and the script takes it first.
        let outcome = Outcome::denied(2, Wait::us(9));
        assert_eq!(denied, Reply::Answer(Answer::new(outcome, Report::default(), 7)));
        assert!(!is_plain_with(&policy.stored().unwrap().rest(&[true, true]), CallOptions::PLAIN));
    }

    #[test]
    fn a_call_that_is_charged_as_usual_and_may_fit_is_plain() {
        let policy = window(2).rule(Rule::duplicate(MINUTE / 60)).build().unwrap();
        for (cost, expected) in [(0, false), (1, true), (2, true), (3, false)] {
            assert_eq!(is_plain_with(&policy, CallOptions { cost, ..CallOptions::PLAIN }), expected);
        }
        assert!(!is_plain_with(&policy, CallOptions { report: true, ..CallOptions::PLAIN }));
        assert!(!is_plain_with(&policy, CallOptions { peek: true, ..CallOptions::PLAIN }));
        assert!(!is_plain_with(&policy.with_counts([0, 1]), CallOptions::PLAIN));
    }
}
