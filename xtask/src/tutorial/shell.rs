//! A shell that commands are typed into.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use super::input::{Input, Mistake};
use super::shown::{Difference, compare};
use crate::step::Outcome;

/// The longest time for a command, which may build much on a slow machine.
const LONGEST: Duration = Duration::from_secs(600);

/// Between two looks at what a command in the background has printed.
const PAUSE: Duration = Duration::from_millis(50);

/// Commands in the background end with the shell, also where this program is killed.
const AT_THE_END: &str = "trap 'kill $(jobs -p) 2>/dev/null' EXIT";

/// Whether the last command in the background goes on.
const GOES_ON: &str = "kill -0 $! 2>/dev/null";

/// So many lines of errors are reported.
const ERRORS: usize = 30;

pub(super) struct Shell {
    bash: Child,
    /// Nothing once the shell has to end.
    keyboard: Option<ChildStdin>,
    /// What the shell says of each line that is typed: its exit code.
    codes: Receiver<String>,
    folder: PathBuf,
    /// How many commands it has run: what each prints is in files of that number.
    number: usize,
    deadline: Instant,
}

impl Shell {
    /// Starts a shell that keeps what is printed in a folder.
    pub(super) fn start(mut bash: Command, folder: &Path) -> Result<Self, String> {
        let cannot = |error| format!("cannot start a bash: {error}");
        // All that it starts can be ended as a group.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut bash, 0);
        let mut bash = bash.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(cannot)?;
        let (sender, codes) = mpsc::channel();
        if let Some(output) = bash.stdout.take() {
            thread::spawn(move || {
                BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
            });
        }
        let keyboard = bash.stdin.take();
        let folder = folder.to_owned();
        let mut shell = Self { bash, keyboard, codes, folder, number: 0, deadline: Instant::now() };
        shell.prepare(AT_THE_END)?;
        Ok(shell)
    }

    /// Runs a command that the page does not have.
    pub(super) fn prepare(&mut self, words: &str) -> Outcome {
        self.deadline = Instant::now() + LONGEST;
        match &*self.type_in(words)? {
            "0" => Ok(()),
            code => Err(format!("the shell fails with the exit code {code}: {words}")),
        }
    }

