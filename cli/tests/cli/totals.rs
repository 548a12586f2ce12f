//! `top` on a server with a hundred thousand subjects.

use tallygate::{Policy, Subject};
use tallygate_harness::length::cases;
use tallygate_harness::server::Server;
use tallygate_harness::slow_log::{Run, note_all, runs_of};

use crate::console::Console;
use crate::seeded::{MINUTE, folder, limiter, listed};

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_subjects_are_looked_through_without_keeping_the_server_busy() {
    let subjects = cases(20_000, 100_000);
    let server = Server::start();
    let (url, folder) = (server.url(), folder());
    let fleet = limiter(&url, "tallygate").await;
    let policy =
        Policy::builder("many").key("{user}").rule(tallygate::Rule::sliding_window(9, 60 * MINUTE)).build().unwrap();
    assert!(fleet.check(&policy, &Subject::of("first")).cost(9).await.unwrap().is_allowed());
    listed(&fleet, 1).await;
    // A copy of one tally is one of another subject.
    let fill = "local tally = redis.call('DUMP', KEYS[1]) local ttl = redis.call('PTTL', KEYS[1]) \
        local start = string.sub(KEYS[1], 1, -6) for i = 1, ARGV[1] do redis.call('RESTORE', start .. i, ttl, tally) end";
    let key = tallygate_harness::server::key_of(&mut server.connection(), "many", "first");
    let mut command = redis::cmd("EVAL");
    command.arg(fill).arg(1).arg(&key).arg(subjects - 1);
    command.exec(&mut server.connection()).unwrap();
    note_all(&server);

    let console = Console { url: &url, folder: folder.path() };
    let json = console.run("top many --limit 3 --json").expect(0).json();
    assert_eq!(json["subjects"], subjects);
    assert_eq!(json["top"].as_array().map(Vec::len), Some(3));
    assert_eq!(json["top"][0]["share"], 1_000);
    // In many small steps, none of which can grow with the number of subjects: so many places of the server's table are
    // looked at in one, and so many subjects are asked for together.
    let numbers = |runs: &[Run], word| -> Vec<u64> { runs.iter().map(|run| run.number(word)).collect() };
    let steps = numbers(&runs_of(&server, "SCAN"), 5);
    assert!(steps.len() > usize::try_from(subjects).unwrap() / 1_000, "{} steps", steps.len());
    assert!(steps.iter().all(|&places| places <= 250), "{steps:?}");
    let questions = numbers(&runs_of(&server, "EVALSHA"), 2);
    assert_eq!(questions.iter().sum::<u64>(), subjects);
    assert!(questions.iter().all(|&subjects| subjects <= 16), "{questions:?}");
}
