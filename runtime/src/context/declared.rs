//! The values that contexts of this program have, as far as they are known before any call.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tallygate_rules::did_you_mean;

use crate::lock::lock;

/// The values that each request has, beside its header fields.
const OF_REQUESTS: [&str; 4] = ["ip", "method", "path", "route"];

/// The most names that are kept. They come from the code of the program, so there are few.
const MOST_NAMES: usize = 10_000;

static DECLARED: Names = Names(Mutex::new(BTreeSet::new()));

static OF_LAYERS: Names = Names(Mutex::new(BTreeSet::new()));

static HAS_LAYERS: AtomicBool = AtomicBool::new(false);

struct Names(Mutex<BTreeSet<Cow<'static, str>>>);

/// Declares values that contexts of this program may have. It is for contexts that the program itself makes with
/// [`scope`](super::scope). Values that a layer of the module `web` finds are known without it.
///
/// A call that lacks a declared value is rejected as [`Unidentified`](crate::RejectionKind::Unidentified): for example,
/// no user has signed in. A call that lacks any other value is a mistake in the program. A file of limits may count
/// requests by declared values.
///
/// # Examples
///
/// ```
/// use tallygate::context::{self, Context};
/// use tallygate::{Rejection, RejectionKind, rate_limit};
///
/// #[rate_limit(key = "{@tenant}", rule(count = 10, per = "1m"))]
/// async fn report() -> Result<(), Rejection> {
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// context::declare(["tenant"]);
/// let rejection = context::scope(Context::new(), report()).await.unwrap_err();
/// assert_eq!(rejection.kind(), RejectionKind::Unidentified);
/// # }
/// ```
pub fn declare<N: Into<Cow<'static, str>>>(names: impl IntoIterator<Item = N>) {
    names.into_iter().for_each(|name| DECLARED.add(name.into()));
}

pub(super) fn is_declared(name: &str) -> bool {
    DECLARED.has(name)
}

/// Notes that the program has made a layer, which may find values in requests.
pub(crate) fn layer_made() {
    HAS_LAYERS.store(true, Ordering::Relaxed);
}

/// Whether the program has made a layer, so that the values of layers are known.
pub(crate) fn has_layers() -> bool {
    HAS_LAYERS.load(Ordering::Relaxed)
}

/// Notes a value that a layer finds in requests.
pub(crate) fn found_by_layer(name: Cow<'static, str>) {
    OF_LAYERS.add(name);
}

/// Whether each request has a value of this name.
pub(crate) fn is_of_requests(name: &str) -> bool {
    OF_REQUESTS.contains(&name) || name.starts_with("header_")
}

/// Whether no layer of this process finds a value of this name, and the program has not declared it.
pub(crate) fn is_unknown(name: &str) -> bool {
    !is_of_requests(name) && !OF_LAYERS.has(name) && !is_declared(name)
}

/// Returns the end of a message about an unknown value: the known value that was probably meant, if there is one.
pub(crate) fn value_meant<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    did_you_mean(name, known.into_iter().chain(OF_REQUESTS))
}

/// Returns the end of a message about an unknown value, with the values of layers and of the program as known ones.
pub(crate) fn known_value_meant(name: &str) -> String {
    let known: Vec<_> = [&OF_LAYERS, &DECLARED].iter().flat_map(|names| lock(&names.0).clone()).collect();
    value_meant(name, known.iter().map(|known| &**known))
}

impl Names {
    fn add(&self, name: Cow<'static, str>) {
        let mut names = lock(&self.0);
        if names.len() < MOST_NAMES {
            names.insert(name);
        }
    }

    fn has(&self, name: &str) -> bool {
        lock(&self.0).contains(name)
    }
}
