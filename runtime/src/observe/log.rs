//! The events of the log.

use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

use tallygate_rules::RuleError;
use tracing::Level;
use tracing::level_filters::LevelFilter;

use super::line_budget::LineBudget;
use super::metrics::{count_lost_policies, count_warning};
use super::once::ReportedTexts;
use super::terms::{ObservedRule, TARGET};
use super::voice::{is_speaking, report, speak};
use crate::bounds::shown_word;
use crate::bounds::{shown_mistakes, shown_names};
use crate::error::BackendError;

// No event is sent within another one, because the subscriber of the outer one may have caused it.
macro_rules! debug { ($($event:tt)*) => { _ = speak(|| tracing::debug!($($event)*)) }; }
#[allow(unused_macros, reason = "only some features report mistakes")]
macro_rules! error { ($($event:tt)*) => { _ = speak(|| tracing::error!($($event)*)) }; }
macro_rules! info { ($($event:tt)*) => { _ = speak(|| tracing::info!($($event)*)) }; }
macro_rules! warn { ($($event:tt)*) => { _ = speak(|| tracing::warn!($($event)*)) }; }

/// Whether the log may show reports on decisions.
#[inline]
pub(crate) fn is_heard() -> bool {
    LevelFilter::current() >= Level::DEBUG && !is_speaking()
}

/// Reports that limits are not shared, because no limiter is installed.
pub(crate) fn no_limiter_installed() {
    info!(
        "no limiter is installed, so limits hold within this process only; \
         to share them, call `Limiter::connect(url).await?.install()?` at start-up"
    );
}

/// Reports a decision that the backend did not make.
pub(crate) fn undecided(policy: &str, kind: &str, error: &BackendError) {
    debug!(target: TARGET, policy, %kind, %error, "no decision");
}

/// Reports that some calls lack a value that others have, once for each policy and error. Callers choose how often this
/// happens, so it is no alarm.
pub(crate) fn unidentified(policy: &str, error: &BackendError) {
    static REPORTED: ReportedTexts = ReportedTexts::new();
    if REPORTED.is_first(&format!("{policy}: {error}")) {
        info!(target: TARGET, policy, %error, "calls are rejected as unidentified");
    }
}

pub(crate) fn decided_without_redis(policy: &str, decided_by: &str, error: &BackendError) {
    debug!(target: TARGET, policy, %decided_by, %error, "decided without redis");
}

/// Reports once a mistake in the program that rejects every such call. The function is identified by the name of the
/// policy, or by the error with the place of the attribute, because several functions may share a policy.
pub(crate) fn misuse(policy: &str, error: &BackendError) {
    let (policy, error) = (policy.to_owned(), error.clone());
    report(move || {
        static REPORTED: ReportedTexts = ReportedTexts::new();
        if REPORTED.is_first(&format!("{policy}: {error}")) {
            tracing::error!(target: TARGET, policy = &*policy, %error, "calls are rejected, as the program makes them in a way that cannot be decided");
        }
    });
}

/// Reports a value that a message lacks. Nothing else depends on it.
pub(crate) fn value_not_shown(error: &BackendError) {
    warn!(target: TARGET, %error, "a message shows nothing in place of a value, as its context does not have it");
}

/// Reports a handler that takes the client where none is known. This mistake in the program fails every such request.
pub(crate) fn client_missing(error: &dyn Display) {
    error!(target: TARGET, %error, "requests are answered with the status 500, as their handler needs the client");
}

/// Reports that an answer of another server says something of limits that makes no sense, once for each field: the server chooses
/// how often this happens.
pub(crate) fn answer_not_understood(field: &'static str) {
    static REPORTED: ReportedTexts = ReportedTexts::new();
    if REPORTED.is_first(field) {
        warn!(target: TARGET, field, "answers of a server say something about its limits that is not understood, and is ignored");
    }
}

/// Reports that an answer of another server asks for a longer pause than is believed, once for each field.
pub(crate) fn answer_asks_too_much(field: &'static str, longest: Duration) {
    static REPORTED: ReportedTexts = ReportedTexts::new();
    if REPORTED.is_first(field) {
        warn!(
            target: TARGET, field, ?longest,
            "answers of a server ask for a longer pause than the longest one, which is taken instead; to believe them, set \
             `ResponseReader::longest_pause`"
        );
    }
}

