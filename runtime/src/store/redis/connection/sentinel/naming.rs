//! Which primary follows from what the sentinels say.

use crate::error::{BackendError, BackendErrorKind};
use crate::store::redis::connection::address::Host;

/// What the sentinels have said, and which primary follows from that.
///
/// The first answer of all is taken. From there on, a sentinel that names another primary than it did before has seen a
/// failover. One that is heard for the first time, or again after a while, may be behind: it counts with most others only.
pub(super) struct Naming {
    sentinels: Vec<Opinion>,
    primary: Option<Host>,
}

/// What one sentinel has said over its connection.
#[derive(Clone)]
enum Opinion {
    /// Nothing yet.
    None,
    Names(Host),
    /// It does not answer, or knows of no primary, for this reason.
    Failed(BackendError),
}

/// What is to be done after an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing new.
    Same,
    /// Follow this primary from now on.
    Follow(Host),
    /// No sentinel names a primary, for this reason.
    Unknown(BackendError),
}

impl Naming {
    pub(super) fn new(sentinels: usize) -> Self {
        Self { sentinels: vec![Opinion::None; sentinels], primary: None }
    }

    /// Records what a sentinel answers.
    pub(super) fn hear(&mut self, sentinel: usize, answer: Result<Host, BackendError>) -> Verdict {
        let Some(opinion) = self.sentinels.get_mut(sentinel) else { return Verdict::Same };
        let before = opinion.clone();
        *opinion = match &answer {
            Ok(host) => Opinion::Names(host.clone()),
            Err(error) => Opinion::Failed(error.clone()),
        };
        match answer {
            Ok(host) if self.primary.as_ref() == Some(&host) => Verdict::Same,
            Ok(host) if self.is_to_be_followed(&before, &host) => {
                self.primary = Some(host.clone());
                Verdict::Follow(host)
            }
            Err(error) if self.primary.is_none() => self.failure(error).map_or(Verdict::Same, Verdict::Unknown),
            _ => Verdict::Same,
        }
    }

    /// Why no sentinel names a primary, once all have failed: for a mistake at one of them, or for the latest error.
    fn failure(&self, latest: BackendError) -> Option<BackendError> {
        let failures: Option<Vec<_>> = self.sentinels.iter().map(Opinion::failure).collect();
        let mistake = failures?.into_iter().find(|failure| failure.kind() == BackendErrorKind::Wrong).cloned();
        Some(mistake.unwrap_or(latest))
    }

    fn is_to_be_followed(&self, before: &Opinion, host: &Host) -> bool {
        let has_changed = matches!(before, Opinion::Names(named) if named != host);
        let names = |opinion: &&Opinion| matches!(opinion, Opinion::Names(named) if named == host);
        let is_named_by_most = self.sentinels.iter().filter(names).count() > self.sentinels.len() / 2;
        self.primary.is_none() || has_changed || is_named_by_most
    }
}

impl Opinion {
    fn failure(&self) -> Option<&BackendError> {
        match self {
            Self::Failed(error) => Some(error),
            Self::None | Self::Names(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(port: u16) -> Host {
        Host { name: "10.0.0.1".to_owned(), port }
    }

    fn gone() -> BackendError {
        BackendError::new("redis: refused")
    }

    /// Three sentinels that say one thing after the other, and the verdicts.
    fn verdicts(answers: &[(usize, Option<u16>)]) -> Vec<Option<u16>> {
        let mut naming = Naming::new(3);
        let verdict =
            |&(sentinel, port): &(usize, Option<u16>)| match naming.hear(sentinel, port.map(host).ok_or_else(gone)) {
                Verdict::Follow(host) => Some(host.port),
                Verdict::Same | Verdict::Unknown(_) => None,
            };
        answers.iter().map(verdict).collect()
    }

    #[test]
    fn the_first_answer_is_taken() {
        assert_eq!(verdicts(&[(2, Some(1)), (0, Some(1)), (1, Some(1))]), [Some(1), None, None]);
    }

    #[test]
    fn a_sentinel_that_names_another_primary_than_before_is_followed_at_once() {
        let all = [(0, Some(1)), (1, Some(1)), (2, Some(1))];
        assert_eq!(
            verdicts(&[&all[..], &[(1, Some(2)), (0, Some(2)), (2, Some(2))]].concat())[3..],
            [Some(2), None, None]
        );
        assert_eq!(verdicts(&[&all[..], &[(1, Some(2)), (1, Some(1))]].concat())[3..], [Some(2), Some(1)]);
    }

    #[test]
    fn a_sentinel_that_is_behind_is_not_followed() {
        // It was away during the failover, and comes back with what it knew.
        let answers = [(0, Some(1)), (1, Some(1)), (1, None), (0, Some(2)), (1, Some(1)), (2, Some(2))];
        assert_eq!(verdicts(&answers), [Some(1), None, None, Some(2), None, None]);
    }

    #[test]
    fn what_most_sentinels_name_is_followed_if_the_first_was_behind() {
        assert_eq!(verdicts(&[(0, Some(1)), (1, Some(2)), (2, Some(2))]), [Some(1), None, Some(2)]);
        assert_eq!(verdicts(&[(0, Some(1)), (1, Some(2)), (2, None)]), [Some(1), None, None]);
    }

    #[test]
    fn a_primary_is_unknown_once_all_sentinels_have_failed_and_none_has_named_one() {
        let mut naming = Naming::new(2);
        assert_eq!(naming.hear(0, Err(gone())), Verdict::Same);
        assert_eq!(naming.hear(1, Err(gone())), Verdict::Unknown(gone()));
        assert_eq!(naming.hear(1, Ok(host(1))), Verdict::Follow(host(1)));
        assert_eq!(naming.hear(1, Err(gone())), Verdict::Same);
    }

    #[test]
    fn a_mistake_at_one_sentinel_is_the_reason_whichever_fails_last() {
        let away = || BackendError::away("redis: no answer");
        for failures in [[gone(), away()], [away(), gone()]] {
            let mut naming = Naming::new(2);
            let verdicts: Vec<_> =
                failures.into_iter().enumerate().map(|(sentinel, error)| naming.hear(sentinel, Err(error))).collect();
            assert_eq!(verdicts, [Verdict::Same, Verdict::Unknown(gone())]);
        }
    }
}
