//! Commands at random, and scripts that call them.

use fastrand::Rng;
use tallygate_harness::length::cases;
use tallygate_harness::seed::{SEED_VARIABLE, seed};
use tallygate_harness::server::Server;

use crate::draw;
use crate::twin::{Twin, Words, emptied, split};

/// How many commands a sequence has.
const COMMANDS: usize = 250;

#[test]
fn random_commands_have_the_same_answers_in_both_protocols() {
    let server = Server::start();
    let mut twin = Twin::of(&server);
    let seed = seed();
    for sequence in 0..cases(40, 400) {
        let mut random = Rng::with_seed(seed.wrapping_add(sequence));
        let greeting = if random.bool() { "HELLO 3" } else { "HELLO 2" };
        let drawn = (0..COMMANDS).map(|_| draw::command(&mut random));
        let commands: Vec<_> = [split(greeting)].into_iter().chain(drawn).collect();
        if let Some((at, difference)) = first_difference(&mut twin, &server, &commands) {
            let shortest = shrunk(&mut twin, &server, commands[..=at].to_vec());
            let lines: Vec<_> = shortest.iter().map(|words| words.join(&b' ').escape_ascii().to_string()).collect();
            panic!("{difference}\nafter:\n{}\n{SEED_VARIABLE}={seed} plays it again", lines.join("\n"));
        }
    }
}

/// Returns the first command whose answers differ.
fn first_difference(twin: &mut Twin, server: &Server, commands: &[Words]) -> Option<(usize, String)> {
    emptied(twin, server);
    let answers = commands.iter().enumerate().map(|(at, words)| (at, twin.ask(words)));
    answers.into_iter().find_map(|(at, answer)| answer.map(|difference| (at, difference)))
}

/// Leaves out what is not needed for a difference.
fn shrunk(twin: &mut Twin, server: &Server, mut commands: Vec<Words>) -> Vec<Words> {
    let mut step = commands.len() / 2;
    while step > 0 {
        let mut begin = 0;
        while begin + step < commands.len() {
            let mut fewer = commands.clone();
            fewer.drain(begin..begin + step);
            if first_difference(twin, server, &fewer).is_some() {
                commands = fewer;
            } else {
                begin += step;
            }
        }
        step /= 2;
    }
    commands
}
