use std::time::Duration;

use tallygate_rules::Rule;

use super::*;
use crate::policy::Policy;
use crate::subject::Subject;

const SECOND: u64 = 1_000_000;
const NOW: u64 = 100 * SECOND;

fn pausable() -> Policy {
    Policy::builder("p").rule(Rule::sliding_window(1, Duration::from_secs(1))).pausable().build().unwrap()
}

/// The pauses of a process that believes an answer for five seconds, and one subject.
struct OneSubject {
    pauses: Pauses,
    policy: Policy,
    subject: SubjectKey,
}

impl OneSubject {
    fn new() -> Self {
        Self { pauses: Pauses::new(5 * SECOND), policy: pausable(), subject: Subject::of("s").key() }
    }

    fn id(&self) -> TallyId<'_> {
        TallyId::of_pause(&self.policy, &self.subject).unwrap()
    }

    fn say(&self, at_us: u64, length_us: u64) -> PauseToSend {
        self.pauses.say(self.id(), at_us, length_us, PauseSource::default())
    }

    fn say_if_new(&self, at_us: u64, length_us: u64) -> Option<PauseToSend> {
        self.pauses.say_if_new(self.id(), at_us, length_us, PauseSource::default())
    }

    /// Asks the store, and notes its answer after what happens meanwhile.
    fn hear_after(&self, at_us: u64, left_us: u64, meanwhile: impl FnOnce()) {
        let asked = self.pauses.moment();
        meanwhile();
        self.pauses.hear(self.id(), asked, at_us, left_us);
    }

    fn known(&self, at_us: u64) -> Option<KnownPause> {
        self.pauses.find(self.id(), || at_us).filter(|known| known.due != PauseDue::Probe)
    }

    /// Takes a step of a probe. Returns how many seconds its place is still taken; `None` if no call is tried.
    fn probe(&self, at_us: u64, name: LeaseName, step: ProbeStep) -> Option<u64> {
        let known = self.pauses.probe(self.id(), at_us, name, step);
        known.filter(|known| known.due == PauseDue::Probe).map(|known| known.left_us / SECOND)
    }

    /// How many seconds the subject is still paused.
    fn left(&self, at_us: u64) -> Option<u64> {
        self.known(at_us).map(|known| known.left_us / SECOND)
    }

    fn due(&self, at_us: u64) -> PauseDue {
        self.known(at_us).unwrap().due
    }
}

#[test]
fn a_pause_lasts_until_its_end_and_a_shorter_one_leaves_it() {
    let one = OneSubject::new();
    one.say(NOW, 10 * SECOND);
    one.say(NOW + SECOND, 2 * SECOND);
    assert_eq!(one.left(NOW + SECOND), Some(9));
    assert_eq!(one.known(NOW + 10 * SECOND - 1).unwrap().left_us, 1);
    assert_eq!(one.left(NOW + 10 * SECOND), None);
    one.say(NOW + 10 * SECOND, SECOND);
    assert_eq!(one.left(NOW + 10 * SECOND), Some(1));
    one.pauses.remove(one.id(), NOW + 10 * SECOND);
    assert_eq!(one.left(NOW + 10 * SECOND), None);
}

#[test]
fn a_pause_is_over_when_the_clock_was_set_back() {
    let one = OneSubject::new();
    one.say(NOW, SECOND);
    assert_eq!(one.left(NOW / 2), None);
}

#[test]
fn what_the_store_has_not_confirmed_is_not_shortened_by_its_answers() {
    let one = OneSubject::new();
    // It could not be stored; then a shorter one is.
    one.say(NOW, 600 * SECOND);
    let shorter = one.say(NOW, 10 * SECOND);
    assert_eq!(shorter.length_us, 600 * SECOND);
    // An answer to an earlier question knows of neither.
    one.hear_after(NOW, 5 * SECOND, || ());
    one.hear_after(NOW, 0, || ());
    assert_eq!(one.left(NOW), Some(600));
    one.pauses.hear(one.id(), shorter.changed, NOW, shorter.length_us);
    assert_eq!(one.due(NOW + 5 * SECOND), PauseDue::Ask);
}

#[test]
fn confirmations_that_come_out_of_order_leave_the_longest() {
    let one = OneSubject::new();
    let first = one.say(NOW, 10 * SECOND);
    let second = one.say(NOW, 600 * SECOND);
    one.pauses.hear(one.id(), second.changed, NOW, second.length_us);
    one.pauses.hear(one.id(), first.changed, NOW, first.length_us);
    assert_eq!(one.left(NOW), Some(600));
}

