//! The progress of a long command, on a terminal only.

use std::io::Read;
use std::time::Duration;

use indicatif::{ProgressBarIter, ProgressDrawTarget, ProgressStyle};

use crate::number::grouped;

/// How long nothing is shown, so that a fast command shows nothing.
const PATIENCE: Duration = Duration::from_millis(100);

/// How many items are counted between two texts.
const STEP: u64 = 1_024;

/// The length of a bar that is set by a share.
const WHOLE: u32 = 1_000;

/// Shows on a terminal how many items are done, and a bar if the end is known. Without a terminal, it writes nothing.
#[derive(Debug)]
pub(crate) struct ProgressBar {
    bar: indicatif::ProgressBar,
    items: &'static str,
    done: u64,
}

impl ProgressBar {
    /// The share of the way that is done is set with the items.
    pub(crate) fn by_share(items: &'static str) -> Self {
        Self::new(items, Some(WHOLE.into()))
    }

    /// The items are read from an input of this length, in bytes.
    pub(crate) fn of_input<R: Read>(items: &'static str, input: R, length: Option<u64>) -> (Self, ProgressBarIter<R>) {
        let progress = Self::new(items, length);
        let input = progress.bar.wrap_read(input);
        (progress, input)
    }

    fn new(items: &'static str, length: Option<u64>) -> Self {
        let bar = indicatif::ProgressBar::with_draw_target(length, ProgressDrawTarget::hidden());
        let parts = if length.is_some() { "[{bar:30}] {percent:>3} %   {msg}" } else { "{msg}" };
        let style = ProgressStyle::with_template(parts).unwrap_or_else(|_| ProgressStyle::default_bar());
        Self { bar: bar.with_style(style.progress_chars("# ")), items, done: 0 }
    }

    /// Counts an item of the input.
    pub(crate) fn count(&mut self) {
        self.done += 1;
        if self.done.is_multiple_of(STEP) {
            self.show();
        }
    }

    /// Sets how many items are done, and the share of the way, from 0 to 1.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is from 0 to the whole")]
    pub(crate) fn set(&mut self, done: u64, share: f64) {
        self.done = done;
        self.bar.set_position((share.clamp(0.0, 1.0) * f64::from(WHOLE)) as u64);
        self.show();
    }

    fn show(&self) {
        if self.bar.is_hidden() && self.bar.elapsed() >= PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_message(format!("{} {}", grouped(self.done), self.items));
    }

    /// Writes to the terminal while the bar is away.
    pub(crate) fn interrupt(&self, write: impl FnOnce()) {
        self.bar.suspend(write);
    }
}
