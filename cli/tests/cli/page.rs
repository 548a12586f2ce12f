//! Every example of the page about the command line is run, and prints what stands there.

use std::time::Duration;

use crate::console::{Console, impossible_time, steady};
use crate::seeded::{Seeded, folder, write};
use crate::{pauses, plans, running};

const PAGE: &str = include_str!("../../../docs/cli.md");

/// The blocks of the page in that language.
fn blocks(language: &str) -> impl Iterator<Item = &'static str> {
    let start = format!("```{language}\n");
    PAGE.split("```")
        .enumerate()
        .filter(|(place, _)| place % 2 == 1)
        .filter_map(move |(_, block)| block.strip_prefix(&start[3..]))
}

/// The commands of a block, each with what it prints.
fn commands(block: &str) -> Vec<(&str, String)> {
    let mut commands = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command, String::new())),
            (None, Some((_, printed))) => {
                printed.push_str(line);
                printed.push('\n');
            }
            (None, None) => panic!("a block begins with a command: {line}"),
        }
    }
    commands
}

/// Whether a text is what stands there, where `…` stands for anything in one line, or for whole lines.
fn is_as_shown(shown: &str, printed: &str) -> bool {
    let (shown, printed) = (steady(shown), steady(printed));
    let mut printed = printed.lines();
    let mut shown = shown.lines().peekable();
    while let Some(line) = shown.next() {
        if line == "…" {
            let next = shown.next();
            if !printed.any(|other| Some(other) == next) {
                return next.is_none();
            }
            continue;
        }
        let Some(other) = printed.next() else { return false };
        let is_same = match line.split_once('…') {
            Some((start, end)) => other.starts_with(start) && other.ends_with(end),
            None => line == other,
        };
        if !is_same {
            return false;
        }
    }
    printed.next().is_none()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_example_of_the_page_prints_what_stands_there() {
    let seeded = Seeded::start().await;
    let _permit = running::begin(&seeded, Duration::from_secs(30)).await;
    plans::begin(&seeded).await;
    pauses::begin(&seeded).await;
    let console = seeded.console();
    write(console.folder, "mistaken.toml", blocks("toml").next().expect("the page shows a mistaken file"));
    let address = format!("127.0.0.1:{}", seeded.server.port());
    let mut number = 0;
    for (command, shown) in blocks("console").flat_map(commands) {
        let run = || console.shell(&format!("{command} 2>&1")).out.replace(&address, "127.0.0.1:6379");
        // Only on a busy machine. Such a command changes nothing.
        let is_slow = |out: &String| out.contains("warning   latency");
        let out = (0..10).map(|_| run()).find(|out| !is_slow(out)).unwrap_or_else(run);
        assert!(is_as_shown(&shown, &out), "$ {command}\n{out}\n--- instead of\n{shown}");
        number += 1;
    }
    assert!(number > 15, "{number}");
}

#[test]
fn every_time_of_the_page_is_one_that_the_program_prints() {
    for (command, shown) in blocks("console").flat_map(commands) {
        assert_eq!(impossible_time(&shown), None, "$ {command}");
    }
}

#[test]
fn the_page_shows_every_command() {
    // It runs on a terminal only, and is shown as a text.
    assert!(PAGE.contains("`tallygate watch`"));
    let folder = folder();
    let console = Console { url: "", folder: folder.path() };
    for command in console.commands().iter().filter(|command| *command != "watch") {
        assert!(
            PAGE.contains(&format!("$ tallygate {command} ")) || PAGE.contains(&format!("$ tallygate {command}\n")),
            "{command}"
        );
    }
}