#[test]
fn the_answer_to_a_question_about_a_stored_pause_shortens_or_ends_it() {
    for left in [None, Some(3)] {
        let one = OneSubject::new();
        one.hear_after(NOW, 60 * SECOND, || ());
        assert_eq!(one.due(NOW + 4 * SECOND), PauseDue::Nothing);
        assert_eq!(one.due(NOW + 5 * SECOND), PauseDue::Ask);
        one.hear_after(NOW + 5 * SECOND, left.unwrap_or_default() * SECOND, || ());
        assert_eq!(one.left(NOW + 5 * SECOND), left);
    }
}

#[test]
fn an_answer_does_not_end_what_was_said_after_its_question() {
    for length in [1, 60] {
        let one = OneSubject::new();
        one.hear_after(NOW, 20 * SECOND, || ());
        let later = NOW + 6 * SECOND;
        one.hear_after(later, 0, || _ = one.say(later, length * SECOND));
        assert_eq!((one.left(later), one.due(later)), (Some(length.max(14)), PauseDue::Nothing));
    }
}

#[test]
fn what_is_not_stored_is_sent_again_from_time_to_time() {
    let one = OneSubject::new();
    one.say(NOW, 60 * SECOND);
    assert_eq!(one.due(NOW), PauseDue::Nothing);
    let later = NOW + 5 * SECOND;
    assert_eq!(one.due(later), PauseDue::Send);
    let sent = one.pauses.begin_sending(one.id(), later).unwrap();
    assert_eq!(sent.length_us, 55 * SECOND);
    assert_eq!(one.pauses.begin_sending(one.id(), later), None);
    assert_eq!(one.due(later + 5 * SECOND), PauseDue::Send);
    one.pauses.hear(one.id(), sent.changed, later, sent.length_us);
    assert_eq!(one.due(later + 5 * SECOND), PauseDue::Ask);
}

#[test]
fn a_second_answer_that_says_no_more_leaves_the_next_question_about_a_stored_pause() {
    let one = OneSubject::new();
    let sent = one.say_if_new(NOW, 3_600 * SECOND).unwrap();
    one.pauses.hear(one.id(), sent.changed, NOW, sent.length_us);
    assert_eq!(one.say_if_new(NOW + SECOND, 3_599 * SECOND), None);
    assert_eq!((one.due(NOW + 4 * SECOND), one.due(NOW + 5 * SECOND)), (PauseDue::Nothing, PauseDue::Ask));
    // Now it is not known whether another process has ended it.
    let doubted = one.say_if_new(NOW + 5 * SECOND, 60 * SECOND).unwrap();
    assert_eq!((doubted.length_us, one.left(NOW + 5 * SECOND)), (60 * SECOND, Some(3_595)));
}

#[test]
fn many_answers_that_end_a_moment_later_each_are_sent_at_once_and_once_more_when_that_is_due() {
    for is_confirmed in [false, true] {
        let one = OneSubject::new();
        let sent = one.say_if_new(NOW, 57 * SECOND).unwrap();
        if is_confirmed {
            one.pauses.hear(one.id(), sent.changed, NOW, sent.length_us);
        }
        let (mut now, moment) = (NOW, SECOND / 100);
        for _ in 0..23 {
            now += moment;
            assert_eq!(one.say_if_new(now, 57 * SECOND), None);
            assert_eq!(one.known(now), Some(KnownPause { left_us: 57 * SECOND, due: PauseDue::Nothing }));
        }
        // An answer about the first one does not shorten it.
        one.pauses.hear(one.id(), sent.changed, now, 56 * SECOND);
        let due = NOW + 5 * SECOND + if is_confirmed { moment } else { 0 };
        assert_eq!((one.due(due - 1), one.due(due)), (PauseDue::Nothing, PauseDue::Send));
        assert_eq!(one.say_if_new(now, 58 * SECOND).map(|to_send| to_send.length_us), Some(58 * SECOND));
    }
}

#[test]
fn one_probe_at_a_time_has_the_place_after_a_pause_until_it_ends_or_for_a_minute() {
    let (one, [first, second]) = (OneSubject::new(), [LeaseName::next(), LeaseName::next()]);
    one.say(NOW, 200 * SECOND);
    assert_eq!(one.probe(NOW, first, ProbeStep::Take), None);
    let after = NOW + 200 * SECOND;
    assert_eq!(one.probe(after, first, ProbeStep::Take), Some(0));
    assert_eq!(one.probe(after, second, ProbeStep::Take), Some(60));
    for step in [ProbeStep::GiveBack, ProbeStep::Open] {
        one.probe(after, second, step);
    }
    one.probe(after, first, ProbeStep::GiveBack);
    assert_eq!(one.probe(after, second, ProbeStep::Take), Some(0));
    let later = after + 60 * SECOND;
    assert_eq!(one.probe(later, first, ProbeStep::Take), Some(0));
    one.probe(later, second, ProbeStep::Open);
    assert_eq!(one.probe(later, second, ProbeStep::Take), Some(60));
    one.probe(later, first, ProbeStep::Open);
    assert_eq!(one.probe(later, second, ProbeStep::Take), None);
    assert!(one.pauses.is_empty());
}

