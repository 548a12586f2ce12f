//! The layer that gives each request a context, and writes fields into its response.

pub(super) mod settings;

use std::borrow::Cow;
use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll, ready};

use http::{HeaderName, HeaderValue, Request, Response};
use pin_project_lite::pin_project;
use tower_service::Service;

use self::settings::{LayerSettings, WebRequest, WebResponse, web_response};
use super::client_ip::ClientIpSource;
use super::decisions::Decisions;
use super::fields::{Draft, Items, Legacy};
#[cfg(feature = "utoipa")]
use super::openapi::document::{answer_problems, for_each_operation};
#[cfg(feature = "utoipa")]
use super::openapi::limit_fields::answer_fields;
use super::parts::Parts;
use crate::context::{self, Context, Maker};
use crate::decision::Rejection;
use crate::observe::opaque_debug;

/// Gives each request a [context](crate::context), so that keys can show `{@ip}` and other values, and writes the state
/// of the limits of its client into the response.
///
/// It is a layer of `tower`, for axum, tonic and every server whose requests are of the crate `http`, and a middleware
/// of actix-web. The fields report all decisions of the request, however deep inside the handler, and even if the
/// handler ignores them.
///
/// # The client
///
/// axum knows the address of the socket if the router is served by
/// `into_make_service_with_connect_info::<SocketAddr>()`. tonic and actix-web always know it. Other servers store it as
/// an extension of type `SocketAddr` in the request.
///
/// # Order
///
/// Layers around this one see the fields; layers inside it, and handlers, have the context. In axum and actix-web, the
/// layer that is added last is the outermost; in tonic, it is the one that is added first. A [limit](super::limit) has
/// to be inside this layer. A layer for CORS has to be outside: then the responses to rejected requests have its
/// fields, too. If layers are nested, the inner one adds its values to those of the outer one.
///
/// # Streams
///
/// The context ends with the head of the response. The body of a stream, and a spawned task, have it only through
/// [`scope`](crate::context::scope) or [`carry`](crate::context::carry). Their decisions come too late for the fields.
#[derive(Clone, Default)]
#[must_use = "a layer does nothing until it is added to a router"]
pub struct Layer {
    pub(super) settings: Arc<LayerSettings>,
}

impl Layer {
    /// Returns a layer that takes the client's address from the socket, and writes the fields of [`Draft::V11`] into
    /// responses to requests in which a call was denied.
    pub fn new() -> Self {
        context::layer_made();
        Self::default()
    }

    /// Sets how the address of the client is found, which is the value `ip`. By default, it is the address of the
    /// socket.
    pub fn client_ip(self, source: ClientIpSource) -> Self {
        self.set(|settings| settings.client_ip = source)
    }

