//! The screen of the fleet, on a terminal of its own.

use std::num::NonZeroU16;
use std::process::Command;

use rexpect::session::{PtySession, spawn_command};
use tallygate::{Policy, Rule, Subject};
use tallygate_harness::server::{connected, patient};
use tallygate_harness::until::until_found;
use vt100::Parser;

use crate::console::{Console, PROGRAM};
use crate::seeded::{CALLER, HOUR, Seeded, limiter, listed, login, sms};

const ROWS: NonZeroU16 = NonZeroU16::new(40).unwrap();
const COLUMNS: NonZeroU16 = NonZeroU16::new(160).unwrap();

/// A terminal on which the program runs, and what it shows.
struct Screen {
    terminal: PtySession,
    shown: Parser,
}

impl Screen {
    fn open(console: &Console<'_>, words: &str) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("stty rows {ROWS} cols {COLUMNS} && exec {PROGRAM} {words}")]);
        command.env("TALLYGATE_URL", console.url).env("TALLYGATE_TIMEOUT", "30s").env("TERM", "xterm");
        command.current_dir(console.folder);
        let terminal = spawn_command(command, Some(60_000)).expect("there is a terminal");
        Self { terminal, shown: Parser::new(ROWS, COLUMNS, 0) }
    }

    /// Returns what is shown now.
    fn text(&mut self) -> String {
        // Each byte is read as one character.
        while let Some(Ok(byte)) = self.terminal.try_read().map(|byte| u8::try_from(u32::from(byte))) {
            self.shown.process(&[byte]);
        }
        self.shown.screen().contents()
    }

    /// Waits until a line is shown that has all these parts.
    async fn until(&mut self, parts: &[&str]) {
        until_found(&format!("{parts:?} is shown"), async || has_line(&self.text(), parts)).await;
    }

    fn press(&mut self, key: &str) {
        self.terminal.send(key).and_then(|_| self.terminal.flush()).unwrap();
    }

    /// Waits for the end, and checks the exit code.
    fn ends(mut self, code: i32) {
        self.terminal.exp_eof().expect("it ends");
        let status = format!("{:?}", self.terminal.process().wait().expect("it has ended"));
        assert!(status.starts_with("Exited(") && status.ends_with(&format!(", {code})")), "{status}");
    }
}

fn has_line(text: &str, parts: &[&str]) -> bool {
    text.lines().any(|line| parts.iter().all(|part| line.contains(part)))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fleet_is_on_one_screen_and_an_outage_is_shown_while_it_lasts_and_after_it() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let mut screen = Screen::open(&console, "watch --every 50ms --timeout 5s");
    screen.until(&["sms.send", "1 per 1m · 5 per 1h · 10 per 1d as daily"]).await;
    screen.until(&["busiest of 2 subjects"]).await;
    screen.until(&["sms.send", &format!("sms:{CALLER}"), "100 %", "1 of 1 per 1m", "denied for"]).await;
    screen.until(&[&format!("127.0.0.1:{}", seeded.server.port()), "warning", "persistence"]).await;
    // What changes is seen.
    console.run_words(&["override", "login", "5 per 1m", "--yes"]).expect(0);
    let cells = |line: &str| line.trim_matches(['│', ' ']).to_owned();
    let is_overridden = |text: &str| text.lines().map(cells).any(|row| row.starts_with("login") && row.ends_with(" 1"));
    until_found("the override is counted", async || is_overridden(&screen.text())).await;
    seeded.server.pause();
    screen.until(&["redis is away for"]).await;
    // What was known stays on the screen.
    assert!(has_line(&screen.text(), &["sms.send", "1 per 1m"]));
    seeded.server.resume();
    screen.until(&["redis was away for"]).await;
    screen.press("q");
    screen.ends(0);
}

