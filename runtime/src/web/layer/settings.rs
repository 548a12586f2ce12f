//! The settings of a layer, and what they make of a request and its response.

use std::borrow::Cow;
use std::sync::{Arc, Once};

use http::StatusCode;

use crate::context::{Context, Decisions, Maker, Messages};
use crate::observe::log;
use crate::web::client_ip::{ClientIp, ClientIpSource};
use crate::web::fields::{Draft, Fields};
use crate::web::parts::Parts;
use crate::web::seconds;

/// The settings of a layer, which its services share.
#[derive(Clone)]
pub(in crate::web) struct Settings {
    pub(super) client_ip: ClientIpSource,
    /// The values that every request has.
    context: Context,
    /// Those of the context, too, once they are set.
    messages: Option<Arc<Messages>>,
    values: Vec<(Cow<'static, str>, Arc<FindValue>)>,
    pub(super) fields: Fields,
    pub(super) on_success: bool,
}

/// Finds a value in a request.
pub(super) type FindValue = dyn Fn(&Parts<'_>) -> Option<String> + Send + Sync;

/// A request whose context is made.
pub(in crate::web) struct EnteredRequest {
    pub(in crate::web) context: Context,
    pub(in crate::web) decisions: Decisions,
    pub(in crate::web) client_ip: Option<ClientIp>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            client_ip: ClientIp::socket(),
            context: Context::new(),
            messages: None,
            values: Vec::new(),
            fields: Fields::from(Draft::V11),
            on_success: false,
        }
    }
}

impl Settings {
    pub(super) fn add_value(&mut self, name: Cow<'static, str>, find: Arc<FindValue>) {
        self.values.retain(|(known, _)| *known != name);
        self.values.push((name, find));
    }

    pub(super) fn set_context(&mut self, context: Context) {
        self.context = match &self.messages {
            Some(messages) => context.with_messages(Arc::clone(messages)),
            None => context,
        };
    }

    pub(super) fn set_messages(&mut self, messages: Arc<Messages>) {
        self.context = self.context.clone().with_messages(Arc::clone(&messages));
        self.messages = Some(messages);
    }

    /// Makes the context of a request, inside of the one in which this is called.
    pub(in crate::web) fn enter(&self, parts: Parts<'_>, maker: Maker) -> EnteredRequest {
        let around = Context::current();
        report_order(around.as_ref());
        let parts = parts.with_client(&self.client_ip);
        // What an application has found out is worth more than the socket's address, which is all that a limit knows.
        let is_known = maker == Maker::Limit && around.is_some_and(|around| around.get("ip").is_some());
        let client_ip = parts.client_ip().filter(|_| !is_known);
        let mut context = self.context.clone().made_by(maker);
        if let Some(client_ip) = client_ip {
            context = context.with("ip", client_ip);
        }
        for (name, find) in &self.values {
            if let Some(value) = find(&parts) {
                context = context.with(name.clone(), value);
            }
        }
        let decisions = Decisions::new();
        let collect = if self.on_success { Context::collect } else { Context::collect_denials };
        EnteredRequest { context: collect(context, &decisions), decisions, client_ip }
    }

    /// Returns the fields of the response.
    pub(in crate::web) fn fields(&self, decisions: &Decisions) -> Vec<(&'static str, String)> {
        let is_written = self.on_success || decisions.any_denied();
        if is_written { self.fields.of(decisions) } else { Vec::new() }
    }
}

/// Reports to the log, the first time, that a request comes to this layer by way of a limit.
fn report_order(around: Option<&Context>) {
    static REPORTED: Once = Once::new();
    if !REPORTED.is_completed() && around.is_some_and(|around| around.maker() == Some(Maker::Limit)) {
        REPORTED.call_once(log::layer_inside_limit);
    }
}

/// Returns the `Retry-After` of a response whose handler has set none.
pub(in crate::web) fn retry_after_s(status: u16, decisions: &Decisions) -> Option<u64> {
    let tells_denial = match StatusCode::from_u16(status) {
        Ok(StatusCode::TOO_MANY_REQUESTS) => true,
        // An application has other conflicts, too.
        Ok(StatusCode::CONFLICT) => decisions.any_duplicate(),
        _ => false,
    };
    decisions.retry_after().filter(|_| tells_denial).map(seconds::rounded_up)
}
