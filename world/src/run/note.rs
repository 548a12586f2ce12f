//! What a call notes in the history of its world.

use std::sync::Arc;
use std::time::Duration;

use tallygate::client::ResponseReader;

use crate::fleet::Member;
use crate::history::{Answer, Event, History};
use crate::partner::PartnerAnswer;
use crate::workload::{CallPlan, PartnerPlan};

/// Notes how a call ends, even if its future is dropped.
pub(super) struct Note {
    call: usize,
    history: History,
    member: Arc<Member>,
    paused_us: u64,
    is_answered: bool,
}

impl Note {
    pub(super) fn begin(call: usize, plan: &CallPlan, member: Arc<Member>, history: History) -> Self {
        history.note(Event::Called { call, plan: plan.clone(), local_us: member.local_us() });
        let paused_us = member.paused_us();
        Self { call, history, member, paused_us, is_answered: false }
    }

    pub(super) fn answer(&mut self, answer: Answer) {
        self.is_answered = true;
        let paused_us = self.member.paused_us() - self.paused_us;
        self.history.note(Event::Answered { call: self.call, local_us: self.member.local_us(), paused_us, answer });
    }

    /// Notes for how long the answer of a partner says to wait. Returns that.
    pub(super) fn hear(&self, answer: &PartnerAnswer, partner: &PartnerPlan) -> Option<Duration> {
        let heard = reader(partner).read(answer.status, &answer.headers).wait();
        let heard_us = heard.and_then(|wait| u64::try_from(wait.as_micros()).ok());
        let local_us = self.member.local_us();
        self.history.note(Event::Heard { call: self.call, local_us, said_us: answer.said_us, heard_us });
        heard
    }

    /// Notes that the process of the call has ended.
    pub(super) fn kill(&self, process: usize) {
        self.member.kill();
        self.history.note(Event::Killed { process });
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        let call = self.call;
        self.history.note(if self.is_answered { Event::Ended { call } } else { Event::Dropped { call } });
    }
}

/// How the answers of a partner are read.
pub(super) fn reader(partner: &PartnerPlan) -> ResponseReader {
    ResponseReader::new().longest_pause(Duration::from_micros(partner.longest_pause_us))
}
