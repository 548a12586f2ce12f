//! What is no tally: it admits no call, and no script runs on because of it.

use std::collections::BTreeSet;

use super::violation::Violation;
use crate::history::{Deed, Entry, Event, Verdict};

const ENDS: &str = "each script ends soon, whatever lies under its keys";
const REFUSED: &str = "what is no tally admits no call";

pub(super) fn check(history: &[Entry]) -> Result<(), Violation> {
    let mut forged = BTreeSet::new();
    for entry in history {
        match &entry.event {
            Event::Overrun { server } => {
                let how = format!("a script on server {server} runs on");
                return Err(Violation { us: entry.us, promise: ENDS, how });
            }
            Event::Forged { keys } => forged.extend(keys),
            Event::Lost { .. } => forged.clear(),
            Event::Done { deed: Deed::Removed { keys }, .. } => forged.retain(|key| !keys.contains(key)),
            Event::Done { deed: Deed::Decided { keys, verdict: Verdict::Admitted, .. }, .. } => {
                if let Some(key) = keys.iter().find(|key| forged.contains(key)) {
                    return Err(Violation { us: entry.us, promise: REFUSED, how: format!("{key} is none") });
                }
            }
            _ => {}
        }
    }
    Ok(())
}
