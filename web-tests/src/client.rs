//! A client of a server under test.

use std::net::SocketAddr;

use reqwest::Method;

use crate::answer::Answer;

/// The versions of HTTP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Http {
    /// HTTP/1.1.
    One,
    /// HTTP/2, from the start.
    Two,
}

/// Asks one server, over connections of its own.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    server: SocketAddr,
}

impl Client {
    /// Returns a client by HTTP/1.1.
    #[must_use]
    pub fn new(server: SocketAddr) -> Self {
        Self::by(Http::One, server)
    }

    /// Returns a client by that version, without a proxy or an upgrade.
    #[must_use]
    pub fn by(http: Http, server: SocketAddr) -> Self {
        let builder = reqwest::Client::builder().no_proxy();
        let builder = if http == Http::Two { builder.http2_prior_knowledge() } else { builder.http1_only() };
        Self { http: builder.build().expect("a client"), server }
    }

    /// Sends `GET`.
    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[]).await
    }

    /// Sends `GET` with fields.
    pub async fn get_with(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        self.send(Method::GET, path, fields).await
    }

    /// Sends a request without a body.
    pub async fn send(&self, method: Method, path: &str, fields: &[(&str, &str)]) -> Answer {
        Answer::read(self.request(method, path, fields).send().await.expect("an answer")).await
    }

    /// Sends a request with a body.
    pub async fn send_body(&self, method: Method, path: &str, fields: &[(&str, &str)], body: &str) -> Answer {
        let request = self.request(method, path, fields).body(body.to_owned());
        Answer::read(request.send().await.expect("an answer")).await
    }

    /// Returns a request without a body, to be sent or dropped.
    pub fn request(&self, method: Method, path: &str, fields: &[(&str, &str)]) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("http://{}{path}", self.server));
        fields.iter().fold(request, |request, (name, value)| request.header(*name, *value))
    }
}
