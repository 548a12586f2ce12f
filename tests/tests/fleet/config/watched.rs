//! A file that a limiter watches. The clock is paused, so that the seconds between two readings take no time.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tallygate::{ErrorKind, FileWatch, Limiter, Policy};
use tallygate_harness::log::Log;
use tempfile::TempDir;
use tokio::runtime::Builder;
use tokio::time::timeout;

use super::{file, hourly, room, subject};

/// A policy of one call per hour, and the folder of a file that allows so many.
fn start(name: &'static str, count: u64) -> (TempDir, Policy) {
    let folder = tempfile::tempdir().unwrap();
    allow(folder.path(), name, count);
    (folder, Policy::builder(name).rule(hourly(1)).build().unwrap())
}

fn allow(folder: &Path, name: &str, count: u64) {
    fs::write(folder.join("limits.toml"), file(name, &format!("'{count} per 1h'"))).unwrap();
}

fn watch(limiter: &Limiter, folder: &Path) -> FileWatch {
    limiter.watch_file(folder.join("limits.toml")).unwrap()
}

#[tokio::test(start_paused = true)]
async fn in_memory_a_file_is_applied_at_once_and_whenever_it_changes() {
    let (folder, policy) = start("watched.changes", 2);
    let limiter = Limiter::in_memory();
    let mut watch = watch(&limiter, folder.path());
    watch.latest().unwrap().require_known().unwrap();
    assert_eq!(room(&limiter, &policy).await, 2);
    for count in [5, 7] {
        allow(folder.path(), "watched.changes", count);
        assert_eq!(watch.changed().await.unwrap().unwrap().unknown(), []);
        assert!(room(&limiter, &policy).await > 0);
    }
}

#[tokio::test(start_paused = true)]
async fn in_memory_links_of_a_mounted_file_may_be_swapped() {
    let (folder, policy) = start("watched.links", 2);
    let mounted = folder.path();
    for (version, count) in [("one", 2), ("two", 5)] {
        fs::create_dir(mounted.join(version)).unwrap();
        allow(&mounted.join(version), "watched.links", count);
    }
    fs::remove_file(mounted.join("limits.toml")).unwrap();
    symlink("one", mounted.join("data")).unwrap();
    symlink("data/limits.toml", mounted.join("limits.toml")).unwrap();
    let limiter = Limiter::in_memory();
    let mut watch = watch(&limiter, mounted);
    assert_eq!(room(&limiter, &policy).await, 2);

    symlink("two", mounted.join("next")).unwrap();
    fs::rename(mounted.join("next"), mounted.join("data")).unwrap();
    watch.changed().await.unwrap().unwrap();
    assert_eq!(room(&limiter, &policy).await, 3);
}

#[tokio::test(start_paused = true)]
async fn in_memory_a_mistaken_or_missing_file_leaves_the_last_good_one_in_force_and_is_reported() {
    let (log, _listening) = Log::listen();
    let (folder, policy) = start("watched.mistaken", 2);
    let path = folder.path().join("limits.toml");
    let limiter = Limiter::in_memory();
    let mut watch = watch(&limiter, folder.path());

    fs::write(&path, "[policy.'watched.mistaken']\nrules = ['0 per 1h']").unwrap();
    let error = watch.changed().await.unwrap().unwrap_err();
    let mistake = "line 2, column 10: `count` must be at least 1, like `count = 10`";
    assert_eq!(error.to_string(), format!("the file `{}` cannot be used: {mistake}", path.display()));
    assert_eq!(error.kind(), ErrorKind::Config);
    assert_eq!(watch.latest().unwrap_err(), error);
    assert_eq!(room(&limiter, &policy).await, 2);
    let lines = log.lines();
    let said: Vec<_> = lines.iter().filter(|line| line.contains("is not applied")).collect();
    assert!(said.len() == 1 && said[0].contains("ERROR") && said[0].contains(mistake), "{said:?}");

    fs::remove_file(&path).unwrap();
    let error = watch.changed().await.unwrap().unwrap_err().to_string();
    assert!(error.contains("No such file"), "{error}");
    allow(folder.path(), "watched.mistaken", 3);
    watch.changed().await.unwrap().unwrap();
    assert_eq!(room(&limiter, &policy).await, 1);
}

