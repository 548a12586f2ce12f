//! What a terminal adds: questions, a screen that is drawn again, progress.

use std::process::Command;

use rexpect::session::{PtySession, spawn_command};
use tallygate::{Policy, Rule, Subject};

use crate::console::{Console, PROGRAM};
use crate::seeded::{CALLER, HOUR, Seeded, limiter, listed, sms, write};

/// How long a line may take on a busy machine.
const PATIENCE_MS: u64 = 60_000;

/// Runs the program on a terminal of its own.
fn on_terminal(console: &Console<'_>, words: &str) -> PtySession {
    on_terminal_by_words(console, &words.split_whitespace().collect::<Vec<_>>())
}

fn on_terminal_by_words(console: &Console<'_>, words: &[&str]) -> PtySession {
    let mut command = Command::new(PROGRAM);
    command.args(words).env("TALLYGATE_URL", console.url).env("TALLYGATE_TIMEOUT", "30s");
    command.env("TERM", "xterm").current_dir(console.folder);
    spawn_command(command, Some(PATIENCE_MS)).expect("there is a terminal")
}

fn expect_code(terminal: &mut PtySession, code: i32) {
    terminal.exp_eof().expect("it ends");
    // The type of the status is not public, only its text.
    let status = format!("{:?}", terminal.process().wait().expect("it has ended"));
    assert!(status.starts_with("Exited(") && status.ends_with(&format!(", {code})")), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_is_drawn_again_until_a_key_is_pressed() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let mut terminal = on_terminal(&console, "peek sms.send 139 --watch --every 50ms --timeout 5s");
    terminal.exp_string("admitted").expect("it is shown");
    terminal.exp_string("q quits").expect("it says how to end it");
    let fleet = limiter(console.url, "tallygate").await;
    assert!(fleet.check(&sms(), &Subject::of("sms").and(139)).await.unwrap().is_allowed());
    terminal.exp_string("denied for").expect("it is drawn again");
    // An outage is shown, and what comes after it.
    seeded.server.pause();
    terminal.exp_string("redis").expect("the outage is shown");
    seeded.server.resume();
    terminal.exp_string("denied for").expect("it goes on");
    terminal.send("q").and_then(|_| terminal.flush()).unwrap();
    // The screen of before is back.
    terminal.exp_string("\u{1b}[?1049l").expect("the terminal is put back");
    expect_code(&mut terminal, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn control_c_ends_a_watch_too() {
    let seeded = Seeded::start().await;
    let mut terminal = on_terminal(&seeded.console(), "peek sms.send 139 --watch");
    terminal.exp_string("q quits").expect("it is shown");
    terminal.send_control('c').unwrap();
    terminal.exp_string("\u{1b}[?1049l").expect("the terminal is put back");
    expect_code(&mut terminal, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_mean_nothing_ask_the_server_nothing() {
    let seeded = Seeded::start().await;
    let mut terminal = on_terminal(&seeded.console(), "peek sms.send 139 --watch --every 1h");
    terminal.exp_string("q quits").expect("it is shown");
    let before = seeded.server.calls("evalsha");
    // They are read in their order.
    terminal.send("xyz").and_then(|_| terminal.send("q")).and_then(|_| terminal.flush()).unwrap();
    terminal.exp_string("\u{1b}[?1049l").expect("the terminal is put back");
    expect_code(&mut terminal, 0);
    assert_eq!(seeded.server.calls("evalsha"), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_walk_over_a_large_server_shows_how_much_of_it_is_done() {
    let seeded = Seeded::start().await;
    // A step looks at some hundred keys, and each has a pause after it.
    let fill = "for number = 1, 200000 do redis.call('SET', 'other:' .. number, '') end";
    redis::cmd("EVAL").arg(fill).arg(0).exec(&mut seeded.server.connection()).unwrap();
    let mut terminal = on_terminal(&seeded.console(), "top sms.send");
    terminal.exp_regex(r"\[#+ *\] +[0-9]+ %").expect("it shows a bar");
    terminal.exp_string("1 of 1 subject").expect("it ends with the answer");
    expect_code(&mut terminal, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_simulation_shows_how_much_of_it_is_done() {
    let seeded = Seeded::start().await;
    let rows = (0..500_000).map(|call| format!("{},{}\n", 1_800_000_000 + call, call % 7));
    write(seeded.console().folder, "long.csv", &format!("time,subject\n{}", rows.collect::<String>()));
    let mut terminal = on_terminal(&seeded.console(), "simulate limits.toml sms.send long.csv");
    terminal.exp_regex(r"\[#+ *\] +[0-9]+ %").expect("it shows a bar");
    terminal.exp_string("of 500,000 admitted").expect("it ends with the answer");
    expect_code(&mut terminal, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_asked_and_only_yes_is_yes() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    for (answer, code) in [("", 2), ("n", 2), ("y", 0)] {
        let mut terminal = on_terminal(&console, &format!("reset sms.send {CALLER}"));
        let question = format!("Forget what sms:{CALLER} has done under sms.send? [y/N]");
        terminal.exp_string(&question).expect("it asks");
        console.run(&format!("peek sms.send {CALLER}")).expect(1);
        terminal.send_line(answer).unwrap();
        terminal
            .exp_string(if code == 0 { "starts again" } else { "nothing was changed" })
            .expect("it says what it did");
        expect_code(&mut terminal, code);
    }
    console.run(&format!("peek sms.send {CALLER}")).expect(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_asks_about_the_rules_of_its_units_alone() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let fleet = limiter(console.url, "tallygate").await;
    let calls = Policy::builder("chat").key("{user}").rule(Rule::sliding_window(60, HOUR));
    let policy = calls.rule(Rule::sliding_window(20_000, HOUR).counting("tokens")).build().unwrap();
    assert!(fleet.check(&policy, &Subject::of("alice")).cost_of("tokens", 500).await.unwrap().is_allowed());
    listed(&fleet, 3).await;
    for (rules, replaced) in [("9 tokens per 1h", "20000 tokens per 1h"), ("9 per 1h", "60 per 1h")] {
        let mut terminal = on_terminal_by_words(&console, &["override", "chat", rules]);
        let question = format!("Let `{rules}` decide in place of chat ({replaced})? [y/N]");
        terminal.exp_string(&question).expect("it asks");
        terminal.send_line("n").unwrap();
        expect_code(&mut terminal, 2);
    }
}
