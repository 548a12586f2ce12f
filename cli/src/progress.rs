//! The progress of a long command, on a terminal only.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::number::grouped;

/// The least time between two texts.
const PAUSE: Duration = Duration::from_millis(100);

/// How many items are counted between two reads of the clock.
const STEP: u64 = 1_024;

/// The width of a bar, in characters.
const PLACES: usize = 30;

/// Shows on a terminal how many items are done, and a bar if the end is known. Without a terminal, it writes nothing.
#[derive(Debug)]
pub(crate) struct ProgressBar {
    /// When it was last shown; `None` without a terminal.
    shown: Option<Instant>,
    items: &'static str,
    done: u64,
    /// From 0 to 1; `None` where the end is not known.
    share: Option<f64>,
    is_visible: bool,
}

impl ProgressBar {
    pub(crate) fn of(items: &'static str) -> Self {
        let shown = io::stderr().is_terminal().then(Instant::now);
        Self { shown, items, done: 0, share: None, is_visible: false }
    }

    /// Counts an item. It asks for the share only now and then.
    pub(crate) fn count(&mut self, share: impl FnOnce() -> Option<f64>) {
        self.done += 1;
        if self.done.is_multiple_of(STEP) {
            self.share = share();
            self.show();
        }
    }

    /// Sets how many items are done, and the share of the way, from 0 to 1.
    pub(crate) fn set(&mut self, done: u64, share: f64) {
        self.done = done;
        self.share = Some(share);
        self.show();
    }

    fn show(&mut self) {
        let Some(shown) = self.shown.filter(|shown| shown.elapsed() >= PAUSE) else { return };
        // The first text comes late, so that a fast command shows none.
        self.shown = Some(shown + shown.elapsed());
        self.is_visible = true;
        let bar = self.share.map(bar).unwrap_or_default();
        // The text before may be longer, so the rest of the line is cleared.
        write(&format!("\r{bar}{} {}\u{1b}[K", grouped(self.done), self.items));
    }
}

/// Draws how much of the way is done: `[#####    ]  50 %   `.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is from 0 to 100")]
fn bar(share: f64) -> String {
    let percent = (share.clamp(0.0, 1.0) * 100.0) as usize;
    format!("[{:<PLACES$}] {percent:>3} %   ", "#".repeat(PLACES * percent / 100))
}

impl Drop for ProgressBar {
    fn drop(&mut self) {
        if self.is_visible {
            write("\r\u{1b}[K");
        }
    }
}

fn write(text: &str) {
    let mut errors = io::stderr();
    // If nobody sees the progress, nothing is lost.
    let _ = errors.write_all(text.as_bytes()).and_then(|()| errors.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_grows_to_its_full_length() {
        assert_eq!(bar(0.0), format!("[{}]   0 %   ", " ".repeat(30)));
        assert_eq!(bar(0.5), format!("[{}{}]  50 %   ", "#".repeat(15), " ".repeat(15)));
        assert_eq!(bar(2.0), format!("[{}] 100 %   ", "#".repeat(30)));
    }
}
