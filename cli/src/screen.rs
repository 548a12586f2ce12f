//! A terminal that shows an answer again and again, until a key is pressed.

use std::io::{self, IsTerminal, Stdout, Write};
use std::time::{Duration, Instant};

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{self, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{execute, queue};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use tokio::task::spawn_blocking;

use crate::failure::Failure;
use crate::output::printable;

/// The shortest time between two drawings, each of which asks the server.
const SHORTEST: Duration = Duration::from_millis(50);

/// A screen that is put back as it was when this value is dropped.
pub(crate) struct Screen(());

impl Screen {
    /// Takes the whole terminal. `without_terminal` is the error if there is none.
    pub(crate) fn open(without_terminal: &str) -> Result<Self, Failure> {
        if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
            return Err(Failure::usage(without_terminal));
        }
        enable_raw_mode().map_err(unusable)?;
        // From here on, every way out puts the terminal back.
        let screen = Self(());
        execute!(io::stdout(), EnterAlternateScreen, Hide).map_err(unusable)?;
        Ok(screen)
    }

    /// Shows a text in place of the one before.
    pub(crate) fn show(&self, text: &str) -> Result<(), Failure> {
        let Self(()) = self;
        let mut out = io::stdout();
        queue!(out, MoveTo(0, 0), Clear(ClearType::All)).map_err(unusable)?;
        // A line feed of a raw terminal does not return to the left.
        out.write_all(printable(text).replace('\n', "\r\n").as_bytes()).and_then(|()| out.flush()).map_err(unusable)
    }

    /// Returns a terminal that draws widgets on the screen.
    pub(crate) fn canvas(&self) -> Result<Terminal<CrosstermBackend<Stdout>>, Failure> {
        let Self(()) = self;
        Terminal::new(CrosstermBackend::new(io::stdout())).map_err(unusable)
    }

    /// Waits at most that long for a key that ends the command, and returns whether one was pressed.
    pub(crate) async fn quits_within(&self, time: Duration) -> Result<bool, Failure> {
        let waited = spawn_blocking(move || quits_within(time)).await;
        waited.map_or(Ok(true), |quits| quits.map_err(unusable))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // There is nothing else to do for a terminal that is gone.
        let _ = execute!(io::stdout(), Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

fn quits_within(time: Duration) -> io::Result<bool> {
    let begun = Instant::now();
    // Other events do not shorten the wait, because each drawing asks the server.
    while event::poll(time.saturating_sub(begun.elapsed()))? {
        if event::read()?.as_key_event().is_some_and(|key| ends(&key)) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn ends(key: &KeyEvent) -> bool {
    let is_interrupt = key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
    key.kind == KeyEventKind::Press && (is_interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc))
}

pub(crate) fn check_interval(every: Duration) -> Result<(), Failure> {
    if every < SHORTEST { Err(Failure::usage("`--every` must be at least 50ms, like `--every 1s`")) } else { Ok(()) }
}

#[allow(clippy::needless_pass_by_value, reason = "it stands for a closure of `map_err`")]
pub(crate) fn unusable(error: io::Error) -> Failure {
    Failure::usage(format!("the terminal cannot be used: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_keys_end_it() {
        let ends = |code, modifiers| ends(&KeyEvent::new(code, modifiers));
        assert!(ends(KeyCode::Char('q'), KeyModifiers::NONE));
        assert!(ends(KeyCode::Esc, KeyModifiers::NONE));
        assert!(ends(KeyCode::Char('c'), KeyModifiers::CONTROL));
        assert!(!ends(KeyCode::Char('c'), KeyModifiers::NONE));
    }
}
