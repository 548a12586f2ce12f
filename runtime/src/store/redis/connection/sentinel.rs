//! The sentinels of a primary: they say where it is, and when another server takes its place.
//!
//! A server that is no primary any more stays writable for seconds, and no call sees an error. So the sentinels are not
//! only asked when a connection is lost: a [watcher](self::watcher) for each of them goes on asking.

mod findings;
mod naming;
mod watcher;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use self::findings::{Findings, Term};
use self::watcher::Watcher;
use super::address::Address;
use super::listed::Listed;
use crate::error::{BackendError, BackendErrorKind};

/// The sentinels of a primary.
pub(crate) struct Sentinels {
    /// Where they are, and how to log in there.
    addresses: Vec<Address>,
    /// How to log in at the primary, wherever it is.
    primary: Address,
    name: String,
    /// The longest that a sentinel may take to answer.
    patience: Duration,
    term: Arc<Term>,
    findings: Mutex<Option<Arc<Findings>>>,
}

impl Sentinels {
    pub(crate) fn new(addresses: Vec<Address>, primary: Address, name: String, patience: Duration) -> Self {
        Self { addresses, primary, name, patience, term: Arc::default(), findings: Mutex::default() }
    }

    /// How to log in at the primary, wherever it is.
    pub(crate) fn unfound(&self) -> &Address {
        &self.primary
    }

    /// Changes when another primary is to be followed.
    pub(crate) fn term(&self) -> u64 {
        self.term.number()
    }

    /// Returns the address of the primary, once a sentinel has named it, and the term.
    pub(crate) async fn primary(&self) -> Result<(Address, u64), BackendError> {
        let (host, term) = self.findings().primary().await.map_err(|error| self.unnamed(error))?;
        let address = self.primary.at(&host).map_err(|error| BackendError::new(error.to_string()))?;
        Ok((address, term))
    }

    /// Names the sentinels that were asked in vain, unless one of them shows a mistake: that names its own.
    fn unnamed(&self, error: BackendError) -> BackendError {
        if error.kind() == BackendErrorKind::Wrong {
            return error;
        }
        let text = error.to_string();
        let reason = text.strip_prefix("redis: ").unwrap_or(&text);
        BackendError::with_source(error.kind(), format!("redis: nobody says where to find {self}: {reason}"), error)
    }

    /// Returns what the watchers find out. They begin on this runtime, unless they are at work already.
    fn findings(&self) -> Arc<Findings> {
        let mut current = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(findings) = current.as_ref().filter(|findings| findings.are_current()) {
            return Arc::clone(findings);
        }
        let findings = Arc::new(Findings::new(self.addresses.len(), self.patience, &self.term));
        for (index, address) in self.addresses.iter().enumerate() {
            let watcher = Watcher::new(index, address, &self.name, self.patience, Arc::downgrade(&findings));
            tokio::spawn(watcher.watch());
        }
        current.insert(findings).clone()
    }
}

impl fmt::Display for Sentinels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the primary `{}` of {}", self.name, Listed(&self.addresses))
    }
}
