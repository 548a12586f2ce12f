//! The values of a context.

#[cfg(feature = "testing")]
use std::any::Any;
use std::borrow::Cow;
use std::fmt::Display;
use std::iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use tallygate_rules::did_you_mean;

#[cfg(feature = "web")]
use super::decisions::Decisions;
use crate::address;
#[cfg(feature = "web")]
use crate::decision::Rejection;
use crate::observe::opaque_debug;

/// Values that keys and messages show by their names, as `{@name}`.
///
/// Cloning is cheap: clones share their values.
#[derive(Clone, Default)]
pub struct Context {
    inner: Arc<ContextInner>,
}

#[derive(Clone, Default)]
struct ContextInner {
    values: Vec<(Cow<'static, str>, Box<str>)>,
    /// The context around this one.
    outer: Option<Context>,
    /// The names of the values that its layer looks for in each request.
    #[cfg(feature = "web")]
    looked_for: Arc<[Cow<'static, str>]>,
    #[cfg(feature = "web")]
    collection: Option<Collection>,
    #[cfg(feature = "web")]
    messages: Option<Arc<Messages>>,
    /// The layer or limit that made the context for a request. `None` if an application made it.
    #[cfg(feature = "web")]
    maker: Option<Maker>,
    /// The limiter of a test. Its type belongs to a layer above.
    #[cfg(feature = "testing")]
    test_limiter: Option<&'static (dyn Any + Send + Sync)>,
}

/// A maker of contexts for requests.
#[cfg(feature = "web")]
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Maker {
    Layer,
    /// A limit without a layer around it.
    Limit,
}

/// The texts of rejections.
#[cfg(feature = "web")]
pub(crate) type Messages = dyn Fn(&Rejection, &Context) -> Option<String> + Send + Sync;

/// The collection of the decisions of a context.
#[cfg(feature = "web")]
#[derive(Clone)]
pub(super) struct Collection {
    pub(super) decisions: Decisions,
    /// Whether it also collects the state of all rules after an admitted call.
    pub(super) wants_reports: bool,
}

impl Context {
    /// Returns a context without values.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a context for a test, with an `ip` that no other test has, so that tests which run in parallel are not
    /// limited together.
    ///
    /// The address is in 198.18.0.0/15, which is reserved for tests. There are 65,536 of them.
    #[must_use]
    pub fn test() -> Self {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let [high, low] = NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        Self::new().with("ip", format_args!("198.18.{high}.{low}"))
    }

    /// Adds a value, or replaces the value of that name. `{@name}` shows names of letters, digits and `_`. An address as `ip` is
    /// read as [everywhere](crate::guide::keys#addresses): without its port and its zone.
    ///
    /// In a message, `retry_after`, `count`, `per` and `rule` are values of the rejection, not of the context.
    #[must_use]
    pub fn with(mut self, name: impl Into<Cow<'static, str>>, value: impl Display) -> Self {
        let (name, value) = (name.into(), value.to_string());
        let value = if name == "ip" { address::counted(value) } else { value }.into_boxed_str();
        let values = &mut Arc::make_mut(&mut self.inner).values;
        match values.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => values.push((name, value)),
        }
        self
    }

    /// Returns the value of that name, of this context or of one around it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let ContextInner { values, outer, .. } = &*self.inner;
        let own = values.iter().find(|(known, _)| known == name).map(|(_, value)| &**value);
        own.or_else(|| outer.as_ref()?.get(name))
    }

    /// Whether a layer around this call looks for a value of that name in each request.
    #[cfg(feature = "web")]
    pub(super) fn is_looked_for(&self, name: &str) -> bool {
        self.with_outer().any(|context| context.inner.looked_for.iter().any(|known| known == name))
    }

    #[cfg(not(feature = "web"))]
    #[allow(clippy::unused_self, reason = "there are no layers")]
    pub(super) fn is_looked_for(&self, _: &str) -> bool {
        false
    }

