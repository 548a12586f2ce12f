//! Decides a trace of calls by a policy: to choose limits before they reject anybody.
//!
//! A [`Simulation`] decides the calls of a trace by the engine that decides calls in memory, with a clock that shows
//! the time of each call. So a month of calls takes only the time of its decisions: a million of them take seconds. A
//! [`Comparison`] runs two policies on one trace and shows which calls they decide differently.
//!
//! The calls of a trace are in the order of their times. They come from [text in columns](CsvTrace), or from any
//! iterator of [`TraceCall`]s.
//!
//! A policy whose calls are [taken ahead](crate::PolicyBuilder::prefetch) is decided as Redis decides it, with wider
//! windows or a smaller bucket. So the difference to the same policy without `prefetch` is its price.
//!
//! Rules in [shadow](crate::Rule::shadow) deny nothing here, either: [`Summary::denied_in_shadow`] has what each of them would
//! have denied. The rules of a policy that is in shadow as a whole are decided as if they were enforced.
//!
//! The answers of [a partner](crate::PolicyBuilder::pausable) that have asked for a pause are a part of the trace:
//! [`TraceCall::with_pause`].
//!
//! A simulation makes every call of the trace, whatever it has decided before. It does not simulate callers that wait,
//! come back later or give up, nor refunds, overrides and outages. It keeps the tallies of all subjects, without a
//! bound, and affects no other limiter.
//!
//! # Examples
//!
//! ```
//! use std::time::Duration;
//! use tallygate::simulation::{Comparison, CsvTrace, Simulation};
//! use tallygate::{Policy, Rule};
//!
//! let trace = "\
//! time,subject
//! 2027-01-15T08:00:00Z,alice
//! 2027-01-15T08:00:01Z,bob
//! 2027-01-15T08:00:20Z,alice
//! 2027-01-15T08:00:40Z,alice
//! 2027-01-15T08:01:10Z,alice
//! ";
//! let minute = Duration::from_secs(60);
//! let strict = Policy::builder("login").rule(Rule::sliding_window(1, minute)).build()?;
//! let lenient = Policy::builder("login").rule(Rule::sliding_window(2, minute)).build()?;
//!
//! let mut simulation = Simulation::new(&strict);
//! simulation.run(CsvTrace::new(trace.as_bytes())?, Err)?; // stops at a mistake
//! let summary = simulation.summary();
//! assert_eq!((summary.admitted(), summary.denied()), (3, 2));
//! assert_eq!(summary.longest_wait(), Some(Duration::from_secs(40)));
//!
//! let mut comparison = Comparison::new(&strict, &lenient);
//! let skip = |mistake| Ok(eprintln!("{mistake}")); // goes on after a mistake
//! comparison.run(CsvTrace::new(trace.as_bytes())?, skip)?;
//! assert_eq!(comparison.newly_admitted().total(), 1);
//! assert_eq!(
//!     comparison.to_string(),
//!     "5 calls: 4 decided alike, 0 newly denied, 1 newly admitted (1 denied before by `1 per 1m`)"
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod comparison;
mod csv;
mod engine;
mod summary;
mod time;
mod trace;

pub use self::comparison::Comparison;
pub use self::csv::CsvTrace;
use self::engine::{Engine, Ready};
pub use self::summary::{Denials, Summary};
use self::trace::decide_all;
pub use self::trace::{TraceCall, TraceError, TraceErrorKind};
use crate::decision::Decision;
use crate::policy::Policy;

/// A policy, and what it has decided so far on a trace of calls.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use tallygate::simulation::{TraceCall, Simulation};
/// use tallygate::{Policy, Rule, Subject};
///
/// let policy = Policy::builder("export").rule(Rule::sliding_window(2, Duration::from_secs(60))).build()?;
/// let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
/// let mut simulation = Simulation::new(&policy);
/// for second in [0, 10, 20, 61] {
///     let call = TraceCall::new(start + Duration::from_secs(second), Subject::of("alice"));
///     println!("{second:>3} s: {}", simulation.call(&call)?.is_allowed());
/// }
/// assert_eq!(simulation.summary().admitted(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Simulation {
    engine: Engine,
    summary: Summary,
}

impl Simulation {
    /// Starts without tallies.
    #[must_use]
    pub fn new(policy: &Policy) -> Self {
        Self { engine: Engine::new(policy), summary: Summary::new(policy) }
    }

    /// Starts a policy that is compared with another one.
    fn beside(policy: &Policy, other: &Policy) -> Self {
        let simulation = Self::new(policy);
        Self { engine: simulation.engine.beside(other), ..simulation }
    }

    /// Decides the next call of a trace, at its time.
    ///
    /// # Errors
    ///
    /// The call is earlier than the one before it, its time is out of range, it lacks a subject that the policy counts, it has
    /// a cost in a unit that no rule counts, or a pause although the policy cannot be paused.
    /// It is not decided, and changes nothing: the simulation may go on with the next call.
    pub fn call(&mut self, call: &TraceCall) -> Result<Decision, TraceError> {
        let ready = self.engine.prepare(call)?;
        self.decide(&ready)
    }

    fn decide(&mut self, ready: &Ready) -> Result<Decision, TraceError> {
        let decision = self.engine.decide(ready)?;
        if decision.is_allowed() {
            self.engine.decide_trials(ready)?.iter().for_each(|denial| self.summary.add_trial(denial));
        }
        self.summary.add(&decision);
        Ok(decision)
    }

    /// Decides all calls of a trace, and returns the summary so far, earlier calls included.
    ///
    /// `on_mistake` handles a mistake in the trace. It returns the error to stop there, or `Ok(())` to skip the call
    /// and go on. Pass `Err` to stop at the first mistake.
    ///
    /// # Errors
    ///
    /// The mistake at which it stopped. Decisions before it stay.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tallygate::simulation::{CsvTrace, Simulation};
    /// use tallygate::{Policy, Rule};
    ///
    /// let policy = Policy::builder("export").rule(Rule::sliding_window(2, Duration::from_secs(60))).build()?;
    /// let mut mistakes = Vec::new();
    /// let mut simulation = Simulation::new(&policy);
    /// simulation.run(CsvTrace::new("time\n1800000000\nnoon\n1800000001".as_bytes())?, |mistake| {
    ///     mistakes.push(mistake.line());
    ///     Ok(())
    /// })?;
    /// assert_eq!(mistakes, [Some(3)]);
    /// assert_eq!(simulation.summary().calls(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run(
        &mut self,
        trace: impl IntoIterator<Item = Result<TraceCall, TraceError>>,
        on_mistake: impl FnMut(TraceError) -> Result<(), TraceError>,
    ) -> Result<&Summary, TraceError> {
        decide_all(trace, on_mistake, |call| self.call(call).map(drop))?;
        Ok(&self.summary)
    }

    /// Returns the summary of the decisions so far.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.summary
    }
}
