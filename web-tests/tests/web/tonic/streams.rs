//! Streams of messages: how long their calls run, and what they count as.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::{StreamExt as _, stream};
use tallygate::{Limiter, Subject, rate_limit};
use tallygate_harness::until::until_found;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tonic::body::Body;
use tonic::client::Grpc as Caller;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::codegen::{BoxStream, Service, http};
use tonic::server::{Grpc, NamedService, ServerStreamingService};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Request, Response, Status, Streaming};

use super::text::{Text, connect};

/// What sends the messages of one stream. Dropping it ends the stream.
type Sender = UnboundedSender<Result<String, Status>>;

/// Answers each call with a stream, whose messages the test sends.
#[derive(Clone)]
struct News {
    limiter: Limiter,
    opened: UnboundedSender<Sender>,
}

/// Reserves 100 tokens, and uses 1 for each message.
#[rate_limit(
    name = "news",
    key = "k",
    until = "body",
    unit("tokens", cost = 100, settle = metered),
    rule(count = 1_000, per = "1h", unit = "tokens"),
    concurrency(limit = 1, lease = "1m"),
    limiter = news.limiter
)]
async fn news(news: News) -> Result<Response<BoxStream<String>>, Status> {
    let tokens = tallygate::meter("tokens")?;
    let (sender, messages) = mpsc::unbounded_channel();
    news.opened.send(sender).expect("the test listens");
    let messages = stream::unfold(messages, async |mut messages| Some((messages.recv().await?, messages)));
    Ok(Response::new(messages.inspect(move |_| tokens.add(1)).boxed()))
}

impl NamedService for News {
    const NAME: &'static str = "news.News";
}

impl Service<http::Request<Body>> for News {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(Grpc::new(Text).server_streaming(service, request).await) })
    }
}

impl ServerStreamingService<String> for News {
    type Response = String;
    type ResponseStream = BoxStream<String>;
    type Future = Pin<Box<dyn Future<Output = Result<Response<BoxStream<String>>, Status>> + Send>>;

    fn call(&mut self, _: Request<String>) -> Self::Future {
        Box::pin(news(self.clone()))
    }
}

/// A server under test.
struct Served {
    address: SocketAddr,
    limiter: Limiter,
    opened: UnboundedReceiver<Sender>,
}

impl Served {
    async fn start() -> Self {
        let limiter = Limiter::in_memory();
        let (sender, opened) = mpsc::unbounded_channel();
        let news = News { limiter: limiter.clone(), opened: sender };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(Server::builder().add_service(news).serve_with_incoming(TcpIncoming::from(listener)));
        Self { address, limiter, opened }
    }

    async fn ask(&self) -> Result<Streaming<String>, Status> {
        let mut caller = Caller::new(connect(self.address).await);
        caller.ready().await.unwrap();
        let path = PathAndQuery::from_static("/news.News/Read");
        caller.server_streaming(Request::new(String::new()), path, Text).await.map(Response::into_inner)
    }

    /// Asks for a stream, and awaits its first message.
    async fn begin(&mut self) -> (Sender, Streaming<String>) {
        let mut messages = self.ask().await.unwrap();
        let sender = self.opened.recv().await.expect("a stream");
        sender.send(Ok("the beginning".to_owned())).expect("the stream is open");
        assert_eq!(messages.message().await.unwrap().unwrap(), "the beginning");
        assert_eq!(self.ask().await.unwrap_err().code(), Code::ResourceExhausted, "it is running");
        (sender, messages)
    }

    /// Waits until the call is over, and returns how many tokens are left.
    async fn tokens_after_the_end(&self) -> u64 {
        let policy = Limiter::policy("news").expect("it was called");
        let peek = async || self.limiter.peek(&policy, &Subject::of("k")).await.unwrap();
        until_found("the call is over", async || peek().await.is_allowed()).await;
        until_found("it is settled", async || peek().await.report()[0].remaining() > 900).await;
        peek().await.report()[0].remaining()
    }
}

#[tokio::test]
async fn a_call_runs_until_its_stream_ends_and_counts_as_what_its_messages_used() {
    let mut served = Served::start().await;
    let (sender, mut messages) = served.begin().await;
    sender.send(Ok("the end".to_owned())).expect("the stream is open");
    assert_eq!(messages.message().await.unwrap().unwrap(), "the end");
    assert_eq!(served.ask().await.unwrap_err().code(), Code::ResourceExhausted, "more may follow");
    drop(sender);
    assert_eq!(messages.message().await.unwrap(), None);
    assert_eq!(served.tokens_after_the_end().await, 1_000 - 2);
}

#[tokio::test]
async fn a_call_runs_until_its_stream_fails() {
    let mut served = Served::start().await;
    let (sender, mut messages) = served.begin().await;
    sender.send(Err(Status::aborted("no more"))).expect("the stream is open");
    assert_eq!(messages.message().await.unwrap_err().code(), Code::Aborted);
    assert_eq!(served.tokens_after_the_end().await, 1_000 - 2);
}

#[tokio::test]
async fn a_call_runs_until_its_client_has_gone() {
    let mut served = Served::start().await;
    let (sender, messages) = served.begin().await;
    drop(messages);
    assert_eq!(served.tokens_after_the_end().await, 1_000 - 1);
    assert!(sender.is_closed(), "the stream is dropped");
}
