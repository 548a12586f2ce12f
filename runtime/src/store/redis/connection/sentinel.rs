//! The sentinels of a primary: they say where it is, and when another server takes its place.
//!
//! A server that is no primary any more stays writable for seconds, and no call sees an error. So the sentinels are not
//! only asked when a connection is lost: a [watcher](self::watcher) for each of them goes on asking.

mod votes;
mod watcher;

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use self::votes::{SentinelAnswers, Term};
use self::watcher::Watcher;
use super::address::{Address, ShortList};
use super::fault::asked_in_vain;
use crate::error::BackendError;
use crate::lock::lock;
use crate::system::home::Driver;

/// The sentinels of a primary.
pub(crate) struct Sentinels {
    /// Where they are, and how to log in there.
    addresses: Vec<Address>,
    /// How to log in at the primary, wherever it is.
    pub(super) primary: Address,
    name: String,
    /// The longest that a sentinel may take to answer.
    patience: Duration,
    driver: Driver,
    term: Arc<Term>,
    answers: Mutex<Option<Arc<SentinelAnswers>>>,
}

impl Sentinels {
    pub(crate) fn new(
        addresses: Vec<Address>,
        primary: Address,
        name: String,
        patience: Duration,
        driver: Driver,
    ) -> Self {
        Self { addresses, primary, name, patience, driver, term: Arc::default(), answers: Mutex::default() }
    }

    /// Changes when another primary is to be followed.
    pub(crate) fn term(&self) -> u64 {
        self.term.number()
    }

    /// Returns the address of the primary, once a sentinel has named it, and the term.
    pub(crate) async fn primary(&self) -> Result<(Address, u64), BackendError> {
        let (host, term) = self
            .answers()
            .primary()
            .await
            .map_err(|error| asked_in_vain(format_args!("no sentinel says where to find {self}"), error))?;
        let address = self.primary.at(&host).map_err(|error| BackendError::new(error.to_string()))?;
        Ok((address, term))
    }

    /// Returns what the sentinels answer. Their watchers begin, unless they are at work already.
    fn answers(&self) -> Arc<SentinelAnswers> {
        let mut current = lock(&self.answers);
        if let Some(answers) = current.as_ref().filter(|answers| answers.are_current()) {
            return Arc::clone(answers);
        }
        let answers = Arc::new(SentinelAnswers::new(self.addresses.len(), self.patience, &self.term));
        for (index, address) in self.addresses.iter().enumerate() {
            let watcher = Watcher::new(index, address, &self.name, self.patience, Arc::downgrade(&answers));
            self.driver.spawn(watcher.watch());
        }
        current.insert(answers).clone()
    }
}

impl fmt::Display for Sentinels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the primary `{}` of {}", self.name, ShortList(&self.addresses))
    }
}
