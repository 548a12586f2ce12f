//! The routes of operators.

mod body;
mod error;
#[cfg(feature = "utoipa")]
mod openapi;
mod operations;
mod query;
mod resource;

use std::convert::Infallible;
use std::error::Error as StdError;
use std::future::Future;
use std::pin::Pin;
use std::task::{self, Poll};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Request, Response};
use http_body::Body;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use serde_json::Value;
use tower_service::Service;

pub(super) use self::error::{AdminError, MOST_BYTES};
use self::query::{Operated, Query};
use self::resource::Resource;
use crate::limiter::Limiter;
use crate::observe::opaque_debug;

/// Routes for operators, in JSON: they list policies, peek at subjects, reset, ban, pause and override.
///
/// <div class="warning">
///
/// **The routes have no authorization of their own.** Whoever reaches them sees subjects, and lifts any limit. Mount them only
/// behind the authorization of the service, as the example does.
///
/// </div>
///
/// It is a service of `tower`, for axum and every server whose requests are of the crate `http`, and with the feature `actix` a
/// service of actix-web, inside a scope. The path of the request has to be without the prefix under which it is mounted: axum's
/// `nest_service` and scopes of actix-web see to that.
///
/// | method | path | does |
/// | --- | --- | --- |
/// | `GET` | `/policies`, `/policies/{name}` | lists the policies, or one: keys, rules, ban, overrides |
/// | `GET` | `/policies/{name}/subject?…` | peeks: whether a call would be admitted, and where each rule stands; counts nothing |
/// | `DELETE` | `/policies/{name}/subject?…` | [resets](crate::Check::reset) the main subject, its ban included |
/// | `DELETE` | `/policies/{name}/subjects?…` | [resets all](crate::Check::reset_all) subjects of the call, which others may share |
/// | `PUT` | `/policies/{name}/ban?…` | [bans](crate::Check::ban): `{"duration":"10m"}`, or for the time of the policy's ban |
/// | `DELETE` | `/policies/{name}/ban?…` | [ends the ban](crate::Check::unban) |
/// | `GET` | `/policies/{name}/bans` | lists who is banned; `?from=…`, with the `next` of a page, is the next page |
/// | `PUT` | `/policies/{name}/pause?…` | [pauses](crate::Check::pause) the subject that the policy lets be paused: `{"duration":"30s"}` |
/// | `DELETE` | `/policies/{name}/pause?…` | [ends the pause](crate::Check::resume) |
/// | `GET` | `/policies/{name}/override?…` | the override for the policy, or for a subject |
/// | `PUT` | `/policies/{name}/override?…` | [sets it](crate::OverrideBuilder::text): `{"rules":"daily = 50 per 1d","for":"2h"}`, or `{"shadow":true}` |
/// | `DELETE` | `/policies/{name}/override?…` | [clears it](crate::OverrideBuilder::clear) |
/// | `GET` | `/overrides` | lists all overrides |
///
/// With a label, `/policies/{name}/override/{label}` is for the rules on [another subject](crate::OverrideBuilder::label).
///
/// # Subjects
///
/// The query has the values that the keys of the policy show, by their names: `?phone=13800000000` for `sms:{phone}`,
/// `?user=zoe&@ip=192.0.2.1` for `{user}` beside `{@ip}`. They pass the filters of the keys. `?phone=` is the empty
/// value, which a call may have; a name without `=` is refused. An override without values is for the whole policy.
/// `?subject=sms:13800000000` is a whole subject, as lists show it, unless a key shows a value of that name;
/// `?subject:network=…` is another subject, by its label. As in forms, `+` is a space, and `%2B` a plus.
///
/// A peek at a policy whose rule has the count of each call, as by the [plan](crate::Limiter::plan_count) of a customer, takes
/// `?plan=paid`, a plan of the file that is in force, or `?count=500`; of several such rules, `?plan:tokens=paid` and
/// `?count:daily=500`, by the name, the position or the unit. Otherwise, it leaves these rules out. `?cost=3` is for a call of that
/// weight, and `?cost:tokens=500` for one of that cost in a unit. A key's value named `plan`, `count` or `cost` goes before these.
///
/// Alternatives have the name of all, and the value says which one it is: `?@user|@ip=user:zoe` for `{@user|@ip}`.
///
/// A peek is for a call of cost 1 that costs nothing in other units, and takes what is there: it lists subjects
/// without values as `missing`, and leaves their rules out. Elsewhere, a subject that the path is not about is refused.
///
/// A key with the filter `hash` needs the [secret](crate::LimiterBuilder::secret) of the programs. The routes use that
/// of their limiter. If it has none, they make subjects of such a key only if this process itself has the policy, as
/// its own calls do, or after [`without_secret`](Self::without_secret).
///
/// An override is cleared as `/overrides` shows it, by its label and `?subject=…`, even if its policy, label or key no
/// longer exists.
///
/// # Answers
///
/// `/policies`, `/overrides`, peeks, resets, bans, unbans, pauses, resumes and changed overrides have the documents of the command line
/// with `--json`. Other answers: one policy is alone; a page of bans has the `next` one, and may repeat a subject of
/// the page before; one override is the member `override`; a reset and an unban have `trace_ms`, for how long a [trace in
/// memory](crate::Check::reset) may deny the subject all the same, or `null`. In memory, `shadow` is `null`, because only calls know it.
/// The `rules` of a changed override are `null` if they could not be read. No cache may store an answer.
///
/// A mistake is answered by problem details with the remedy in `detail`:
///
/// | status | reason |
/// | --- | --- |
/// | 400 | the query or the body cannot be read |
/// | 404, 405 | there is no such path, policy or label, or the path has other methods (`Allow`) |
/// | 413 | the body is longer than 16 KiB |
/// | 422 | a value is missing, unknown or given twice, or the limiter refuses what is asked |
/// | 503 | a [`Problem`](super::Problem): Redis does not answer, or refuses; `detail` says why, as its reader is an operator |
///
/// # In Redis and in memory
///
/// In Redis, the routes know the policies that all processes with the same prefix [list](Limiter::registered_policies), and
/// changes hold for all of them. `/bans` needs the permissions `+scan +dbsize` there. In memory, they know those of
/// [`Limiter::policies`], as a file changes them, and changes hold for this process.
///
/// The log has a line for each change that is answered, with its policy and without its subject. It shows who made the change
/// where the [context](crate::context) has the value `operator`, as in a [`Layer`](super::Layer) around the routes:
/// `.value("operator", |parts| parts.extension(|User(name)| name.clone()))`.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "axum")]
/// # fn main() {
/// use axum::Router;
/// use axum::extract::Request;
/// use axum::http::StatusCode;
/// use axum::middleware::{self, Next};
/// use tallygate::Limiter;
/// use tallygate::web::AdminRoutes;
///
/// async fn authorize(request: Request, next: Next) -> Result<axum::response::Response, StatusCode> {
///     let is_operator = request.headers().get("authorization").is_some_and(|token| token == "Bearer of the operators");
///     if is_operator { Ok(next.run(request).await) } else { Err(StatusCode::UNAUTHORIZED) }
/// }
///
/// let admin = Router::new()
///     .nest_service("/admin/limits", AdminRoutes::new(Limiter::installed()))
///     // With `layer`, a router that this one is merged into would also answer unknown paths by 401.
///     .route_layer(middleware::from_fn(authorize));
/// # let _: Router = admin;
/// # }
/// # #[cfg(not(feature = "axum"))]
/// # fn main() {}
/// ```
#[derive(Clone)]
#[must_use = "the routes do nothing until they are mounted"]
pub struct AdminRoutes {
    operated: Operated,
}

