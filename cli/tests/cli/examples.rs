//! Every example of the help is run.

use crate::console::Console;
use crate::seeded::Seeded;
use crate::{pauses, plans};

/// The examples that the help of a command shows.
fn examples(console: &Console<'_>, help: &str) -> Vec<String> {
    let text = console.run(help).expect(0).out;
    let (_, examples) = text.split_once("Examples:\n").unwrap_or_else(|| panic!("{help} shows no examples: {text}"));
    let lines = examples.lines().take_while(|line| !line.is_empty());
    lines.map(|line| line.trim().to_owned()).filter(|line| line.starts_with("tallygate ")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_example_of_the_help_does_what_it_says() {
    let seeded = Seeded::start().await;
    plans::begin(&seeded).await;
    pauses::begin(&seeded).await;
    let console = seeded.console();
    let mut helps: Vec<_> = console.commands().iter().map(|command| format!("help {command}")).collect();
    helps.push("--help".to_owned());
    for help in helps {
        let examples = examples(&console, &help);
        assert!(!examples.is_empty(), "{help}");
        for example in examples {
            if example.contains("watch") {
                // It needs a terminal: the tests of that run it.
                continue;
            }
            let printed = console.shell(&example);
            // A peek tells by 1 that the caller is denied, and a strict look that there is a warning.
            let may_be_no = example.contains("peek") || example.contains("--strict");
            assert!(printed.code == 0 || printed.code == 1 && may_be_no, "{example}: {printed:?}");
            assert!(printed.errors.is_empty(), "{example}: {printed:?}");
        }
    }
}

#[test]
fn each_command_and_each_option_is_explained() {
    let folder = crate::seeded::folder();
    let console = Console { url: "", folder: folder.path() };
    for command in console.commands() {
        let help = console.run(&format!("{command} --help")).expect(0).out;
        let undocumented = help.split("\n\n").find(|part| part.trim_start().starts_with("--") && !part.contains('\n'));
        assert_eq!(undocumented, None, "{command}");
    }
}
