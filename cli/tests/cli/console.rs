//! A command that is run, and what it prints.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_tallygate");

/// What a command has printed.
#[derive(Debug)]
pub(crate) struct Printed {
    pub(crate) out: String,
    pub(crate) errors: String,
    pub(crate) code: i32,
}

/// Where commands are run.
#[derive(Clone, Debug)]
pub(crate) struct Console<'a> {
    pub(crate) url: &'a str,
    pub(crate) folder: &'a Path,
}

impl Console<'_> {
    /// Runs the program with these words, separated by spaces.
    pub(crate) fn run(&self, words: &str) -> Printed {
        self.run_words(&words.split_whitespace().collect::<Vec<_>>())
    }

    /// Runs the program with these words, which may contain spaces.
    pub(crate) fn run_words(&self, words: &[&str]) -> Printed {
        let run = || Printed::of(self.placed(Command::new(PROGRAM).args(words)).stdin(Stdio::null()).output());
        let printed = run();
        // On a busy machine, an attempt to connect may take too long. Nothing was done by then.
        if printed.errors.contains("no connection within") { run() } else { printed }
    }

    /// Runs the program and gives it that to read.
    pub(crate) fn run_with(&self, words: &str, input: &str) -> Printed {
        let mut command = Command::new(PROGRAM);
        self.placed(command.args(words.split_whitespace())).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // It may end before it has read everything.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        Printed::of(child.wait_with_output())
    }

    /// Runs a line of a shell.
    pub(crate) fn shell(&self, line: &str) -> Printed {
        let mut command = Command::new("sh");
        Printed::of(self.placed(command.args(["-c", line])).stdin(Stdio::null()).output())
    }

    /// The names of all commands but `help`, as that lists them.
    pub(crate) fn commands(&self) -> Vec<String> {
        let help = self.run("help").expect(0).out;
        let (_, listed) = help.split_once("Commands:\n").expect("the help lists the commands");
        // A line that goes on is indented further.
        let names = listed.lines().take_while(|line| !line.is_empty()).filter_map(|line| line.strip_prefix("  "));
        let names = names.filter(|line| !line.starts_with(' ')).filter_map(|line| line.split(' ').next());
        names.filter(|name| *name != "help").map(str::to_owned).collect()
    }

    /// Sets what a command finds around it. It waits for a busy machine.
    fn placed<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let programs = Path::new(PROGRAM).parent().unwrap().display().to_string();
        let path = format!("{programs}:{}", std::env::var("PATH").unwrap_or_default());
        command.env("PATH", path).env("TALLYGATE_URL", self.url).env("TALLYGATE_TIMEOUT", "30s");
        command.env("LC_ALL", "C").current_dir(self.folder)
    }
}

impl Printed {
    fn of(output: std::io::Result<Output>) -> Self {
        let Output { stdout, stderr, status } = output.expect("the command runs");
        let text = |bytes| String::from_utf8(bytes).expect("it prints text");
        Self { out: text(stdout), errors: text(stderr), code: status.code().expect("no signal ended it") }
    }

    /// What was printed for a script.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Checks the exit code.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }
}

/// Returns the text with one space between two words, and with no times, which differ from run to run.
pub(crate) fn steady(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut words: Vec<&str> = Vec::new();
        for word in line.split_whitespace() {
            let word = if is_time(word) { "<time>" } else { word };
            if word != "<time>" || words.last() != Some(&word) {
                words.push(word);
            }
        }
        lines.push(words.join(" "));
    }
    lines.join("\n")
}

/// Returns the first time in a text that the program does not print: it writes `1h 30m` for `90m`, and `24h` for `23h 60m`.
pub(crate) fn impossible_time(text: &str) -> Option<String> {
    let of_line = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let mut runs = words.chunk_by(|word, next| is_time(word) && is_time(next));
        runs.find(|run| is_time(run[0]) && !is_possible(run)).map(|run| run.join(" "))
    };
    text.lines().find_map(of_line)
}

fn is_possible(time: &[&str]) -> bool {
    let parts: Vec<_> = time.iter().filter_map(|word| number_and_unit(word)).collect();
    match parts[..] {
        [(number, "s" | "m")] => number < 60,
        // What is rounded up to a day.
        [(number, "h")] => number <= 24,
        [(_, "d")] => true,
        [(great, "m"), (small, "s")] => great < 60 && (1..60).contains(&small),
        [(great, "h"), (small, "m")] => great < 24 && (1..60).contains(&small),
        [(_, "d"), (small, "h")] => (1..24).contains(&small),
        _ => false,
    }
}

fn is_time(word: &str) -> bool {
    number_and_unit(word).is_some()
}

/// Reads a time in one unit.
fn number_and_unit(word: &str) -> Option<(u64, &str)> {
    let unit = ["ms", "s", "m", "h", "d"].into_iter().find(|unit| word.ends_with(unit))?;
    let number = word.strip_suffix(unit)?;
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse().ok().filter(|_| is_number).map(|number| (number, unit))
}

#[test]
fn a_time_that_cannot_be_printed_is_found() {
    for time in ["23h 60m", "1m 60s", "90s", "60m", "25h", "1h 0m", "1d 24h", "1h 1s", "50ms", "1d 1h 1m", "24h 1m"] {
        assert_eq!(impossible_time(&format!("9 left\n9 left   resets in {time}")).as_deref(), Some(time));
    }
    for time in ["0s", "59s", "59m 59s", "1h", "23h 59m", "24h", "1d 23h", "400d"] {
        assert_eq!(impossible_time(&format!("10 per 1d as daily   resets in {time}")), None);
    }
}