impl AdminRoutes {
    /// Returns the routes for this limiter, which has to be the one that decides the calls: they look where it counts, with its
    /// prefix and secret. Mount them behind the authorization of the service: they have none.
    pub fn new(limiter: &Limiter) -> Self {
        Self { operated: Operated { limiter: limiter.clone(), has_no_secret: false } }
    }

    /// Confirms that the programs have no [secret](crate::LimiterBuilder::secret), where this process has none of their
    /// policies: see [subjects](#subjects).
    pub fn without_secret(self) -> Self {
        Self { operated: Operated { has_no_secret: true, ..self.operated } }
    }

    /// Answers a request. Its body is only read where one is expected.
    pub(super) async fn answer(
        &self,
        method: &str,
        path: &str,
        query: Option<&str>,
        body: impl Future<Output = Result<Bytes, AdminError>>,
    ) -> Response<Bytes> {
        let answered = self.document(method, path, query, body).await;
        let mut response = answered.map_or_else(AdminError::into_response, |document| ok(&document));
        // The answer may show subjects, which may be personal data.
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }

    async fn document(
        &self,
        method: &str,
        path: &str,
        query: Option<&str>,
        body: impl Future<Output = Result<Bytes, AdminError>>,
    ) -> Result<Value, AdminError> {
        let resource = Resource::read(path)?;
        let method = resource.allowed(method)?;
        let query = Query::read(query)?;
        operations::run(&self.operated, method, &resource, &query, body).await
    }
}

fn ok(document: &Value) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(document.to_string()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

impl<B> Service<Request<B>> for AdminRoutes
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut task::Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let routes = self.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let (path, query) = (head.uri.path(), head.uri.query());
            Ok(routes.answer(head.method.as_str(), path, query, read(body)).await.map(Full::new))
        })
    }
}

async fn read<B>(body: B) -> Result<Bytes, AdminError>
where
    B: Body,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    match Limited::new(body, MOST_BYTES).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(AdminError::too_long()),
        Err(error) => Err(AdminError::unread(&*error)),
    }
}

opaque_debug!(AdminRoutes, routes => { limiter: routes.operated.limiter });