    /// Runs a command until it ends or, in the background, until it has printed what the page shows.
    pub(super) fn play(&mut self, input: &Input) -> Result<(), Mistake> {
        self.number += 1;
        self.deadline = Instant::now() + LONGEST;
        let at_its_line = |mistake| (input.line, mistake);
        let words = format!("eval {} >{} 2>{} </dev/null", quoted(&input.words), self.output(), self.errors());
        let code = self.type_in(&words).map_err(at_its_line)?;
        if code != "0" {
            return Err(self.mistake(input, input.line, &format!("fails with the exit code {code}")));
        }
        let is_in_background = input.words.ends_with('&');
        while let Err(difference) = self.compare(input, is_in_background) {
            let waits = is_in_background && difference == Difference::Less && Instant::now() < self.deadline;
            if !waits || self.type_in(GOES_ON).map_err(at_its_line)? != "0" {
                return Err(self.difference(input, &difference));
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Compares what the last command has printed; in the background, the whole lines of it.
    fn compare(&self, input: &Input, is_in_background: bool) -> Result<(), Difference> {
        let mut printed = read(&self.output());
        if is_in_background {
            printed.truncate(printed.rfind('\n').map_or(0, |at| at + 1));
        }
        compare(&input.shown, &printed.lines().collect::<Vec<_>>())
    }

    /// Returns the exit code of a line.
    fn type_in(&mut self, words: &str) -> Result<String, String> {
        let keyboard = self.keyboard.as_mut().ok_or("the shell has ended")?;
        writeln!(keyboard, "{words}; echo $?").map_err(|error| format!("cannot type into the shell: {error}"))?;
        let time = self.deadline.saturating_duration_since(Instant::now());
        self.codes.recv_timeout(time).map_err(|error| format!("this command does not end: {error}"))
    }

    fn difference(&self, input: &Input, difference: &Difference) -> Mistake {
        let (line, what) = match difference {
            Difference::Less => (input.line, "prints less than the page shows"),
            Difference::More => (input.line, "prints more than the page shows"),
            Difference::Other(at) => (input.line + 1 + at, "prints something else"),
        };
        self.mistake(input, line, what)
    }

    fn mistake(&self, input: &Input, line: usize, what: &str) -> Mistake {
        let errors = read(&self.errors());
        let errors: Vec<_> = errors.lines().collect();
        let last = errors[errors.len().saturating_sub(ERRORS)..].join("\n");
        let (shown, printed) = (input.shown.join("\n"), read(&self.output()));
        let parts = [("the page", &*shown), ("the program", printed.trim_end()), ("its errors", &last)];
        let parts = parts.iter().filter(|(_, text)| !text.is_empty());
        let parts: Vec<_> = parts.map(|(title, text)| format!("\n--- {title}\n{text}")).collect();
        (line, format!("`{}` {what}{}", input.title, parts.concat()))
    }

    fn output(&self) -> String {
        self.folder.join(format!("{}.output", self.number)).display().to_string()
    }

    fn errors(&self) -> String {
        self.folder.join(format!("{}.errors", self.number)).display().to_string()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.keyboard = None;
        // A command that does not end is ended, too.
        let _ = Command::new("kill").arg("--").arg(format!("-{}", self.bash.id())).stderr(Stdio::null()).status();
        let _ = self.bash.wait();
    }
}

/// What cannot be read was not written.
fn read(file: &str) -> String {
    fs::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// Returns a text as one word of a shell.
pub(super) fn quoted(words: &str) -> String {
    format!("'{}'", words.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tutorial::input;

    /// Types a page into a shell in a folder of that name.
    fn play(name: &str, page: &str) -> Result<(), Mistake> {
        let folder = std::env::temp_dir().join(format!("tallygate-shell-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut bash = Command::new("bash");
        bash.current_dir(&folder);
        let mut shell = Shell::start(bash, &folder).unwrap();
        let inputs = input::read(page).unwrap();
        let played = inputs.iter().try_for_each(|input| shell.play(input));
        drop(shell);
        fs::remove_dir_all(folder).unwrap();
        played
    }

    #[test]
    fn all_is_typed_into_one_shell() {
        let page = "```console\n$ mkdir a\n$ cd a\n$ A=\"it's b\"\n```\n```toml\n# c.toml\n'$A'\n```\n\
                    ```console\n$ echo $A; cat ../a/c.toml\nit's b\n…\n'$A'\n```\n";
        assert_eq!(play("one", page), Ok(()));
    }

    #[test]
    fn a_command_in_the_background_is_awaited_and_ended() {
        let page = "```console\n$ (echo; sleep 0.1; echo ready; exec sleep 1000) &\n…\nready\n$ kill -0 $!\n```\n";
        assert_eq!(play("background", page), Ok(()));
    }

    #[test]
    fn a_mistake_is_found_in_its_line() {
        let mistake = |name, text: &str| play(name, &format!("# A page\n\n```console\n$ true\n{text}\n```\n"));
        for (name, text, line, start) in [
            ("code", "$ (exit 7)", 5, "`(exit 7)` fails with the exit code 7"),
            ("other", "$ echo a; echo b\na\nc", 7, "`echo a; echo b` prints something else"),
            ("more", "$ echo a", 5, "`echo a` prints more"),
            ("less", "$ echo a\na\nb", 5, "`echo a` prints less"),
            ("ended", "$ echo a &\na\nb", 5, "`echo a &` prints less"),
            ("syntax", "$ echo 'a", 5, "`echo 'a` fails"),
        ] {
            let (found, words) = mistake(name, text).unwrap_err();
            assert!(found == line && words.starts_with(start), "{name}: {found}: {words}");
        }
    }
}
