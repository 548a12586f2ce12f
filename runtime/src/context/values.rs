//! The values of a context.

use std::any::Any;
use std::borrow::Cow;
use std::fmt::Display;
use std::iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use tallygate_rules::did_you_mean;

use crate::address;
use crate::decision::{Charge, Decision, Recount, Rejection};
use crate::observe::{self, opaque_debug};
use crate::policy::Policy;

/// Values that keys and messages show by their names, as `{@name}`.
///
/// Cloning is cheap: clones share their values.
#[derive(Clone, Default)]
pub struct Context {
    inner: Arc<ContextInner>,
}

#[derive(Clone, Default)]
struct ContextInner {
    /// `None` hides the value of the contexts around this one.
    values: Vec<(Cow<'static, str>, Option<Box<str>>)>,
    /// The context around this one.
    outer: Option<Context>,
    /// The names of the values that the layer or the pace looks for in each request.
    looked_for: Arc<[Cow<'static, str>]>,
    hearing: Option<Hearing>,
    /// Whether the listeners of the contexts around this one do not hear of the calls in it.
    is_unheard: bool,
    messages: Option<Arc<Messages>>,
    #[cfg(feature = "web")]
    reject: Option<Arc<MakeResponse>>,
    /// What made the context for a request: a layer, a limit or a pace; `None` if the program made it.
    maker: Option<Maker>,
    /// The limiter of a test. `Any`, because its type belongs to a layer above.
    #[cfg(feature = "testing")]
    test_limiter: Option<&'static (dyn Any + Send + Sync)>,
}

/// Hears of the calls that are made in a context, but not of peeks and calls in shadow.
pub(crate) trait Listener: Any + Send + Sync {
    /// A call was decided.
    fn decided(&self, policy: &Policy, decision: &Decision);

    /// An admitted call was refunded or settled, which changed its count.
    fn recounted(&self, charge: &Charge, recount: &Recount);
}

#[derive(Clone)]
pub(super) struct Hearing {
    pub(super) listener: Arc<dyn Listener>,
    /// Whether the listener needs the state of every rule after an admitted call, which costs the store more.
    pub(super) wants_reports: bool,
}

/// A maker of contexts for requests.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Maker {
    Layer,
    /// A limit without a layer around it.
    Limit,
    /// A pace, for a request that this program sends.
    Pace,
}

/// The texts of rejections.
pub(crate) type Messages = dyn Fn(&Rejection, &Context) -> Option<String> + Send + Sync;

/// Makes the responses to rejections.
#[cfg(feature = "web")]
pub(crate) type MakeResponse = dyn Fn(&Rejection, &Context) -> http::Response<String> + Send + Sync;

impl Context {
    /// Returns a context without values.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a context for a test. No other test has its `ip`, so tests that run in parallel are not limited
    /// together.
    ///
    /// The address is one of the first 65,536 in 198.18.0.0/15, which is reserved for tests. After that, addresses
    /// repeat.
    #[must_use]
    pub fn test() -> Self {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let [high, low] = NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        Self::new().with("ip", format_args!("198.18.{high}.{low}"))
    }

    /// Adds a value, or replaces the value of this name. `{@name}` can show names of letters, digits and `_`. An
    /// address as `ip` is read as [everywhere](crate::guide::keys#addresses): without its port and its zone.
    ///
    /// In a message, `retry_after`, `count`, `per`, `rule` and `unit` are values of the rejection, not of the context.
    #[must_use]
    pub fn with(mut self, name: impl Into<Cow<'static, str>>, value: impl Display) -> Self {
        let (name, value) = (name.into(), value.to_string());
        let value = if name == "ip" { address::counted(value) } else { value };
        self.set(name, Some(value.into_boxed_str()));
        self
    }

    /// Hides the value of this name that contexts around this one may have.
    pub(crate) fn without(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.set(name.into(), None);
        self
    }

    fn set(&mut self, name: Cow<'static, str>, value: Option<Box<str>>) {
        let values = &mut Arc::make_mut(&mut self.inner).values;
        match values.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => values.push((name, value)),
        }
    }