    /// Returns the end of a message about a value that this context does not have: the value that was probably meant.
    pub(super) fn value_meant(&self, name: &str) -> String {
        let contexts: Vec<_> = self.with_outer().collect();
        let own = contexts.iter().flat_map(|context| context.inner.values.iter().map(|(name, _)| &**name));
        #[cfg(feature = "web")]
        let own = own.chain(contexts.iter().flat_map(|context| context.inner.looked_for.iter().map(|name| &**name)));
        did_you_mean(name, own)
    }

    /// This context, and those around it.
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

    /// Places the context inside another one, unless it is inside one already.
    pub(super) fn within(mut self, outer: Option<Self>) -> Self {
        if outer.is_some() && self.inner.outer.is_none() {
            Arc::make_mut(&mut self.inner).outer = outer;
        }
        self
    }
}

#[cfg(feature = "web")]
impl Context {
    /// Collects the decisions in this context, with the state of every rule after each decision. Each decision then
    /// costs the backend more.
    ///
    /// Peeks and calls in shadow are not collected.
    #[must_use]
    pub fn collect(self, decisions: &Decisions) -> Self {
        self.with_collection(Collection { decisions: decisions.clone(), wants_reports: true })
    }

    /// Collects the denied calls in this context, each with the rule that denied it, at no cost.
    #[must_use]
    pub fn collect_denials(self, decisions: &Decisions) -> Self {
        self.with_collection(Collection { decisions: decisions.clone(), wants_reports: false })
    }

    /// Sets the texts of rejections in responses, for example in the language of the request. Without such a text, the
    /// response has the text of the rejection.
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate::Rejection;
    /// use tallygate::context::Context;
    ///
    /// fn message(rejection: &Rejection, context: &Context) -> Option<String> {
    ///     let seconds = rejection.retry_after()?.as_secs() + 1;
    ///     let is_german = context.get("language")?.starts_with("de");
    ///     is_german.then(|| format!("Bitte in {seconds} Sekunden noch einmal versuchen."))
    /// }
    ///
    /// let context = Context::new().with("language", "de-AT").messages(message);
    /// ```
    #[must_use]
    pub fn messages(self, messages: impl Fn(&Rejection, &Self) -> Option<String> + Send + Sync + 'static) -> Self {
        self.with_messages(Arc::new(messages))
    }

    pub(crate) fn with_messages(mut self, messages: Arc<Messages>) -> Self {
        Arc::make_mut(&mut self.inner).messages = Some(messages);
        self
    }

    /// Returns the text for a rejection of this context, or of one around it.
    pub(super) fn message_of(&self, rejection: &Rejection) -> Option<String> {
        let mut messages = self.with_outer().filter_map(|context| context.inner.messages.as_deref());
        messages.find_map(|messages| messages(rejection, self))
    }

    /// The names of its own values.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Cow<'static, str>> {
        self.inner.values.iter().map(|(name, _)| name)
    }

    /// Sets the names of the values that its layer looks for in each request.
    pub(crate) fn looking_for(mut self, names: &Arc<[Cow<'static, str>]>) -> Self {
        Arc::make_mut(&mut self.inner).looked_for = Arc::clone(names);
        self
    }

    /// Marks the context as made for a request.
    pub(crate) fn made_by(mut self, maker: Maker) -> Self {
        Arc::make_mut(&mut self.inner).maker = Some(maker);
        self
    }

    /// Returns what made this context for a request, or the innermost context around it.
    pub(crate) fn maker(&self) -> Option<Maker> {
        self.inner.maker.or_else(|| self.inner.outer.as_ref()?.maker())
    }

    fn with_collection(mut self, collection: Collection) -> Self {
        Arc::make_mut(&mut self.inner).collection = Some(collection);
        self
    }

    /// Returns what collects the decisions in this context: its own collection, and those of the contexts around it.
    pub(super) fn collections(&self) -> impl Iterator<Item = &Collection> {
        self.with_outer().filter_map(|context| context.inner.collection.as_ref())
    }
}

// Leaves out the values, which may be personal.
opaque_debug!(Context, context => {
    names: context.inner.values.iter().map(|(name, _)| name).collect::<Vec<_>>()
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
