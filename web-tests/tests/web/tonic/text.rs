//! A service and a client whose messages are texts.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use tonic::body::Body;
use tonic::client::{Grpc as Caller, GrpcService};
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::{self, uri::PathAndQuery};
use tonic::codegen::{Body as HttpBody, Bytes, Service, StdError};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status};

use bytes::{Buf as _, BufMut as _};

/// Texts as they are.
#[derive(Default)]
pub(super) struct Text;

impl Codec for Text {
    type Encode = String;
    type Decode = String;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Text {
    type Item = String;
    type Error = Status;

    fn encode(&mut self, text: String, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_slice(text.as_bytes());
        Ok(())
    }
}

impl Decoder for Text {
    type Item = String;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<String>, Status> {
        let bytes: Bytes = buffer.copy_to_bytes(buffer.remaining());
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }
}

/// Answers each call of `/captcha.Captcha/<method>` by a function of the method and the text.
#[derive(Clone)]
pub(crate) struct Captcha<F>(pub(crate) F);

impl<F> NamedService for Captcha<F> {
    const NAME: &'static str = "captcha.Captcha";
}

type Answer<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

impl<F, A> Service<http::Request<Body>> for Captcha<F>
where
    F: Fn(String, Request<String>) -> A + Clone + Send + 'static,
    A: Future<Output = Result<Response<String>, Status>> + Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answer<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let method = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
        let method = Method { method, answer: self.0.clone() };
        Box::pin(async move { Ok(Grpc::new(Text).unary(method, request).await) })
    }
}

struct Method<F> {
    method: String,
    answer: F,
}

impl<F, A> UnaryService<String> for Method<F>
where
    F: Fn(String, Request<String>) -> A,
    A: Future<Output = Result<Response<String>, Status>> + Send + 'static,
{
    type Response = String;
    type Future = Answer<Response<String>, Status>;

    fn call(&mut self, request: Request<String>) -> Self::Future {
        Box::pin((self.answer)(self.method.clone(), request))
    }
}

/// Calls a method with a text and metadata.
pub(crate) async fn call(
    server: SocketAddr,
    method: &'static str,
    text: &str,
    metadata: &[(&'static str, &str)],
) -> Result<Response<String>, Status> {
    let mut request = Request::new(text.to_owned());
    for (name, value) in metadata {
        request.metadata_mut().append(*name, value.parse().unwrap());
    }
    call_by(connect(server).await, method, request).await
}

pub(crate) async fn connect(server: SocketAddr) -> Channel {
    Endpoint::try_from(format!("http://{server}")).unwrap().connect().await.unwrap()
}

/// Calls a method by a channel, or by what stands around one.
pub(crate) async fn call_by<C>(
    channel: C,
    method: &'static str,
    request: Request<String>,
) -> Result<Response<String>, Status>
where
    C: GrpcService<
            Body,
            Error: Into<StdError>,
            ResponseBody: HttpBody<Data = Bytes, Error: Into<StdError>> + Send + 'static,
        >,
{
    let mut caller = Caller::new(channel);
    caller.ready().await.map_err(|error| Status::from_error(error.into()))?;
    let path = format!("/captcha.Captcha/{method}").parse::<PathAndQuery>().unwrap();
    caller.unary(request, path, Text).await
}
