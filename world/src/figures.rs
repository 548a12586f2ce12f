//! The figures of calls to a partner, as a table.

use std::time::Duration;

use tallygate::{Rule, Schedule};
use tallygate_world::hour::{self, Answered, COUNT, Habit, MINUTES, PartnerKind};

/// Prints how often partners of each kind deny the calls of a fleet, and how many they admit. Returns whether all hours could be
/// played.
pub(crate) fn print() -> bool {
    println!(
        "| the partner | its calls | admitted, in % of 1,000 a minute | denials a minute | pauses | most denials of a process in a pause |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    partners().into_iter().all(|(name, kind)| Habit::ALL.into_iter().all(|habit| print_hour(name, habit, &kind)))
}

fn print_hour(name: &str, habit: Habit, kind: &PartnerKind) -> bool {
    let Ok(Answered { admitted, denied, pauses, most_of_a_process }) = hour::play(habit, kind) else {
        println!("{name}, {habit}: the world came to no end");
        return false;
    };
    let per_thousand = admitted * 1_000 / (COUNT * MINUTES);
    let tenths = denied * 10 / MINUTES;
    println!(
        "| {name} | {habit} | {}.{} | {}.{} | {pauses} | {most_of_a_process} |",
        per_thousand / 10,
        per_thousand % 10,
        tenths / 10,
        tenths % 10
    );
    true
}

fn partners() -> Vec<(&'static str, PartnerKind)> {
    let minute = Duration::from_secs(60);
    let ours = |rule| PartnerKind::Ours(Box::new(rule));
    let mut partners = vec![
        ("sliding windows", PartnerKind::Sliding),
        ("fixed windows", PartnerKind::Fixed),
        ("our layer, a sliding window", ours(Rule::sliding_window(COUNT, minute))),
        ("our layer, a sliding counter", ours(Rule::sliding_counter(COUNT, minute))),
        ("our layer, a fixed window", ours(Rule::fixed_window(COUNT, minute))),
        ("our layer, a token bucket", ours(Rule::token_bucket(COUNT, minute))),
    ];
    if let Ok(schedule) = Schedule::parse("0 * * * * *", "UTC") {
        partners.push(("our layer, a schedule", ours(Rule::cron(COUNT, schedule))));
    }
    partners
}
