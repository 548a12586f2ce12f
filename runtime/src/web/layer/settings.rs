//! The settings of a layer, and how they change a request and its response.

use std::borrow::Cow;
use std::future::Future;
use std::sync::{Arc, LazyLock};

use http::StatusCode;

use crate::context::{self, Context, MakeResponse, Maker, Messages};
use crate::observe::{ReportedOnce, log};
use crate::web::client_ip::{ClientIp, ClientIpSource};
use crate::web::decisions::Decisions;
use crate::web::fields::{Draft, Fields, whole_seconds};
use crate::web::parts::Parts;

/// The settings of a layer. Its services share them.
#[derive(Clone)]
pub(in crate::web) struct LayerSettings {
    pub(super) client_ip: ClientIpSource,
    /// The values that every request has.
    context: Context,
    /// Messages that replace those of the context.
    messages: Option<Arc<Messages>>,
    pub(super) reject: Option<Arc<MakeResponse>>,
    values: Vec<(Cow<'static, str>, Arc<FindValue>)>,
    /// The names of the values, which the contexts share.
    names: Arc<[Cow<'static, str>]>,
    pub(super) fields: Fields,
    pub(super) on_success: bool,
}

/// Finds a value in a request.
pub(super) type FindValue = dyn Fn(&Parts<'_>) -> Option<String> + Send + Sync;

pub(in crate::web) trait WebRequest {
    fn parts(&self) -> Parts<'_>;
    fn insert<T: Clone + Send + Sync + 'static>(&mut self, value: T);
}

/// The status and the fields of a response of any framework.
pub(in crate::web) trait WebResponse {
    fn status(&self) -> u16;
    fn has_field(&self, name: &str) -> bool;
    fn set_field(&mut self, name: &str, value: &str);
    /// Stores the decisions for layers around this one.
    fn insert(&mut self, decisions: Decisions);
}

/// Implements [`WebResponse`]. Frameworks use different versions of the crate `http`, whose types have the same names.
macro_rules! web_response {
    ($response:ty, $name:ty, $value:ty, $($extensions:tt)+) => {
        impl<B> WebResponse for $response {
            fn status(&self) -> u16 {
                Self::status(self).as_u16()
            }

            fn has_field(&self, name: &str) -> bool {
                self.headers().contains_key(name)
            }

            fn set_field(&mut self, name: &str, value: &str) {
                // Names and values are ASCII.
                if let (Ok(name), Ok(value)) = (<$name>::try_from(name), <$value>::from_str(value)) {
                    self.headers_mut().insert(name, value);
                }
            }

            fn insert(&mut self, decisions: Decisions) {
                self.$($extensions)+.insert(decisions);
            }
        }
    };
}

pub(in crate::web) use web_response;

impl Default for LayerSettings {
    fn default() -> Self {
        Self {
            client_ip: ClientIp::socket(),
            context: Context::new(),
            messages: None,
            reject: None,
            values: Vec::new(),
            names: Arc::default(),
            fields: Fields::from(Draft::V11),
            on_success: false,
        }
    }
}

impl LayerSettings {
    pub(super) fn add_value(&mut self, name: Cow<'static, str>, find: Arc<FindValue>) {
        context::found_by_layer(name.clone());
        self.values.retain(|(known, _)| *known != name);
        self.values.push((name, find));
        self.names = self.values.iter().map(|(name, _)| name.clone()).collect();
    }

    pub(super) fn set_context(&mut self, context: Context) {
        context.names().for_each(|name| context::found_by_layer(name.clone()));
        self.context = match &self.messages {
            Some(messages) => context.with_messages(Arc::clone(messages)),
            None => context,
        };
    }

    pub(super) fn set_messages(&mut self, messages: Arc<Messages>) {
        self.context = self.context.clone().with_messages(Arc::clone(&messages));
        self.messages = Some(messages);
    }

    /// Returns the context that all requests share.
    pub(super) fn shared_context(&self) -> Context {
        let context = self.context.clone();
        match &self.reject {
            Some(reject) => context.with_reject(Arc::clone(reject)),
            None => context,
        }
    }

    /// Makes the context of a request, inside the current one, and stores the client in the request for handlers.
    pub(in crate::web) fn enter(&self, request: &mut impl WebRequest, maker: Maker) -> (Context, Decisions) {
        let around = Context::current();
        report_order(around.as_ref());
        let parts = request.parts().with_client(&self.client_ip);
        // An application may know more than the address of the socket, which is all that a limit knows. An outer layer may know
        // the client where this one knows only a proxy.
        let is_known = around.as_ref().is_some_and(|around| around.get("ip").is_some());
        let gives_way = |client: &ClientIp| is_known && (maker == Maker::Limit || client.is_fallback());
        let client_ip = parts.client_ip().filter(|client| !gives_way(client));
        let parts = parts.or_client(|| ClientIp::of(&self.context).or_else(|| ClientIp::of(around.as_ref()?)));
        let mut context = self.shared_context().made_by(maker).looking_for(&self.names);
        if let Some(client_ip) = client_ip {
            context = context.with("ip", client_ip);
        }
        for (name, find) in &self.values {
            if let Some(value) = find(&parts) {
                context = context.with(name.clone(), value);
            }
        }
        if let Some(client_ip) = client_ip {
            request.insert(client_ip);
        }
        let decisions = Decisions::new();
        let collect = if self.on_success { Context::collect } else { Context::collect_denials };
        (collect(context, &decisions), decisions)
    }

    /// Writes the fields of a response, and `Retry-After` if its handler has set none.
    pub(in crate::web) fn write_fields(&self, response: &mut impl WebResponse, decisions: &Decisions) {
        if self.on_success || decisions.any_denied() {
            for (name, value) in self.fields.render(decisions) {
                response.set_field(&name, &value);
            }
        }
        if !decisions.is_empty() {
            response.insert(decisions.clone());
        }
        let seconds = retry_after_s(response.status(), decisions).filter(|_| !response.has_field("retry-after"));
        if let Some(seconds) = seconds {
            response.set_field("retry-after", &seconds.to_string());
        }
    }
}

/// Answers a request of a limit. Unless a layer or a limit around it has made a context, this makes one. It looks
/// for that context at its first poll, because the future may be made in another one.
pub(in crate::web) async fn answer_limited<Q: WebRequest, R: WebResponse, E, F>(
    mut request: Q,
    answer: impl FnOnce(Q) -> F,
) -> Result<R, E>
where
    F: Future<Output = Result<R, E>>,
{
    static NO_LAYER: LazyLock<LayerSettings> = LazyLock::new(LayerSettings::default);
    if context::is_within_request() {
        return answer(request).await;
    }
    let (context, decisions) = NO_LAYER.enter(&mut request, Maker::Limit);
    let mut response = context::scope(context, async { answer(request).await }).await?;
    NO_LAYER.write_fields(&mut response, &decisions);
    Ok(response)
}

/// Reports to the log, once, that a layer is inside a limit.
fn report_order(around: Option<&Context>) {
    static REPORTED: ReportedOnce = ReportedOnce::new();
    if around.is_some_and(|around| around.maker() == Some(Maker::Limit)) && REPORTED.is_first() {
        log::layer_inside_limit();
    }
}

/// Returns the `Retry-After` of a response with this status.
fn retry_after_s(status: u16, decisions: &Decisions) -> Option<u64> {
    let is_denial = match StatusCode::from_u16(status) {
        Ok(StatusCode::TOO_MANY_REQUESTS) => true,
        // An application has other conflicts, too.
        Ok(StatusCode::CONFLICT) => decisions.any_duplicate(),
        // Or it is unavailable for another reason.
        Ok(StatusCode::SERVICE_UNAVAILABLE) => decisions.any_paused(),
        _ => false,
    };
    decisions.retry_after().filter(|_| is_denial).map(whole_seconds)
}
