//! The queue of policies for the registry.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use crate::bounds::MOST_POLICIES;
use crate::store::{Progress, RegistrationResult, random_fraction};
use crate::system::TokioInstant;

/// The most policies that one call registers, and the most bytes of their descriptions: the server takes less than a
/// millisecond for them.
const MOST_AT_ONCE: usize = 32;
const MOST_BYTES_AT_ONCE: usize = 32 * 1024;

/// After a policy is registered, the same name with other rules has to wait this long.
const CHANGE_PAUSE: Duration = Duration::from_secs(60);

/// All policies are registered again about a day later. The jitter spreads the processes of a fleet.
const RENEWAL: Duration = Duration::from_secs(22 * 3_600);
const JITTER: Duration = Duration::from_secs(4 * 3_600);

/// After a new connection, the server may have lost the list. The policies are registered again within this time.
const RECONNECTED: Duration = Duration::from_secs(60);

/// The most steps of a search for unused policies, even if the server does not report its end.
const MOST_STEPS: u32 = 1_000;

/// The pauses between attempts that fail.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// The name of a policy as it stands in keys, and its description.
pub(super) type PolicyText = (Arc<str>, Arc<str>);

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RegistrationOutcome {
    /// The policy is registered, or will be.
    Done,
    TooLong,
    NoPlace,
}

pub(super) struct RegistrationQueue {
    /// The text that was registered last under each name.
    registered: HashMap<Arc<str>, RegisteredText>,
    pending: Vec<PolicyText>,
    /// The texts of policies that have changed too soon. They are written later.
    delayed: Vec<PolicyText>,
    /// Policies that found no place. They are written again if the search removes unused policies.
    refused: Vec<PolicyText>,
    /// The position of the search for unused policies.
    search: Progress,
    /// The number of steps of the search.
    steps: u32,
    /// The number of policies that the search has removed since the last refusal.
    removed: u64,
    failures: u32,
    retry: TokioInstant,
    renewal: TokioInstant,
    /// The number of connections to the server so far; 0 if unknown.
    connections: u64,
}

struct RegisteredText {
    description: Arc<str>,
    since: TokioInstant,
}

impl RegisteredText {
    /// Whether it was registered so lately that another text has to wait.
    fn is_new(&self, now: TokioInstant) -> bool {
        now.saturating_duration_since(self.since) < CHANGE_PAUSE
    }
}

/// Puts a text in the place of an earlier one of the same name.
fn replace(texts: &mut Vec<PolicyText>, text: PolicyText) {
    texts.retain(|(name, _)| *name != text.0);
    texts.push(text);
}

impl RegistrationQueue {
    pub(super) fn new(now: TokioInstant) -> Self {
        Self {
            registered: HashMap::new(),
            pending: Vec::new(),
            delayed: Vec::new(),
            refused: Vec::new(),
            search: Progress::start(),
            steps: 0,
            removed: 0,
            failures: 0,
            retry: now,
            renewal: now + RENEWAL + JITTER.mul_f64(random_fraction()),
            connections: 0,
        }
    }

    /// Forgets the registered policies. What is still to be written is written, because its policy may decide no call any more.
    pub(super) fn renew(&mut self, now: TokioInstant) {
        let Self { failures, retry, connections, .. } = *self;
        let (pending, delayed) = (mem::take(&mut self.pending), mem::take(&mut self.delayed));
        *self = Self { pending, delayed, failures, retry, connections, ..Self::new(now) };
    }

    /// Whether to register all policies again, because a day has passed or the connection is new.
    pub(super) fn is_renewal_due(&mut self, now: TokioInstant, connections: u64) -> bool {
        let known = mem::replace(&mut self.connections, connections);
        if known > 0 && connections > 0 && known != connections {
            self.renewal = self.renewal.min(now + RECONNECTED.mul_f64(random_fraction()));
        }
        now >= self.renewal
    }

    pub(super) fn push(&mut self, name: &str, description: &str, now: TokioInstant) -> RegistrationOutcome {
        let text: PolicyText = (name.into(), description.into());
        match self.registered.get(name) {
            // A text in between is not written any more.
            Some(known) if *known.description == *description => self.delayed.retain(|(delayed, _)| *delayed != text.0),
            Some(known) if known.is_new(now) => replace(&mut self.delayed, text),
            None if self.registered.len().max(self.pending.len()) >= MOST_POLICIES => {
                return RegistrationOutcome::NoPlace;
            }
            _ => self.enqueue(text, now),
        }
        RegistrationOutcome::Done
    }

