//! `completions`, and what closes the output early.

use std::process::Command;

use crate::console::Console;
use crate::seeded::folder;

#[test]
fn each_shell_has_a_script_that_it_can_read() {
    let folder = folder();
    let console = Console { url: "", folder: folder.path() };
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let printed = console.run(&format!("completions {shell}")).expect(0);
        assert!(printed.out.contains("simulate") && printed.out.contains("skip-bad-rows"), "{shell}");
        // Where the shell is installed, it reads it.
        let file = folder.path().join(shell);
        std::fs::write(&file, printed.out).unwrap();
        if let Ok(read) = Command::new(shell).arg("-n").arg(&file).output() {
            assert!(read.status.success() || shell == "elvish", "{read:?}");
        }
    }
    let printed = console.run("completions basch").expect(2);
    assert!(printed.errors.contains("'bash'"), "{printed:?}");
}

#[test]
fn a_reader_that_stops_early_is_no_mistake() {
    let folder = folder();
    let console = Console { url: "", folder: folder.path() };
    let printed = console.shell("tallygate completions bash | head -n 1; tallygate --help | head -n 1");
    assert_eq!((printed.out.lines().count(), printed.errors.as_str()), (2, ""), "{printed:?}");
}