/// The cells of a policy, the last one first.
fn row(text: &str, policy: &str) -> Vec<String> {
    let line = text.lines().find(|line| line.contains(policy) && !line.contains(" of ")).unwrap_or_default();
    line.trim_matches(['│', ' '])
        .rsplit("  ")
        .filter(|cell| !cell.is_empty())
        .map(|cell| cell.trim().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_screen_says_denied_of_no_policy_and_no_rule_in_shadow() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let fleet = limiter(console.url, "tallygate").await;
    let rules = [Rule::sliding_window(5, HOUR), Rule::sliding_window(1, HOUR).shadow()];
    let tried = Policy::builder("search").key("{user}").rules(rules).build().unwrap();
    for _ in 0..2 {
        assert!(fleet.check(&tried, &Subject::of("bob")).await.unwrap().is_allowed());
    }
    let hourly = Policy::builder("reports").key("{user}").rule(Rule::sliding_window(1, HOUR)).build().unwrap();
    assert!(fleet.check(&hourly, &Subject::of("carol")).await.unwrap().is_allowed());
    listed(&fleet, 4).await;
    console.run("override reports --shadow --yes").expect(0);
    let mut screen = Screen::open(&console, "watch --every 50ms --timeout 5s");
    screen.until(&["reports", "1 per 1h · shadow"]).await;
    screen.until(&["carol", "1 of 1 per 1h", "would be denied for"]).await;
    screen.until(&["bob", "40 %", "2 of 5 per 1h · 1 of 1 per 1h shadow"]).await;
    let text = screen.text();
    let denied = |policy: &str| row(&text, policy).into_iter().find(|cell| cell == "0");
    assert_eq!([denied("reports"), denied("search")], [Some("0".to_owned()), Some("0".to_owned())], "{text}");
    let subject = text.lines().find(|line| line.contains("bob")).unwrap();
    assert!(!subject.contains("denied"), "{text}");
    console.run("override reports --enforced --yes").expect(0);
    until_found("its subject is denied", async || {
        row(&screen.text(), "reports").get(1).is_some_and(|denied| denied == "1")
    })
    .await;
    screen.press("q");
    screen.ends(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn denials_per_second_and_denied_subjects_are_shown_for_each_policy() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let keeps = connected(&patient().denied_subjects(100), console.url).await;
    let fleet = limiter(console.url, "tallygate").await;
    fleet.check(&login(), &Subject::of("alice")).ban(HOUR).await.unwrap();
    let mut screen = Screen::open(&console, "watch --every 50ms --limit 1");
    let caller = Subject::of("sms").and(CALLER);
    until_found("a rate is shown", async || {
        for _ in 0..3 {
            assert!(!keeps.check(&sms(), &caller).await.unwrap().is_allowed());
        }
        keeps.publish_denied_subjects().await.unwrap();
        let cells = row(&screen.text(), "sms.send");
        // One subject is denied, so many calls per second.
        cells.first().is_some_and(|denied| denied == "1")
            && cells.get(1).and_then(|rate| rate.parse::<f64>().ok()).is_some_and(|rate| rate > 0.0)
    })
    .await;
    // Its denials are not published, but it is banned.
    until_found("a ban is counted", async || {
        row(&screen.text(), "login").get(..2) == Some(&["1".to_owned(), "-".to_owned()])
    })
    .await;
    // One subject is shown, as is asked for.
    assert!(has_line(&screen.text(), &["busiest of 2 subjects"]));
    assert!(!has_line(&screen.text(), &["login", "alice"]), "{}", screen.text());
    screen.press("\u{3}");
    screen.ends(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_is_refused() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    for (words, part) in [
        ("watch", "`watch` needs a terminal; without one, write `tallygate top`"),
        ("watch --json", "write `top --json`"),
        ("watch --every 49ms", "`--every` must be at least 50ms"),
        ("watch --every 1x", "unknown unit"),
        ("watch --limit 0", "write 1 or more"),
        ("watch sms.send", "unexpected argument"),
    ] {
        let printed = console.run(words).expect(2);
        assert!(printed.errors.contains(part), "{words}: {printed:?}");
    }
    let console = Console { url: "redis://127.0.0.1:1/", ..console };
    console.run("watch").expect(3);
}