/// Two policies of one call per hour, and a limiter that watches a file with two calls for each.
fn start_two(names: [&'static str; 2], end: &str) -> (TempDir, [Policy; 2], Limiter, FileWatch, String) {
    let folder = tempfile::tempdir().unwrap();
    let policies = names.map(|name| Policy::builder(name).rule(hourly(1)).build().unwrap());
    let text = names.map(|name| file(name, "'2 per 1h'") + "\n").concat() + end;
    fs::write(folder.path().join("limits.toml"), &text).unwrap();
    let limiter = Limiter::in_memory();
    let watch = watch(&limiter, folder.path());
    (folder, policies, limiter, watch, text)
}

#[tokio::test(start_paused = true)]
async fn in_memory_a_file_that_is_emptied_or_blocked_leaves_all_limits_in_force_and_is_reported() {
    let (log, _listening) = Log::listen();
    let (folder, policy) = start("watched.emptied", 2);
    let path = folder.path().join("limits.toml");
    let limiter = Limiter::in_memory();
    let mut watch = watch(&limiter, folder.path());
    let empty = "there are no policies; write one, like `[policy.\"sms.send\"]`, or `[end]` as the last line";
    let forms: [(&dyn Fn(), &str); 8] = [
        (&|| fs::write(&path, "").unwrap(), empty),
        (&|| fs::write(&path, " \r\n\n").unwrap(), empty),
        (&|| fs::write(&path, "\u{feff}# limits\n").unwrap(), empty),
        (&|| fs::write(&path, "[policy]\n").unwrap(), empty),
        (&|| fs::write(&path, "\0\0\0\0").unwrap(), "line 1, column 1"),
        (&|| fs::create_dir(&path).unwrap(), "it is no regular file"),
        (&|| symlink("/dev/zero", &path).unwrap(), "it is no regular file"),
        (&|| assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()), "it is no regular file"),
    ];
    for (number, (change, mistake)) in forms.into_iter().enumerate() {
        fs::remove_file(&path).unwrap();
        change();
        let error = watch.changed().await.unwrap().unwrap_err().to_string();
        assert!(error.contains(mistake), "{error}");
        assert_eq!(room(&limiter, &policy).await, if number == 0 { 2 } else { 0 });
        assert_eq!(log.lines().iter().filter(|line| line.contains("ERROR")).count(), number + 1);
        _ = fs::remove_dir(&path).or_else(|_| fs::remove_file(&path));
        allow(folder.path(), "watched.emptied", 2);
        watch.changed().await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn in_memory_a_file_may_say_that_it_is_empty() {
    let (folder, policy) = start("watched.ended", 2);
    let limiter = Limiter::in_memory();
    let mut watch = watch(&limiter, folder.path());
    fs::write(folder.path().join("limits.toml"), "# none\r\n[end] # here\r\n").unwrap();
    watch.changed().await.unwrap().unwrap();
    assert_eq!(room(&limiter, &policy).await, 1);
}

#[tokio::test(start_paused = true)]
async fn in_memory_a_file_that_is_cut_anywhere_is_not_applied() {
    let (folder, policies, limiter, mut watch, text) = start_two(["watched.cut", "watched.off"], "");
    let path = folder.path().join("limits.toml");
    for length in 0..text.trim_end().len() {
        fs::write(&path, &text[..length]).unwrap();
        watch.changed().await.unwrap().unwrap_err();
    }
    for policy in &policies {
        assert_eq!(room(&limiter, policy).await, 2);
    }
    fs::write(&path, &text).unwrap();
    watch.changed().await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn in_memory_a_policy_that_leaves_the_file_is_in_force_until_that_is_confirmed_and_is_named() {
    let (log, _listening) = Log::listen();
    let names = ["watched.stays", "watched.leaves"];
    let (folder, [_, leaves], limiter, mut watch, _) = start_two(names, "");
    fs::write(folder.path().join("limits.toml"), file(names[0], "'2 per 1h'")).unwrap();
    let error = watch.changed().await.unwrap().unwrap_err().to_string();
    let held = "it no longer has the policy `watched.leaves`; if it was not cut, it is applied once it has been so for 10 \
                seconds, or at once with `[end]` as its last line";
    assert!(error.ends_with(held), "{error}");
    assert_eq!(room(&limiter, &leaves).await, 2);
    watch.changed().await.unwrap().unwrap();
    let lines = log.lines();
    let lost = |line: &&String| line.contains("WARN") && line.contains("are no longer in the file");
    let lost: Vec<_> = lines.iter().filter(lost).collect();
    assert!(lost.len() == 1 && lost[0].contains("policies=`watched.leaves`"), "{lines:?}");
    assert!(!limiter.check(&leaves, &subject()).await.unwrap().is_allowed());
    limiter.check(&leaves, &subject()).reset().await.unwrap();
    assert_eq!(room(&limiter, &leaves).await, 1);
}

#[tokio::test(start_paused = true)]
async fn in_memory_a_file_that_has_its_end_is_applied_at_once_and_refused_without_it() {
    let names = ["watched.whole", "watched.second"];
    let (folder, [_, second], limiter, mut watch, text) = start_two(names, "[end]\n");
    let path = folder.path().join("limits.toml");
    fs::write(&path, text.replace("[end]\n", "")).unwrap();
    let error = watch.changed().await.unwrap().unwrap_err().to_string();
    assert!(error.ends_with("it was cut, as its last line `[end]` is missing; write it again"), "{error}");
    assert!(timeout(Duration::from_secs(60), watch.changed()).await.is_err(), "it is not confirmed by its age");
    watch.latest().unwrap_err();
    assert_eq!(room(&limiter, &second).await, 2);
    fs::write(&path, file(names[0], "'2 per 1h'") + "\n[end]").unwrap();
    watch.changed().await.unwrap().unwrap();
}

#[test]
fn in_memory_a_pipe_in_place_of_the_file_keeps_no_process_from_ending() {
    let (folder, _policy) = start("watched.pipe", 2);
    let path = folder.path().join("limits.toml");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let limiter = Limiter::in_memory();
    runtime.block_on(async {
        let mut watch = watch(&limiter, folder.path());
        fs::remove_file(&path).unwrap();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let error = watch.changed().await.unwrap().unwrap_err().to_string();
        assert!(error.ends_with("it is no regular file"), "{error}");
        let error = Limiter::in_memory().watch_file(&path).unwrap_err().to_string();
        assert!(error.ends_with("it is no regular file"), "{error}");
    });
    // Waits for all threads that read.
    drop(runtime);
}

#[tokio::test(start_paused = true)]
async fn in_memory_a_file_is_watched_as_long_as_the_limiter_lives() {
    let (folder, _policy) = start("watched.gone", 2);
    let limiter = Limiter::in_memory();
    let mut watch = watch(&limiter, folder.path());
    drop(limiter);
    allow(folder.path(), "watched.gone", 3);
    assert!(watch.changed().await.is_none());
}

#[tokio::test]
async fn in_memory_a_file_that_cannot_be_used_at_first_is_an_error() {
    let (folder, _policy) = start("watched.first", 2);
    let limiter = Limiter::in_memory();
    let refused = |bytes: &[u8]| {
        fs::write(folder.path().join("refused.toml"), bytes).unwrap();
        limiter.watch_file(folder.path().join("refused.toml")).unwrap_err().to_string()
    };
    assert!(refused(b"[policy.'watched.first']\nrules = 7").contains("line 2, column 9: `rules` must be a list"));
    assert!(refused(&[0xff, 0xfe]).contains("UTF-8"));
    assert!(refused(b"").contains("line 1, column 1: there are no policies; "));
    assert!(refused(b"# nothing yet\n").contains("there are no policies; "));
    let folder_error = limiter.watch_file(folder.path()).unwrap_err().to_string();
    assert!(folder_error.ends_with("it is no regular file"), "{folder_error}");
    assert!(refused(&vec![b'\n'; (4 << 20) + 1]).ends_with("it is longer than 4 MiB"));
    let missing = limiter.watch_file(folder.path().join("none.toml")).unwrap_err().to_string();
    assert!(missing.contains("none.toml` cannot be used: No such file"), "{missing}");
    // No attempt has left anything behind.
    watch(&limiter, folder.path()).latest().unwrap();
}

#[tokio::test]
async fn in_memory_a_limiter_watches_one_file() {
    let (folder, _policy) = start("watched.one", 2);
    let limiter = Limiter::in_memory();
    let first = watch(&limiter, folder.path());
    let error = limiter.watch_file(folder.path().join("limits.toml")).unwrap_err().to_string();
    let remedy = "write all policies into one file";
    assert_eq!(error, format!("`watch_file`: this limiter watches a file already; {remedy}"));
    first.latest().unwrap();
}

#[test]
fn in_memory_a_file_is_watched_in_a_runtime() {
    let error = Limiter::in_memory().watch_file("limits.toml").unwrap_err().to_string();
    assert_eq!(error, "`watch_file` needs a runtime of tokio; call it in an `async fn`");
}

#[test]
fn in_memory_a_file_is_watched_on_when_the_runtime_has_ended_in_which_that_began() {
    let (folder, policy) = start("watched.on", 2);
    let limiter = Limiter::in_memory();
    let runtime = || Builder::new_current_thread().enable_all().build().unwrap();
    let mut watch = runtime().block_on(async { watch(&limiter, folder.path()) });
    allow(folder.path(), "watched.on", 5);
    runtime().block_on(async {
        watch.changed().await.unwrap().unwrap();
        assert_eq!(room(&limiter, &policy).await, 5);
    });
}
