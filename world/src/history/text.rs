//! A history as a person reads it: one line for each entry, the same for the same seed byte for byte.

use std::fmt;

use super::{Answer, Deed, Entry, Event, Verdict};

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, us) = (self.us / 1_000_000, self.us % 1_000_000);
        write!(f, "{seconds:>6}.{us:06}  {}", self.event)
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Called { call, plan, local_us } => write!(f, "call {call}: {plan} at {local_us}"),
            Self::Answered { call, local_us, paused_us: 0, answer } => {
                write!(f, "call {call}: {answer} at {local_us}")
            }
            Self::Answered { call, local_us, paused_us, answer } => {
                write!(f, "call {call}: {answer} at {local_us}, paused for {paused_us}")
            }
            Self::Heard { call, local_us, said_us, heard_us } => {
                let us = |wait: &Option<u64>| wait.map_or_else(|| "-".to_owned(), |us| us.to_string());
                write!(f, "call {call}: its partner said to wait {}, heard {} at {local_us}", us(said_us), us(heard_us))
            }
            Self::Dropped { call } => write!(f, "call {call}: dropped"),
            Self::Ended { call } => write!(f, "call {call}: over"),
            Self::Done { server, branch: 0, deed, .. } => write!(f, "    server {server}: {deed}"),
            Self::Done { server, deed, .. } => write!(f, "    server {server}, replaced: {deed}"),
            Self::Named { server } => write!(f, "named: server {server}"),
            Self::Lost { how } => write!(f, "lost: {how}"),
            Self::Forged { keys } => write!(f, "forged: {}", keys.join(" ")),
            Self::Overrun { server } => write!(f, "server {server}: a script runs on"),
            Self::Fault { what } => write!(f, "fault: {what}"),
            Self::Killed { process } => write!(f, "killed process {process}"),
            Self::Quiet => write!(f, "quiet"),
            Self::Final { fault: None } => write!(f, "final: as it should be"),
            Self::Final { fault: Some(fault) } => write!(f, "final: {fault}"),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Admitted(by) => write!(f, "admitted by {}", by.as_str()),
            Self::Denied { by, kind, retry_us: Some(us) } => {
                write!(f, "denied by {} as {kind:?}, again in {us}", by.as_str())
            }
            Self::Denied { by, kind, retry_us: None } => write!(f, "denied by {} as {kind:?}", by.as_str()),
            Self::Failed(kind) => write!(f, "failed as {kind:?}"),
            Self::Done => write!(f, "done"),
            Self::Drained(left) => write!(f, "drained but for {left}"),
        }
    }
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decided { keys, costs, is_late, is_charged, verdict, at_us, wait_us, .. } => {
                let what = if *is_charged { "" } else { "peek: " };
                let late = if *is_late { "afterwards: " } else { "" };
                write!(f, "{what}{late}{verdict} {} for {} at {at_us}", keys.join(" "), numbers(costs))?;
                if *wait_us > 0 { write!(f, ", again in {wait_us}") } else { Ok(()) }
            }
            Self::Corrected { keys, admitted_us, costs, used, changed } => {
                let (costs, used) = (numbers(costs), numbers(used));
                write!(f, "corrected {} of {admitted_us} from {costs} to {used}: {changed} changed", keys.join(" "))
            }
            Self::Banned { key } => write!(f, "banned {key}"),
            Self::Paused { key, at_us, length_us, ends_us } => {
                write!(f, "paused {key} for {length_us} at {at_us}, until {ends_us}")
            }
            Self::FoundPaused { key, at_us, left_us } => write!(f, "found {key} at {at_us}, for {left_us}"),
            Self::Probed { key, name, at_us, length_us, left_us } => {
                write!(f, "probe {name:x} of {key} for {length_us} at {at_us}, which stood at {left_us}")
            }
            Self::Removed { keys } => write!(f, "removed {}", keys.join(" ")),
        }
    }
}

/// One number for each tally, or one that stands for all.
fn numbers(of_tallies: &[u64]) -> String {
    match of_tallies {
        [first, others @ ..] if others.iter().all(|other| other == first) => first.to_string(),
        all => all.iter().map(u64::to_string).collect::<Vec<_>>().join(" and "),
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Admitted => write!(f, "admitted"),
            Self::Denied(rule) => write!(f, "denied by rule {rule}"),
            Self::Banned => write!(f, "banned"),
            Self::Undecided => write!(f, "undecided"),
        }
    }
}