    /// Returns the value of this name, from this context or from one around it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let ContextInner { values, outer, .. } = &*self.inner;
        match values.iter().find(|(known, _)| known == name) {
            Some((_, own)) => own.as_deref(),
            None => outer.as_ref()?.get(name),
        }
    }

    /// Whether a layer around this call looks for a value of this name in each request.
    pub(super) fn is_looked_for(&self, name: &str) -> bool {
        self.with_outer().any(|context| context.inner.looked_for.iter().any(|known| known == name))
    }

    /// Returns the end of a message about a value that this context does not have: the value that was probably meant.
    pub(super) fn value_meant(&self, name: &str) -> String {
        let contexts: Vec<_> = self.with_outer().collect();
        let own = contexts.iter().flat_map(|context| context.names());
        let looked_for = contexts.iter().flat_map(|context| context.inner.looked_for.iter());
        did_you_mean(name, own.chain(looked_for).map(|name| &**name))
    }

    /// This context and those around it.
    fn with_outer(&self) -> impl Iterator<Item = &Self> {
        iter::successors(Some(self), |context| context.inner.outer.as_ref())
    }

    #[cfg(feature = "testing")]
    pub(crate) fn with_test_limiter(mut self, limiter: &'static (dyn Any + Send + Sync)) -> Self {
        Arc::make_mut(&mut self.inner).test_limiter = Some(limiter);
        self
    }

    /// Returns the limiter of this context, or of one around it.
    #[cfg(feature = "testing")]
    pub(crate) fn test_limiter(&self) -> Option<&'static (dyn Any + Send + Sync)> {
        self.inner.test_limiter.or_else(|| self.inner.outer.as_ref()?.test_limiter())
    }

    /// Sets the texts of rejections for responses.
    pub(crate) fn with_messages(mut self, messages: Arc<Messages>) -> Self {
        Arc::make_mut(&mut self.inner).messages = Some(messages);
        self
    }

    /// Returns the text for a rejection, from this context or from one around it.
    pub(super) fn message_of(&self, rejection: &Rejection) -> Option<String> {
        let mut messages = self.with_outer().filter_map(|context| context.inner.messages.as_deref());
        messages.find_map(|messages| messages(rejection, self))
    }

    /// Sets the responses to rejections.
    #[cfg(feature = "web")]
    pub(crate) fn with_reject(mut self, reject: Arc<MakeResponse>) -> Self {
        Arc::make_mut(&mut self.inner).reject = Some(reject);
        self
    }

    /// Returns what makes the responses to rejections, in this context or in the nearest one around it.
    #[cfg(feature = "web")]
    pub(crate) fn reject(&self) -> Option<&MakeResponse> {
        self.with_outer().find_map(|context| context.inner.reject.as_deref())
    }

    /// The names of this context's own values.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Cow<'static, str>> {
        self.inner.values.iter().filter(|(_, value)| value.is_some()).map(|(name, _)| name)
    }

    /// Sets the names of the values that the layer or the pace looks for in each request.
    pub(crate) fn looking_for(mut self, names: &Arc<[Cow<'static, str>]>) -> Self {
        Arc::make_mut(&mut self.inner).looked_for = Arc::clone(names);
        self
    }

    /// Marks the context as made for a request.
    pub(crate) fn made_by(mut self, maker: Maker) -> Self {
        Arc::make_mut(&mut self.inner).maker = Some(maker);
        self
    }

    /// Returns what made this context, or the innermost context around it, for a request.
    pub(crate) fn maker(&self) -> Option<Maker> {
        self.inner.maker.or_else(|| self.inner.outer.as_ref()?.maker())
    }

    /// Lets a listener hear of the calls in this context.
    pub(crate) fn heard_by(mut self, listener: Arc<dyn Listener>, wants_reports: bool) -> Self {
        observe::note_listener();
        Arc::make_mut(&mut self.inner).hearing = Some(Hearing { listener, wants_reports });
        self
    }

    /// Lets no listener of the contexts around this one hear of the calls in it.
    pub(super) fn unheard(mut self) -> Self {
        Arc::make_mut(&mut self.inner).is_unheard = true;
        self
    }

    /// The listeners of this context and of those around it.
    pub(super) fn hearings(&self) -> impl Iterator<Item = &Hearing> {
        let heard = self.with_outer().take_while(|context| !context.inner.is_unheard);
        heard.filter_map(|context| context.inner.hearing.as_ref())
    }

    /// Places the context inside another one, unless it is already inside one.
    pub(super) fn within(mut self, outer: Option<Self>) -> Self {
        if outer.is_some() && self.inner.outer.is_none() {
            Arc::make_mut(&mut self.inner).outer = outer;
        }
        self
    }
}

// Leaves out the values, which may be personal.
opaque_debug!(Context, context => {
    names: context.names().collect::<Vec<_>>()
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::scope;

    fn depth(context: &Context) -> usize {
        1 + context.inner.outer.as_ref().map_or(0, depth)
    }

    async fn nested(times: u32) -> usize {
        let current = Context::current().unwrap().with("times", times);
        match times {
            0 => depth(&current),
            _ => Box::pin(scope(current, nested(times - 1))).await,
        }
    }

    #[tokio::test]
    async fn a_context_that_is_entered_again_and_again_keeps_its_depth() {
        assert_eq!(scope(Context::new(), scope(Context::new(), nested(20))).await, 2);
    }
}
