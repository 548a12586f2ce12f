//! Whether the settings of a limiter can be used.

use std::time::Duration;

use tallygate_rules::{MAX_DEADLINE, is_plain};

use super::LimiterBuilder;
use crate::call::PREFIX_BYTES;
use crate::error::{Error, Setting};
use crate::limiter::denied::MOST_SUBJECTS;
use crate::subject::filters::bare_secret;

/// The longest that a denial can be cached.
const LONGEST_DENIAL_CACHE: Duration = Duration::from_secs(10);

impl LimiterBuilder {
    pub(super) fn check(&self) -> Result<(), Error> {
        self.check_prefix()?;
        self.check_secret()?;
        self.check_deadline()?;
        self.check_numbers()?;
        #[cfg(feature = "tls")]
        self.tls.as_ref().map_or(Ok(()), crate::store::Tls::check)?;
        Ok(())
    }

    fn check_prefix(&self) -> Result<(), Error> {
        let mistake = match self.prefix.len() {
            0 => " must not be empty",
            1..=PREFIX_BYTES if self.prefix.bytes().all(is_plain) => return Ok(()),
            1..=PREFIX_BYTES => " may only contain letters, digits and `. _ @ + ~ -`",
            _ => " has at most 25 bytes",
        };
        let text = format!("`prefix`{mistake}, like `prefix(\"shop\")`");
        Err(Error::of_setting(Setting::Prefix, text, "", mistake))
    }

    fn check_secret(&self) -> Result<(), Error> {
        if self.secret.as_ref().is_none_or(|secret| !bare_secret(secret).is_empty()) {
            return Ok(());
        }
        let mistake = " must not be empty";
        let text = format!("`secret`{mistake}; leave it out, or give it random bytes");
        Err(Error::of_setting(Setting::Secret, text, "", mistake))
    }

    fn check_deadline(&self) -> Result<(), Error> {
        let mistake = match self.deadline {
            Duration::ZERO => " must be longer than zero",
            deadline if deadline > MAX_DEADLINE => " is at most an hour",
            _ => return Ok(()),
        };
        let text = format!("`deadline`{mistake}, like `deadline(Duration::from_millis(250))`");
        Err(Error::of_setting(Setting::Deadline, text, "", mistake))
    }

    fn check_numbers(&self) -> Result<(), Error> {
        let most_denied = format!("`denied_subjects` is at most {MOST_SUBJECTS}, like `denied_subjects(1_000)`");
        let mistakes = [
            (self.max_subjects == 0, "`max_subjects` must be at least 1, like `max_subjects(100_000)`"),
            (
                self.denial_cache > LONGEST_DENIAL_CACHE,
                "`denial_cache` is at most ten seconds, like `denial_cache(Duration::from_secs(1))`",
            ),
            (self.denied_subjects > MOST_SUBJECTS, &most_denied),
            (self.processes == 0, "`processes` must be at least 1, like `processes(4)`"),
        ];
        match mistakes.into_iter().find(|(is_mistaken, _)| *is_mistaken) {
            Some((_, text)) => Err(Error::new(text)),
            None => Ok(()),
        }
    }
}
