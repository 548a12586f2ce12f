//! The subjects of a request, by the keys of its pace.

use super::paced_request::{PacedRequest, is_of_request};
use super::settings::PaceSettings;
use crate::address;
use crate::context::{self, Context, Maker};
use crate::subject::Subject;

impl PaceSettings {
    /// Returns the main subject of a request, and the others in the order of their keys.
    pub(super) fn subjects(&self, request: &PacedRequest<'_>) -> (Subject, Vec<Subject>) {
        let secret = self.limiter().secret();
        let others = || self.keyed.others.iter().map(|(_, key)| key);
        let value = |name: &str| self.value(name, request);
        // Most keys show nothing but what the request has: then no context has to be made.
        let at_once = || {
            let others = others().map(|key| key.subject_of(secret, value)).collect::<Option<_>>();
            self.keyed.key.subject_of(secret, value).zip(others)
        };
        self.shows_only_requests.then(at_once).flatten().unwrap_or_else(|| {
            context::enter(&mut self.context(request), || {
                (self.keyed.key.subject(secret), others().map(|key| key.subject(secret)).collect())
            })
        })
    }

    /// Notes the names of the values that the pace looks for: those that are set, and those of the keys that any request
    /// may have.
    pub(super) fn note_names(&mut self) {
        let of_requests =
            self.keyed.shown_names().filter(|name| is_of_request(name)).map(|name| name.to_owned().into());
        self.names = self.values.iter().map(|(name, _)| name.clone()).chain(of_requests).collect();
        let shows_only_requests = self.keyed.shown_names().all(|name| self.names.iter().any(|known| known == name));
        self.shows_only_requests = shows_only_requests;
    }

    /// Returns the value of the request that has this name.
    fn value(&self, name: &str, request: &PacedRequest<'_>) -> Option<String> {
        let own = self.values.iter().find(|(known, _)| known == name);
        let value = own.map_or_else(|| request.value(name), |(_, find)| find(request.parts))?;
        Some(if name == "ip" { address::counted(value) } else { value })
    }

    /// Returns the values of the request that the keys show. A value that this request lacks is not that of a request which this
    /// program answers meanwhile.
    fn context(&self, request: &PacedRequest<'_>) -> Context {
        let mut context = Context::new().looking_for(&self.names).made_by(Maker::Pace);
        for name in self.keyed.shown_names().filter(|name| self.names.iter().any(|known| known == name)) {
            context = match self.value(name, request) {
                Some(value) => context.with(name.to_owned(), value),
                None => context.without(name.to_owned()),
            };
        }
        context
    }
}
