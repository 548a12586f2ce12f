//! Clients of the service in axum, which bring about all that the dashboard shows.

use std::sync::LazyLock;

use escargot::CargoRun;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::json;
use tallygate_harness::server::Server as Redis;

use crate::built;
use crate::process::{METRICS, Service};
use crate::upload::Upload;

static SERVICE: LazyLock<CargoRun> = LazyLock::new(|| built::service("service-example"));

/// The service, and clients behind a proxy.
pub(crate) struct Traffic {
    pub(crate) service: Service,
}

impl Traffic {
    pub(crate) fn start(redis: &Redis) -> Self {
        let variables = [
            ("TALLYGATE_URL", &*redis.url()),
            ("ADMIN_TOKEN", "sesame"),
            ("TRUSTED_PROXIES", "127.0.0.0/8"),
            (METRICS, "127.0.0.1:0"),
        ];
        Self { service: Service::start(&SERVICE, &variables) }
    }

    pub(crate) async fn report(&self, client: u8) -> StatusCode {
        answer(self.from(client, Method::GET, "/report")).await
    }

    pub(crate) async fn search(&self, client: u8) -> StatusCode {
        answer(self.from(client, Method::GET, "/search")).await
    }

    pub(crate) async fn suggest(&self, client: u8) -> StatusCode {
        answer(self.from(client, Method::GET, "/suggestions")).await
    }

    pub(crate) async fn code(&self, client: u8, email: &str) -> StatusCode {
        answer(self.from(client, Method::POST, "/codes").json(&json!({ "email": email }))).await
    }

    pub(crate) async fn draw(&self, client: u8, user: &str) -> StatusCode {
        answer(self.from(client, Method::POST, "/lottery").header("x-user", user)).await
    }

    /// Asks for an answer of three tokens, and hears all of it.
    pub(crate) async fn answer(&self, user: &str) -> StatusCode {
        let question = json!({ "text": "tell me a story", "longest": 3 });
        let request = self.service.request(Method::POST, "/answers").header("x-user", user).json(&question);
        let answered = request.send().await.expect("the service answers");
        let status = answered.status();
        answered.bytes().await.expect("the answer ends");
        status
    }

    /// Begins an import, which is running until the contacts are sent.
    pub(crate) async fn import(&self, client: u8, user: &str) -> Upload {
        Upload::begin(&self.service, &[("x-forwarded-for", &address(client)), ("x-user", user)]).await
    }

    /// Overrides a rule of a mail address.
    pub(crate) async fn raise(&self, email: &str, rules: &str) {
        let path = format!("/admin/limits/policies/mail.code/override?email={email}");
        let request = self.service.request(Method::PUT, &path).bearer_auth("sesame");
        assert_eq!(answer(request.json(&json!({ "rules": rules }))).await, 200);
    }

    fn from(&self, client: u8, method: Method, path: &str) -> RequestBuilder {
        self.service.request(method, path).header("x-forwarded-for", address(client))
    }
}

fn address(client: u8) -> String {
    format!("198.51.100.{client}")
}

async fn answer(request: RequestBuilder) -> StatusCode {
    request.send().await.expect("the service answers").status()
}
