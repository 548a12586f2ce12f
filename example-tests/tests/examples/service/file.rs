//! The file of limits.

use std::fs;
use std::path::PathBuf;

use reqwest::Response;
use tallygate_harness::until::until_found;
use tempfile::TempDir;

use super::{SERVICE, ask, problem, start};
use crate::process::{Service, fail_to_start};

/// A file of limits, which a service watches.
struct Limits {
    folder: TempDir,
}

impl Limits {
    fn new(text: &str) -> Self {
        let limits = Self { folder: TempDir::new().unwrap() };
        limits.write(text);
        limits
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("limits.toml")
    }

    fn write(&self, text: &str) {
        fs::write(self.path(), text).unwrap();
    }

    fn start(&self) -> Service {
        start(&[("LIMITS_FILE", self.path().to_str().unwrap())])
    }
}

/// How many searches are left to a user, as a response says.
async fn left(service: &Service, user: &str) -> u64 {
    let answer = service.get("/search").header("x-user", user).send().await.unwrap();
    let limits = answer.headers()["ratelimit"].to_str().unwrap().to_owned();
    let api = limits.split(", ").find(|item| item.starts_with("\"api.")).expect("the policy `api` has decided it");
    api.split(";r=").nth(1).and_then(|rest| rest.split(';').next()).expect("it has `r`").parse().unwrap()
}

const API: &str = r#"
[policy.api]
match = { path = "/*" }
key = "{@user|@ip}"
rules = ["300 per 1h"]
plan = "{@plan}"
plans = { paid = 3_000 }
"#;

#[tokio::test]
async fn a_user_who_pays_has_the_limits_of_the_plan() {
    let service = start(&[]);
    assert_eq!([left(&service, "alice").await, left(&service, "carol").await], [299, 2_999]);
}

/// Whether a rule has denied it that counts calls, and not the answer that is running.
async fn is_limited(answer: Response) -> bool {
    answer.status() == 429 && problem(answer).await.1["kind"] == "limited"
}

#[tokio::test]
async fn a_changed_file_changes_the_limits_of_a_service_that_runs() {
    let limits = Limits::new(API);
    let service = limits.start();
    assert_eq!([left(&service, "alice").await, left(&service, "carol").await], [299, 2_999]);

    limits.write(&(API.replace("3_000", "5_000") + "\n[policy.answers]\nplans = { free = 1 }\n"));
    until_found("the plan has more", async || left(&service, "carol").await > 3_000).await;
    assert_eq!(ask(&service, "alice", 1).await.text().await.unwrap(), "data: once\n\n");
    until_found("the plan has one answer", async || is_limited(ask(&service, "alice", 1).await).await).await;
}

#[tokio::test]
async fn the_file_sets_the_tokens_of_answers_and_leaves_their_number() {
    let limits = Limits::new(&format!("{API}\n[policy.answers]\nrules = [\"10 tokens per 1h\"]\n"));
    let service = limits.start();
    assert_eq!(ask(&service, "alice", 1).await.text().await.unwrap(), "data: once\n\n");
    // Five tokens are used, and this needs six.
    assert!(is_limited(ask(&service, "alice", 2).await).await);
}

#[test]
fn a_service_does_not_start_with_a_file_of_limits_that_it_does_not_have() {
    let limits = Limits::new("[policy.serach]\nrules = [\"1 per 1m\"]\n");
    let output = fail_to_start(&SERVICE, &[("LIMITS_FILE", limits.path().to_str().unwrap())]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && told.contains("did you mean `search`?"), "{told}");
}
