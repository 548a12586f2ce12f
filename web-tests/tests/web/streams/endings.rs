//! The ways in which a streamed body ends.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use reqwest::{Method, Response};
use tallygate::{Limiter, Subject};
use tallygate_harness::until::until_found;
use tallygate_web_tests::Client;
use tokio::sync::mpsc::UnboundedReceiver;

use super::bodies::Sender;

/// A server under test, which streams to one call at a time of the subject `k`.
pub(super) struct Streaming {
    pub(super) limiter: Limiter,
    pub(super) bodies: UnboundedReceiver<Sender>,
}

/// When a server notices that its client has gone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Notices {
    AtOnce,
    WithTheNextPiece,
}

impl Streaming {
    /// Plays every ending on a path, whose policy has the same name.
    pub(super) async fn plays_all_endings(&mut self, client: &Client, path: &str, notices: Notices) {
        self.a_call_runs_until_its_body_ends(client, path).await;
        self.a_call_runs_until_its_body_fails(client, path).await;
        self.a_call_runs_until_its_client_has_gone(client, path, notices).await;
    }

    async fn a_call_runs_until_its_body_ends(&mut self, client: &Client, path: &str) {
        let (sender, mut response) = self.begin(client, path).await;
        let answer = client.get(path).await;
        assert_eq!((answer.status, answer.problem().kind.as_str()), (429, "concurrency"), "{path}");
        sender.send(Ok(Bytes::from("the end"))).expect("the body is open");
        assert_eq!(response.chunk().await.unwrap().unwrap(), "the end", "{path}");
        assert!(self.is_running(path).await, "{path}: more may follow");
        drop(sender);
        assert_eq!(response.text().await.unwrap(), "", "{path}");
        self.ends(path).await;
    }

    async fn a_call_runs_until_its_body_fails(&mut self, client: &Client, path: &str) {
        let (sender, mut response) = self.begin(client, path).await;
        sender.send(Err(io::Error::other("no more"))).expect("the body is open");
        assert!(response.chunk().await.is_err(), "{path}");
        self.ends(path).await;
    }

    async fn a_call_runs_until_its_client_has_gone(&mut self, client: &Client, path: &str, notices: Notices) {
        let (sender, response) = self.begin(client, path).await;
        drop(response);
        if notices == Notices::AtOnce {
            self.ends(path).await;
            assert!(sender.is_closed(), "{path}: the body is dropped");
        } else {
            until_found("the server notices", async || sender.send(Ok(Bytes::from("more"))).is_err()).await;
            self.ends(path).await;
        }
    }

    /// Plays endings on a path under a rule of 1,000 an hour, whose calls reserve 100 and use 1 for each piece.
    pub(super) async fn settles_for_its_pieces(&mut self, client: &Client, path: &str) {
        let (sender, response) = self.begin(client, path).await;
        assert_eq!(self.remaining(path).await, 900, "{path}");
        for piece in ["one", "two"] {
            sender.send(Ok(Bytes::from(piece))).expect("the body is open");
        }
        drop(sender);
        assert_eq!(response.text().await.unwrap(), "onetwo", "{path}");
        until_found("the end settles", async || self.remaining(path).await == 1_000 - 3).await;
        self.ends(path).await;

        let (_sender, response) = self.begin(client, path).await;
        drop(response);
        until_found("the loss of the client settles", async || self.remaining(path).await == 1_000 - 3 - 1).await;
        self.ends(path).await;
    }

    /// Plays a call that is answered at once, and whose task uses 1 for each piece.
    pub(super) async fn settles_for_its_task(&mut self, client: &Client, path: &str) {
        assert_eq!(client.get(path).await.status, 202, "{path}");
        let sender = self.bodies.recv().await.expect("the task reads");
        sender.send(Ok(Bytes::from("one"))).expect("the task reads");
        assert_eq!(self.remaining(path).await, 900, "{path}");
        assert_eq!(self.limiter.drain(Duration::ZERO).await.meters(), 1, "{path}");
        sender.send(Ok(Bytes::from("two"))).expect("the task reads");
        drop(sender);
        let left = self.limiter.drain(Duration::from_secs(60)).await;
        assert!(left.is_nothing(), "{path}: {left}");
        assert_eq!(self.remaining(path).await, 1_000 - 2, "{path}");
    }

    /// Asks for a body, and awaits its first piece.
    async fn begin(&mut self, client: &Client, path: &str) -> (Sender, Response) {
        let mut response = client.request(Method::GET, path, &[]).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        let sender = self.bodies.recv().await.expect("a body");
        sender.send(Ok(Bytes::from("the beginning"))).expect("the body is open");
        assert_eq!(response.chunk().await.unwrap().unwrap(), "the beginning", "{path}");
        assert!(self.is_running(path).await, "{path}");
        (sender, response)
    }

    async fn ends(&self, path: &str) {
        until_found("the call is over", async || !self.is_running(path).await).await;
    }

    /// What remains under the first rule.
    async fn remaining(&self, path: &str) -> u64 {
        let policy = Limiter::policy(path).expect("it was called");
        self.limiter.peek(&policy, &Subject::of("k")).await.unwrap().report()[0].remaining()
    }

    async fn is_running(&self, path: &str) -> bool {
        let policy = Limiter::policy(path).expect("it was called");
        !self.limiter.peek(&policy, &Subject::of("k")).await.unwrap().is_allowed()
    }
}