    /// Adds a value that is found in each request, or replaces the value of that name. If a request has none, calls whose key
    /// shows it are rejected as [`Unidentified`](crate::RejectionKind::Unidentified), with the status 401.
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate::web::Layer;
    ///
    /// let layer = Layer::new()
    ///     .value("user", |parts| parts.extension(|User(name)| name.clone()))
    ///     .value("language", |parts| parts.header("accept-language").map(str::to_owned));
    ///
    /// /// Stored in the request by the layer that has verified its token.
    /// #[derive(Clone)]
    /// struct User(String);
    /// ```
    pub fn value<V: Display>(
        self,
        name: impl Into<Cow<'static, str>>,
        find: impl Fn(&Parts<'_>) -> Option<V> + Send + Sync + 'static,
    ) -> Self {
        let find = Arc::new(move |parts: &Parts<'_>| find(parts).map(|value| value.to_string()));
        self.set(|settings| settings.add_value(name.into(), find))
    }

    /// Sets the values that every request has, unless it has its own values of the same names.
    pub fn context(self, context: Context) -> Self {
        self.set(|settings| settings.set_context(context))
    }

    /// Sets the texts of rejections in responses: see [`Context::messages`]. They take precedence over those of
    /// [`Layer::context`].
    pub fn messages(self, messages: impl Fn(&Rejection, &Context) -> Option<String> + Send + Sync + 'static) -> Self {
        self.set(|settings| settings.set_messages(Arc::new(messages)))
    }

    /// Sets the response to rejections, in place of a [`Problem`](super::Problem), so that all rejections of a service look
    /// alike: those by limited functions, by checks by hand, by a [limit](super::limit) and by limits of a file.
    ///
    /// A rejection becomes this response wherever it becomes a response of the framework, within this layer. The response of
    /// a handler that makes another one itself, of [`Limit::reject`](super::Limit::reject), and of `reject` in a file or in
    /// an attribute goes first. Requests of gRPC are answered with a status as ever. The layer adds its fields, and
    /// `Retry-After` to 429 and 409.
    ///
    /// Within the function, `Response::from(rejection)` is the response with a problem, to start from.
    ///
    /// # Examples
    ///
    /// ```
    /// use http::header::CONTENT_TYPE;
    /// use http::{HeaderValue, Response};
    /// use tallygate::Rejection;
    /// use tallygate::context::Context;
    /// use tallygate::web::{Layer, Problem};
    ///
    /// fn too_many(rejection: &Rejection, _context: &Context) -> Response<String> {
    ///     let (problem, kind) = (Problem::from(rejection), rejection.kind());
    ///     let body = serde_json::json!({ "error": { "code": kind.as_str(), "message": problem.detail() } });
    ///     let mut response = Response::from(rejection).map(|_: String| body.to_string());
    ///     response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    ///     response
    /// }
    ///
    /// let layer = Layer::new().reject(too_many);
    /// ```
    pub fn reject(self, reject: impl Fn(&Rejection, &Context) -> Response<String> + Send + Sync + 'static) -> Self {
        self.set(|settings| settings.reject = Some(Arc::new(reject)))
    }

    /// Writes into a document of OpenAPI how rejections are really answered: the statuses and the media types of
    /// [`reject`](Self::reject), in place of those of problems, and the [fields](Self::fields) of this layer, for each unit that
    /// the limits of the operation count. Of the body, only its media type is known.
    ///
    /// With [`on_success`](Self::on_success), the successful responses of limited operations have the fields, too. The function of
    /// `reject` is called outside of a request, for a limited call, a duplicate and one that Redis did not decide. Call it when
    /// the document has all of its operations, and behind [`Limits::describe`](super::Limits::describe).
    ///
    /// # Examples
    ///
    /// ```
    /// use http::Response;
    /// use tallygate::web::Layer;
    /// use tallygate::{Rejection, rate_limit};
    /// use utoipa::OpenApi;
    ///
    /// /// Sends a code.
    /// #[utoipa::path(post, path = "/codes", responses(SendCodeLimits))]
    /// #[rate_limit(rule(count = 5, per = "60s"), openapi = SendCodeLimits)]
    /// async fn send_code() -> Result<(), Rejection> {
    ///     Ok(())
    /// }
    ///
    /// #[derive(OpenApi)]
    /// #[openapi(paths(send_code))]
    /// struct Api;
    ///
    /// let layer = Layer::new().reject(|rejection, _| {
    ///     let mut response = Response::from(rejection).map(|_: String| "<h1>Slow down</h1>".to_owned());
    ///     response.headers_mut().insert("content-type", http::HeaderValue::from_static("text/html"));
    ///     response
    /// });
    /// let mut document = Api::openapi();
    /// layer.describe(&mut document);
    /// let json = serde_json::to_value(&document)?;
    /// assert!(json["paths"]["/codes"]["post"]["responses"]["429"]["content"]["text/html"].is_object());
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[cfg(feature = "utoipa")]
    pub fn describe(&self, document: &mut utoipa::openapi::OpenApi) {
        let context = self.settings.shared_context();
        let answer = |rejection: &Rejection| context::enter(&mut context.clone(), || Response::from(rejection));
        for_each_operation(document, |_, _, responses| {
            answer_problems(responses, answer);
            answer_fields(responses, self.settings.fields, self.settings.on_success);
        });
    }

    /// Chooses the fields: [`Draft::V11`] by default, and no fields of a draft with `None`.
    pub fn fields(self, draft: impl Into<Option<Draft>>) -> Self {
        let draft = draft.into();
        self.set(|settings| settings.fields = settings.fields.with_draft(draft))
    }

    /// Adds fields of other interfaces than the draft, like those of OpenAI by [unit](Legacy::XRateLimitByUnit).
    pub fn legacy(self, legacy: Legacy) -> Self {
        self.set(|settings| settings.fields = settings.fields.legacy(legacy))
    }

    /// Chooses which rules the fields list: all of them by default.
    pub fn items(self, items: Items) -> Self {
        self.set(|settings| settings.fields = settings.fields.items(items))
    }

    /// Chooses whether responses also have fields if no call was denied. By default they do not, because each decision
    /// then costs the backend more, and the fields list only rules that denied a call.
    pub fn on_success(self, on_success: bool) -> Self {
        self.set(|settings| settings.on_success = on_success)
    }

    fn set(mut self, set: impl FnOnce(&mut LayerSettings)) -> Self {
        set(Arc::make_mut(&mut self.settings));
        self
    }
}

opaque_debug!(Layer, layer => { fields: layer.settings.fields, on_success: layer.settings.on_success });

/// The service of a [`Layer`].
#[derive(Clone)]
pub struct LayerService<S> {
    pub(super) inner: S,
    pub(super) settings: Arc<LayerSettings>,
}

impl<S> tower_layer::Layer<S> for Layer {
    type Service = LayerService<S>;

    fn layer(&self, inner: S) -> LayerService<S> {
        LayerService { inner, settings: Arc::clone(&self.settings) }
    }
}

impl<S, Q, B> Service<Request<Q>> for LayerService<S>
where
    S: Service<Request<Q>, Response = Response<B>>,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut task::Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Q>) -> Self::Future {
        let (mut context, decisions) = self.settings.enter(&mut request, Maker::Layer);
        let future = context::enter(&mut context, || self.inner.call(request));
        ResponseFuture { future, context, decisions, settings: Arc::clone(&self.settings) }
    }
}

opaque_debug!([S] LayerService<S>);

pin_project! {
    /// The future of a [`LayerService`].
    pub struct ResponseFuture<F> {
        #[pin]
        future: F,
        context: Context,
        decisions: Decisions,
        settings: Arc<LayerSettings>,
    }
}

impl<F, B, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<B>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut response = ready!(context::enter(this.context, || this.future.poll(cx)))?;
        this.settings.write_fields(&mut response, this.decisions);
        Poll::Ready(Ok(response))
    }
}

opaque_debug!([F] ResponseFuture<F>);

impl<B> WebRequest for Request<B> {
    fn parts(&self) -> Parts<'_> {
        Parts::of_http(self)
    }

    fn insert<T: Clone + Send + Sync + 'static>(&mut self, value: T) {
        self.extensions_mut().insert(value);
    }
}

web_response!(Response<B>, HeaderName, HeaderValue, extensions_mut());