    fn enqueue(&mut self, text: PolicyText, now: TokioInstant) {
        let (name, description) = text.clone();
        replace(&mut self.pending, text);
        self.registered.insert(name, RegisteredText { description, since: now });
    }

    /// Whether there is anything to write now.
    pub(super) fn is_due(&mut self, now: TokioInstant) -> bool {
        let registered = &self.registered;
        let is_over = |(name, _): &mut PolicyText| registered.get(name).is_none_or(|known| !known.is_new(now));
        let over: Vec<_> = self.delayed.extract_if(.., is_over).collect();
        for text in over {
            self.enqueue(text, now);
        }
        self.has_work() && now >= self.retry
    }

    /// Returns what to write next, and where the search continues; `None` if there is nothing to do.
    pub(super) fn next(&mut self) -> Option<(Vec<PolicyText>, Progress)> {
        if !self.has_work() {
            return None;
        }
        let mut bytes = 0;
        let fitting = self.pending.iter().take(MOST_AT_ONCE).take_while(|(_, description)| {
            bytes += description.len();
            bytes <= MOST_BYTES_AT_ONCE
        });
        let fitting = fitting.count();
        Some((self.pending.drain(..fitting).collect(), self.search.clone()))
    }

    fn has_work(&self) -> bool {
        !self.pending.is_empty() || self.search.is_running()
    }

    /// Records a write. Returns whether policies found no place.
    pub(super) fn written(
        &mut self,
        entries: Vec<PolicyText>,
        registered: RegistrationResult,
        now: TokioInstant,
    ) -> bool {
        self.failures = 0;
        self.retry = now;
        self.steps = self.steps.saturating_add(1);
        self.search = if self.steps < MOST_STEPS { registered.progress } else { Progress::Done };
        self.removed += registered.removed;
        if registered.refused > 0 {
            self.refused.extend(entries);
        }
        if self.search != Progress::Done || self.refused.is_empty() {
            return false;
        }
        let refused = mem::take(&mut self.refused);
        if mem::take(&mut self.removed) == 0 {
            return true;
        }
        self.pending.extend(refused);
        false
    }

    pub(super) fn failed(&mut self, entries: Vec<PolicyText>, now: TokioInstant) {
        self.pending.splice(..0, entries);
        let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(self.failures)).min(LONGEST_PAUSE);
        self.failures = self.failures.saturating_add(1);
        self.retry = now + pause;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(entries: &[PolicyText]) -> Vec<&str> {
        entries.iter().map(|(name, _)| &**name).collect()
    }

    fn registered(progress: Progress, removed: u64, refused: u64) -> RegistrationResult {
        RegistrationResult { progress, removed, refused }
    }

    #[test]
    fn policies_that_come_at_once_are_written_in_calls_of_bounded_work() {
        let now = TokioInstant::now();
        let mut queue = RegistrationQueue::new(now);
        for number in 0..40 {
            assert_eq!(queue.push(&format!("p{number}"), "short", now), RegistrationOutcome::Done);
        }
        let long = "x".repeat(MOST_BYTES_AT_ONCE / 2 + 1);
        queue.push("q", &long, now);
        queue.push("r", &long, now);
        let mut sizes = Vec::new();
        while let Some((entries, _)) = queue.next() {
            sizes.push(entries.len());
            queue.written(entries, registered(Progress::Done, 0, 0), now);
        }
        assert_eq!(sizes, [MOST_AT_ONCE, 9, 1]);
    }

