//! A server with the policies and the calls of a fleet.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tallygate::{Ban, Limiter, Policy, Rule, Subject};
use tallygate_harness::server::{Server, connected, patient};
use tallygate_harness::until::until_found;
use tempfile::TempDir;

use crate::console::Console;

pub(crate) const MINUTE: Duration = Duration::from_secs(60);
pub(crate) const HOUR: Duration = Duration::from_secs(3_600);

/// Who has made a call.
pub(crate) const CALLER: &str = "13800000000";

/// The secret of the programs.
const SECRET: &str = "a secret of the programs";

/// Limits that the documentation shows.
const LIMITS: &str = r#"[policy."sms.send"]
key = "sms:{phone}"
rules = ["1 per 1m", "5 per 1h", { count = 10, per = "1d", name = "daily" }]
"#;

/// Six calls, of which `1 per 1m` denies two.
const CALLS: &str = "\
time,subject
1800000000,138
1800000010,138
1800000070,138
1800000100,139
1800000110,138
1800000130,138
";

/// A server with the policies and the calls of a fleet, and a folder with files.
pub(crate) struct Seeded {
    pub(crate) server: Server,
    url: String,
    folder: TempDir,
}

impl Seeded {
    /// Starts a server, and makes a call.
    pub(crate) async fn start() -> Self {
        let server = Server::start();
        let url = server.url();
        seed(&limiter(&url, "tallygate").await).await;
        Self { server, url, folder: folder() }
    }

    /// Returns where commands are run.
    pub(crate) fn console(&self) -> Console<'_> {
        Console { url: &self.url, folder: self.folder.path() }
    }
}

/// Returns a limiter as programs have one.
pub(crate) async fn limiter(url: &str, prefix: &str) -> Limiter {
    connected(&patient().registry(true).prefix(prefix).secret(SECRET), url).await
}

/// Returns a folder with the files of the documentation.
pub(crate) fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("limits.toml", LIMITS);
    write("other.toml", &LIMITS.replace("1 per 1m", "2 per 1m"));
    write("calls.csv", CALLS);
    write("mistaken.csv", "time,subject\n1800000000,138\nyesterday,138\n1800000070,138\n");
    write("tenants.toml", "[policy.tenant]\nrules = [\"100 per 10s\"]\n");
    write("tenants.csv", &busy());
    write("secret", &format!("{SECRET}\n"));
    folder
}

/// The calls of one busy tenant: 20 a second, for 110 seconds.
fn busy() -> String {
    let calls = (0..2_200).map(|call| format!("{}.{:02},acme\n", 1_800_000_000 + call / 20, call % 20 * 5));
    format!("time,subject\n{}", calls.collect::<String>())
}

/// The policy with three rules.
pub(crate) fn sms() -> Policy {
    let rules = [Rule::sliding_window(1, MINUTE), Rule::sliding_window(5, HOUR)];
    let daily = Rule::sliding_window(10, 24 * HOUR).named("daily");
    Policy::builder("sms.send").key("sms:{phone}").rules(rules).rule(daily).build().unwrap()
}

/// The policy with a ban.
pub(crate) fn login() -> Policy {
    let ban = Ban::new(20, 10 * MINUTE, HOUR);
    Policy::builder("login").key("{user}").rule(Rule::sliding_window(10, MINUTE)).ban(ban).build().unwrap()
}

/// Makes calls, and waits until the policies are listed.
pub(crate) async fn seed(limiter: &Limiter) {
    let (sms, login) = (sms(), login());
    let caller = Subject::of("sms").and(CALLER);
    assert!(limiter.check(&sms, &caller).await.unwrap().is_allowed());
    assert!(limiter.check(&login, &Subject::of("alice")).await.unwrap().is_allowed());
    listed(limiter, 2).await;
}

/// Waits until so many policies are listed.
pub(crate) async fn listed(limiter: &Limiter, policies: usize) {
    until_found("the policies are listed", async || {
        limiter.registered_policies().await.unwrap().policies().len() == policies
    })
    .await;
}

/// Writes a file.
pub(crate) fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).unwrap();
}