/// Reports a layer inside a limit. This mistake in the program may count all clients together.
pub(crate) fn layer_inside_limit() {
    error!(
        target: TARGET,
        "`web::Layer` is inside of `web::limit` or `web::limits`, which therefore does not know its settings: it takes the \
         address of the socket for the client, so it counts all clients of a proxy together; put `web::Layer` outside: in \
         axum and actix-web, add it behind the limit, and in tonic before it"
    );
}

/// Reports a request from a proxy that is not exempt, because its client is not known.
pub(crate) fn fallback_not_exempt() {
    warn!(
        target: TARGET,
        "a request is not exempt by `exempt_addresses`, as its address is that of a proxy and its client is not known; exempt \
         checks of a proxy itself by `exempt_paths`, and let `web::Layer` outside of the limit read the field that the proxy writes"
    );
}

/// Reports a limit that stands around a request twice. Each request is counted once, although the program says twice.
pub(crate) fn limited_twice(policy: &str) {
    error!(
        target: TARGET,
        policy,
        "a request is limited by the same rules and subject twice, and counted once: the inner `web::limit` or `web::limits` does \
         nothing; remove one of them"
    );
}

/// Reports a limit or a pace that cannot decide any request. In shadow, nothing else shows this mistake in the program.
pub(crate) fn subject_lacks_key(function: &str, policy: &str, label: &str) {
    error!(
        target: TARGET,
        policy,
        label,
        "`{function}` can decide no request, as it has no key for a subject of its policy; add `.subject(\"{label}\", …)?`"
    );
}

/// Reports a denial. A client chooses how often this happens, so the level is low.
pub(crate) fn denied(policy: &str, kind: &str, rule: Option<ObservedRule<'_>>, decided_by: &str) {
    let (position, unit) = (rule.map(|rule| rule.position), rule.and_then(|rule| rule.unit));
    debug!(target: TARGET, policy, rule = position, unit, %kind, %decided_by, "denied");
}

/// Reports the denial of a call that runs nevertheless.
pub(crate) fn denied_in_shadow(policy: &str, kind: &str, rule: Option<ObservedRule<'_>>, decided_by: &str) {
    let (position, unit) = (rule.map(|rule| rule.position), rule.and_then(|rule| rule.unit));
    debug!(target: TARGET, policy, rule = position, unit, %kind, %decided_by, "denied in shadow: the call goes on");
}

/// Reports that a refund failed. The hits stay counted.
pub(crate) fn not_refunded(policy: &str, error: &BackendError) {
    debug!(target: TARGET, policy, %error, "a permit could not be refunded and stays counted");
}

/// Reports that a call has paused its subject, and the field of the answer that asked for it, if one did. The other side chooses how
/// often this happens.
pub(crate) fn paused(policy: &str, length: Duration, field: Option<&str>) {
    static LINES: LineBudget = LineBudget::new();
    LINES.report(|| info!(target: TARGET, policy, ?length, field, "a subject is paused"));
}

/// Reports that a subject is open for all again, as a call after its pause has succeeded.
pub(crate) fn opened(policy: &str) {
    static LINES: LineBudget = LineBudget::new();
    LINES.report(|| info!(target: TARGET, policy, "a subject is open again after a pause"));
}

/// Reports that a pause is cut to the longest one of its policy, once for each policy.
pub(crate) fn pause_cut(policy: &str, length: Duration, longest: Duration) {
    static REPORTED: ReportedTexts = ReportedTexts::new();
    if REPORTED.is_first(policy) {
        warn!(
            target: TARGET, policy, ?length, ?longest,
            "a pause is longer than the longest one of its policy, which is taken instead; to allow it, set \
             `PolicyBuilder::longest_pause`"
        );
    }
}

/// Reports that a pause could not be stored, so that only this process honours it. While Redis is away, this may happen often.
pub(crate) fn not_paused(policy: &str, error: &BackendError) {
    static LINES: LineBudget = LineBudget::new();
    LINES.report(|| {
        warn!(target: TARGET, policy, %error, "other processes do not hear of a pause yet, as it could not be stored");
    });
}