    #[test]
    fn policies_of_one_name_are_written_once_and_then_once_a_minute_at_most() {
        let now = TokioInstant::now();
        let mut queue = RegistrationQueue::new(now);
        let written = |queue: &mut RegistrationQueue, now| {
            let (entries, _) = queue.is_due(now).then(|| queue.next()).flatten()?;
            queue.written(entries.clone(), registered(Progress::Done, 0, 0), now);
            entries.first().map(|(_, description)| description.to_string())
        };
        for text in ["1 per 1h", "1 per 1h", "2 per 1h", "3 per 1h"] {
            assert_eq!(queue.push("p", text, now), RegistrationOutcome::Done);
        }
        assert_eq!(written(&mut queue, now).as_deref(), Some("1 per 1h"));
        assert_eq!(written(&mut queue, now + CHANGE_PAUSE / 2), None);
        // The newest of those that came too soon, although its policy may be asked about no more.
        assert_eq!(written(&mut queue, now + CHANGE_PAUSE).as_deref(), Some("3 per 1h"));
        assert_eq!(written(&mut queue, now + 9 * CHANGE_PAUSE), None);
        for text in ["4 per 1h", "5 per 1h", "4 per 1h"] {
            assert_eq!(queue.push("p", text, now + 9 * CHANGE_PAUSE), RegistrationOutcome::Done);
        }
        assert_eq!(written(&mut queue, now + 9 * CHANGE_PAUSE).as_deref(), Some("4 per 1h"));
        assert_eq!(written(&mut queue, now + 11 * CHANGE_PAUSE), None, "it changed back before the other was written");
    }

    #[test]
    fn what_failed_is_written_after_a_pause_that_grows() {
        let mut now = TokioInstant::now();
        let mut queue = RegistrationQueue::new(now);
        assert!(!queue.is_due(now), "there is nothing to write");
        queue.push("p", "1 per 1h", now);
        for pause in [1, 2, 4, 8] {
            assert!(queue.is_due(now));
            let (entries, _) = queue.next().unwrap();
            queue.failed(entries, now);
            now += Duration::from_secs(pause);
            assert!(!queue.is_due(now - Duration::from_millis(1)));
        }
        assert!(queue.is_due(now));
    }

    #[test]
    fn what_found_no_place_is_written_once_more_if_one_was_made() {
        let now = TokioInstant::now();
        let mut queue = RegistrationQueue::new(now);
        queue.push("p", "1 per 1h", now);
        let (entries, looking) = queue.next().unwrap();
        assert_eq!(looking, Progress::start());
        assert!(!queue.written(entries, registered(Progress::At("7".to_owned()), 0, 1), now));
        let (entries, _) = queue.next().unwrap();
        assert!(entries.is_empty(), "it goes on looking");
        assert!(!queue.written(entries, registered(Progress::Done, 1, 0), now));
        let (entries, _) = queue.next().unwrap();
        assert_eq!(names(&entries), ["p"]);
        assert!(queue.written(entries, registered(Progress::Done, 0, 1), now), "it is reported");
        assert!(queue.next().is_none());
    }

    #[test]
    fn about_a_day_later_all_is_written_again() {
        let now = TokioInstant::now();
        let mut queue = RegistrationQueue::new(now);
        let hours = |hours: u64| now + Duration::from_secs(3_600 * hours);
        assert!(!queue.is_renewal_due(hours(21), 1) && queue.is_renewal_due(hours(27), 1));
        queue.push("p", "1 per 1h", now);
        queue.next().unwrap();
        queue.renew(hours(27));
        assert_eq!(queue.push("p", "1 per 1h", hours(27)), RegistrationOutcome::Done);
        assert_eq!(names(&queue.next().unwrap().0), ["p"]);
    }

    #[test]
    fn what_is_to_be_written_is_also_written_after_a_renewal_and_only_its_newest_text() {
        let now = TokioInstant::now();
        let mut queue = RegistrationQueue::new(now);
        queue.push("p", "1 per 1h", now);
        queue.push("q", "1 per 1h", now);
        queue.renew(now);
        assert_eq!(queue.push("q", "2 per 1h", now), RegistrationOutcome::Done);
        let (entries, _) = queue.next().unwrap();
        let texts: Vec<_> = entries.iter().map(|(name, text)| (&**name, &**text)).collect();
        assert_eq!(texts, [("p", "1 per 1h"), ("q", "2 per 1h")]);
    }

    #[test]
    fn all_is_written_again_within_a_minute_of_a_new_connection() {
        let now = TokioInstant::now();
        let minute = Duration::from_secs(60);
        let mut queue = RegistrationQueue::new(now);
        assert!(!queue.is_renewal_due(now + minute, 1), "it is the first one");
        assert!(!queue.is_renewal_due(now + minute, 0), "it is not known any more which server it is");
        assert!(!queue.is_renewal_due(now + 2 * minute, 1));
        queue.is_renewal_due(now, 2);
        assert!(queue.is_renewal_due(now + minute, 2));
        queue.renew(now);
        assert!(!queue.is_renewal_due(now + minute, 2));
    }
}
