//! Every code of an error in the program of the server is understood.

use std::collections::BTreeSet;

use tallygate::{BackendErrorKind, Limiter, Subject};
use tallygate_harness::fake::Fake;
use tallygate_harness::server::{Server, patient};

use super::policy;

/// What the server says to other servers, or of commands that a limiter does not send.
const TO_OTHERS: [&str; 17] = [
    "ERR %S",
    "ERR index out of range",
    "ERR invalid longitude",
    "ERR no such key",
    "ERR operation not permitted",
    "ERR source and destination objects",
    "BUSYGROUP",
    "BUSYKEY",
    "INPROG",
    "INVALIDOBJ",
    "IOERR",
    "NOGOOD",
    "NOGROUP",
    "NOMASTERLINK",
    "NOQUORUM",
    "NOTBUSY",
    "UNKILLABLE",
];

/// The errors in the program of the server, like `OOM command not allowed`.
fn errors(server: &Server) -> BTreeSet<String> {
    let info: String = server.ask("INFO server");
    let process = info.lines().find_map(|line| line.strip_prefix("process_id:")).expect("the server knows its process");
    let bytes = std::fs::read(format!("/proc/{}/exe", process.trim())).expect("the program can be read");
    let texts = bytes.split(|byte| !(b' '..=b'~').contains(byte));
    texts.filter_map(|text| error(str::from_utf8(text).ok()?)).collect()
}

fn error(text: &str) -> Option<String> {
    let line = text.strip_prefix('-')?;
    let (code, rest) = line.split_once(' ')?;
    let is_code = code.len() >= 3 && code.bytes().all(|byte| byte.is_ascii_uppercase());
    (is_code && !rest.is_empty()).then(|| line.to_owned())
}

async fn kind(limiter: &Limiter) -> BackendErrorKind {
    limiter.check(&policy().build().unwrap(), &Subject::of("s")).await.expect_err("the server decides nothing").kind()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn every_code_in_the_program_of_the_server_is_understood() {
    let mut errors = errors(&Server::start());
    assert!(errors.len() > 30, "{errors:?}");
    errors.retain(|line| !TO_OTHERS.iter().any(|start| line.starts_with(start)));
    let fake = Fake::start().await;
    let mut unknown = Vec::new();
    for line in errors {
        fake.answer_with(&line);
        let limiter = patient().connect_lazy(fake.url()).unwrap();
        if kind(&limiter).await == BackendErrorKind::Unknown {
            unknown.push(line);
        }
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
}