/// Reports a function with `pause` whose policy cannot be paused, once for each policy: a mistake in the program.
pub(crate) fn pauses_not_kept(policy: &str) {
    static REPORTED: ReportedTexts = ReportedTexts::new();
    if REPORTED.is_first(policy) {
        error!(
            target: TARGET, policy,
            "the `pause` of a function does nothing, as its policy cannot be paused; make that pausable with \
             `PolicyBuilder::pausable`"
        );
    }
}

/// Reports that a pace does not heed the denials of the other side, once for each policy.
pub(crate) fn denial_not_heeded(policy: &str) {
    static REPORTED: ReportedTexts = ReportedTexts::new();
    if REPORTED.is_first(policy) {
        warn!(
            target: TARGET, policy,
            "the other side denies calls, and the pace goes on, as its policy cannot be paused; make that pausable with \
             `PolicyBuilder::pausable`"
        );
    }
}

/// Reports a limit of the other side that no rule of a pace counts, once for each policy.
pub(crate) fn limit_of_no_rule(policy: &str) {
    static REPORTED: ReportedTexts = ReportedTexts::new();
    if REPORTED.is_first(policy) {
        info!(
            target: TARGET, policy,
            "the other side says how much is left of a fixed window, and no rule counts for as long or as much, so that the use of \
             others is not heard; if a rule counts the same, name it with `Pace::shared_rule`"
        );
    }
}

pub(crate) fn not_given_back(policy: &str, error: &BackendError) {
    debug!(target: TARGET, policy, %error, "units that were taken ahead could not be given back and stay counted");
}

pub(crate) fn lease_not_renewed(policy: &str, error: &BackendError) {
    debug!(target: TARGET, policy, %error, "the lease of a concurrent call could not be renewed; it is tried again");
}

/// Reports that the leases of a call that ended could not be given back. They end by themselves.
pub(crate) fn lease_not_given_back(policy: &str, error: &BackendError) {
    debug!(target: TARGET, policy, %error, "the lease of a call that is over could not be given back; it ends by itself");
}

/// Reports that a call could not be settled and counts as its cost. Only the first of several in a row is a warning.
pub(crate) fn not_settled(policy: &str, error: &BackendError, is_first: bool) {
    const MESSAGE: &str = "a call could not be settled and counts as its cost";
    if is_first {
        warn!(target: TARGET, policy, %error, "{MESSAGE}");
    } else {
        debug!(target: TARGET, policy, %error, "{MESSAGE}");
    }
}

/// Reports that an override was set or cleared, for a policy or one of its subjects, and by whom if known.
pub(crate) fn overridden(policy: &str, operator: Option<&str>) {
    let policy = shown_word(policy).into_owned();
    let operator = operator.map(|operator| shown_word(operator).into_owned());
    report(move || {
        let operator = operator.as_deref();
        tracing::info!(target: TARGET, policy = &*policy, operator, "rules were overridden, or an override was cleared");
    });
}

/// Reports a change that an operator has made, by the routes of a service or by a call of the library, and the operator
/// if known.
pub(crate) fn changed_by_operator(policy: &str, change: &str, operator: Option<&str>) {
    let operator = operator.map(shown_word);
    info!(target: TARGET, policy, change, operator = operator.as_deref(), "a change by an operator was carried out");
}

pub(crate) fn override_expired(policy: &str) {
    let policy = shown_word(policy).into_owned();
    report(move || {
        tracing::info!(target: TARGET, policy = &*policy, "an override has expired");
    });
}

/// Reports that the policies of a file are in force, the path of a file that is watched, and who applied it if known.
pub(crate) fn policies_applied(policies: usize, unknown: usize, file: Option<&Path>, operator: Option<&str>) {
    let (file, operator) = (file.map(|file| file.display().to_string()), operator.map(shown_word));
    info!(target: TARGET, policies, unknown, file, operator = operator.as_deref(), "policies of a file are in force; unknown ones once they are built");
}

/// Reports that the present text of a watched file is not in force.
pub(crate) fn file_not_applied(error: &crate::error::Error) {
    let error = error.to_string();
    error!(target: TARGET, error = &*shown_mistakes(&error), "a file that is watched is not applied; the limits in force stay so");
}

