//! The sentinels of a primary. They say where it is, and when another server takes its place.
//!
//! A demoted primary stays writable for seconds, and no call sees an error. So sentinels are asked not only when a
//! connection is lost: a [watcher](self::watcher) for each sentinel goes on asking.

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

pub(crate) struct Sentinels {
    /// The addresses of the sentinels, with the login for them.
    addresses: Vec<Address>,
    /// The login for the primary, wherever it is.
    pub(super) primary: Address,
    name: String,
    /// The longest time that a sentinel may take to answer.
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

    /// Returns a number that changes when another primary is to be followed.
    pub(crate) fn term(&self) -> u64 {
        self.term.number()
    }

    /// Waits until a sentinel names the primary; returns its address and the term.
    pub(crate) async fn primary(&self) -> Result<(Address, u64), BackendError> {
        let (host, term) = self
            .answers()
            .primary()
            .await
            .map_err(|error| asked_in_vain(format_args!("no sentinel says where to find {self}"), error))?;
        let address = self.primary.at(&host).map_err(|error| BackendError::new(error.to_string()))?;
        Ok((address, term))
    }

    /// Returns the answers of the sentinels. Starts the watchers, unless they are running.
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