#[test]
fn a_pause_closes_after_a_pause_and_as_long_again_without_one_opens() {
    let (one, name) = (OneSubject::new(), LeaseName::next());
    one.say(NOW, 10 * SECOND);
    let after = NOW + 10 * SECOND;
    one.probe(after, name, ProbeStep::Take);
    one.say(after, 3 * SECOND);
    assert_eq!((one.left(after), one.probe(after, name, ProbeStep::Open)), (Some(3), None));
    assert_eq!(one.probe(after + 5 * SECOND, name, ProbeStep::Take), Some(0));
    assert_eq!(one.probe(after + 6 * SECOND, name, ProbeStep::Take), None);
}

#[test]
fn the_time_after_a_pause_gets_no_shorter_however_it_is_prolonged_or_heard_again() {
    let prolonged: [fn(&OneSubject, u64); 2] =
        [|one, at_us| _ = one.say(at_us, 20 * SECOND), |one, at_us| one.hear_after(at_us, 20 * SECOND, || ())];
    for prolong in prolonged {
        let (one, name) = (OneSubject::new(), LeaseName::next());
        let sent = one.say(NOW, 100 * SECOND);
        one.pauses.hear(one.id(), sent.changed, NOW, sent.length_us);
        prolong(&one, NOW + 90 * SECOND);
        let ends = NOW + 110 * SECOND;
        assert_eq!(one.left(ends - SECOND), Some(1));
        assert_eq!(one.probe(ends + 99 * SECOND, name, ProbeStep::Take), Some(0));
        assert_eq!(one.probe(ends + 100 * SECOND, name, ProbeStep::Take), None);
    }
}

#[test]
fn a_stored_pause_is_over_when_the_store_tries_calls_and_one_that_is_said_meanwhile_is_not() {
    let (one, later) = (OneSubject::new(), NOW + 10 * SECOND);
    one.hear_after(NOW, 60 * SECOND, || ());
    let asked = one.pauses.moment();
    one.pauses.hear_of_probe(one.id(), asked, later);
    assert_eq!(one.left(later), None);
    assert_eq!(one.probe(later, LeaseName::next(), ProbeStep::Take), Some(0));
    one.say(later, 30 * SECOND);
    one.pauses.hear_of_probe(one.id(), asked, later);
    assert_eq!(one.left(later), Some(30));
}

fn subjects(number: usize) -> Vec<SubjectKey> {
    (0..number).map(|number| Subject::of(number).key()).collect()
}

#[test]
fn the_end_of_one_pause_leaves_all_others() {
    for number in [FEW, 2 * FEW] {
        let (pauses, policy, subjects) = (Pauses::new(0), pausable(), subjects(number));
        let ids = || subjects.iter().map(|subject| TallyId::of_pause(&policy, subject).unwrap());
        ids().for_each(|id| _ = pauses.say(id, NOW, SECOND, PauseSource::default()));
        pauses.remove(ids().next().unwrap(), NOW);
        assert_eq!(ids().filter(|id| pauses.find(*id, || NOW).is_some()).count(), number - 1);
    }
}

#[test]
fn many_pauses_are_kept_until_they_end_and_then_leave_the_table() {
    let (pauses, policy, subjects) = (Pauses::new(0), pausable(), subjects(2 * MOST_STORED));
    let ids = || subjects.iter().map(|subject| TallyId::of_pause(&policy, subject).unwrap());
    ids().for_each(|id| _ = pauses.say(id, NOW, SECOND, PauseSource::default()));
    assert!(ids().all(|id| pauses.find(id, || NOW).is_some()));
    let after = NOW + 2 * SECOND;
    assert!(ids().all(|id| pauses.find(id, || after).is_none()));
    assert!(pauses.is_empty());
}

#[test]
fn of_the_pauses_that_the_store_knows_only_some_are_kept() {
    let (pauses, policy, subjects) = (Pauses::new(0), pausable(), subjects(MOST_STORED + 9));
    let asked = pauses.moment();
    for subject in &subjects {
        pauses.hear(TallyId::of_pause(&policy, subject).unwrap(), asked, NOW, SECOND);
    }
    assert_eq!(lock(&pauses.table).subjects.len(), MOST_STORED);
}
