//! A cluster: slots that move, nodes that fail, come and go, calls whose subjects are in several slots, and hash tags.

mod masters;
mod moving;
mod pauses;
mod several;
mod tags;

use tallygate::{Limiter, Subject};

/// Returns a subject whose slot is that of the tag.
fn tagged(limiter: &Limiter, tag: &str, value: usize) -> Subject {
    limiter.subject().text("{").value(tag).text("}:").value(value).build()
}

/// Returns the key of a subject under the policy of a pressure.
fn key(subject: &Subject) -> String {
    format!("tallygate:pressure/w1h:{subject}")
}

/// Returns so many subjects, spread over all slots.
fn spread(number: usize) -> Vec<Subject> {
    (0..number).map(Subject::of).collect()
}
