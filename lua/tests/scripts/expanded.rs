//! The scripts as the server gets them. A diff shows what a change of a part or of a constant does to them.

use std::path::Path;
use std::{env, fs};

use tallygate_lua::{
    BAN, DECIDE, LEASE, PAUSE, PROBE_PLACE, REFUND, REGISTER, pausable, pausable_alone, windows, windows_alone,
    windows_together,
};

/// If this is `overwrite`, the test writes the scripts.
const VARIABLE: &str = "TALLYGATE_EXPANDED";

#[test]
fn the_scripts_are_those_in_the_folder_expanded() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expanded");
    let windows = [windows(2), windows_alone(2), windows_together(2, 2)];
    let pausable = [pausable(&windows[0]), pausable_alone(2)];
    let scripts = [
        ("decide.lua", DECIDE),
        ("windows.lua", &windows[0]),
        ("windows_alone.lua", &windows[1]),
        ("windows_together.lua", &windows[2]),
        ("pausable_windows.lua", &pausable[0]),
        ("pausable_windows_alone.lua", &pausable[1]),
        ("pause.lua", PAUSE),
        ("probe.lua", PROBE_PLACE),
        ("refund.lua", REFUND),
        ("lease.lua", LEASE),
        ("ban.lua", BAN),
        ("register.lua", REGISTER),
    ];
    for (file, script) in scripts {
        let path = folder.join(file);
        if env::var(VARIABLE).is_ok_and(|value| value == "overwrite") {
            fs::write(&path, script).unwrap();
        }
        let expected = fs::read_to_string(&path).unwrap_or_default();
        let differs = script.lines().zip(expected.lines()).position(|(line, expected)| line != expected);
        assert!(
            script == expected,
            "{file} differs from {} in line {}; if it should, {VARIABLE}=overwrite cargo test -p tallygate-lua writes it",
            path.display(),
            differs.unwrap_or(script.lines().count().min(expected.lines().count())) + 1,
        );
    }
}