pub(crate) fn policies_lost(names: &[String]) {
    warn!(target: TARGET, policies = %shown_names(names), "policies are no longer in the file; their limits end, or are those of the program");
    count_lost_policies(names.len());
}

/// Reports that a policy of a file does not fit that of the program.
pub(crate) fn policy_not_changed(policy: &str, mistake: &crate::error::Mistake) {
    let (policy, mistake) = (policy.to_owned(), mistake.clone());
    report(move || {
        tracing::error!(target: TARGET, policy = &*policy, %mistake, "a policy of the file does not fit that of the program, which keeps its own rules");
    });
}

/// Reports that calls ask for a plan that the file does not list. What they ask for may come from a client.
#[cfg(feature = "config")]
pub(crate) fn plan_not_listed(policy: &str, alike: Option<&str>) {
    let (policy, alike) = (policy.to_owned(), alike.map(|plan| shown_word(plan).into_owned()));
    report(move || {
        tracing::warn!(target: TARGET, policy = &*policy, alike, "calls ask for a plan that the file does not list; they have the count without a plan");
    });
}

pub(crate) fn override_without_rule(policy: &str, rule: &str) {
    let (policy, rule) = (shown_word(policy).into_owned(), shown_word(rule).into_owned());
    report(move || {
        tracing::warn!(target: TARGET, policy = &*policy, rule = &*rule, "an override is for a rule that the policy does not have; this part is ignored");
    });
}

pub(crate) fn override_of_other_units(policy: &str, mistake: &RuleError) {
    let (policy, mistake) = (shown_word(policy).into_owned(), mistake.to_string());
    report(move || {
        tracing::warn!(target: TARGET, policy = &*policy, mistake = &*mistake, "an override counts other units than its policy; this part is ignored");
    });
}

pub(crate) fn override_ignored(policy: &str, mistake: &str) {
    let (policy, mistake) = (shown_word(policy).into_owned(), shown_word(mistake).into_owned());
    report(move || {
        tracing::warn!(target: TARGET, policy = &*policy, mistake = &*mistake, "an override cannot be read and is ignored; set or clear it again");
    });
}

pub(crate) fn overrides_unread(error: &BackendError) {
    let error = error.clone();
    report(move || {
        tracing::warn!(target: TARGET, %error, "overrides cannot be read; the last known ones stay in force");
    });
}

/// Reports that the policies of this process are not in the registry. No decision depends on it.
pub(crate) fn not_registered(error: &BackendError, is_final: bool) {
    let error = error.clone();
    report(move || {
        let goes_on = if is_final { "it is not tried again" } else { "it is tried again later" };
        tracing::warn!(target: TARGET, %error, goes_on, "the policies of this process could not be listed in redis for tools; decisions do not depend on it");
    });
}

/// Reports that the registry is full.
pub(crate) fn no_place_for_policies(most: usize) {
    report(move || {
        tracing::warn!(target: TARGET, most, "there are too many policies to list all of them in redis for tools; decisions do not depend on it");
    });
}

/// Reports a policy whose description is too long for the registry.
pub(crate) fn description_too_long(policy: &str) {
    let policy = policy.to_owned();
    report(move || {
        tracing::warn!(target: TARGET, policy = &*policy, "a policy is not listed in redis for tools, as its rules and keys are too long; decisions do not depend on it");
    });
}

pub(crate) fn denied_not_published(error: &BackendError) {
    debug!(target: TARGET, %error, "denied subjects could not be published");
}

/// Reports that there are more policies than those whose denied subjects are counted.
pub(crate) fn too_many_policies_of_denials(most: usize) {
    report(move || {
        tracing::warn!(
            target: TARGET,
            most,
            "there are too many policies to count the denied subjects of all of them; those of later ones are left out, and \
             decisions do not depend on it"
        );
    });
}

pub(crate) fn too_many_overrides(most: usize) {
    report(move || {
        tracing::warn!(target: TARGET, most, "there are too many overrides to read; the last known ones stay in force");
    });
}

pub(crate) fn warned(policy: &str, rule: ObservedRule<'_>) {
    debug!(target: TARGET, policy, rule = rule.position, unit = rule.unit, "near a limit");
    count_warning(policy, rule);
}
