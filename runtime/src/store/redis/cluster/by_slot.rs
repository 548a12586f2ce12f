//! Requests on several slots of one node: a call of the script for each slot, and one round trip for all.

use std::collections::BTreeMap;
use std::time::Instant;

use super::slots::Slot;
use crate::error::BackendError;
use crate::store::redis::script::run::ScriptCall;
use crate::store::redis::script::wire::Reply;
use crate::store::redis::script::{Form, ScriptQuestion, unknown_shape};
use crate::store::redis::server::Server;
use crate::store::request::Request;
use crate::store::tally_key::TallyKey;

/// The requests on one slot.
#[derive(Default)]
struct Group<'a> {
    /// Their places among all requests.
    places: Vec<usize>,
    requests: Vec<Request<'a>>,
    keys: Vec<TallyKey>,
}

impl Server {
    /// Sends requests, each of which is on one slot. Each has an answer of its own.
    pub(crate) async fn ask_by_slot(
        &self,
        requests: &[Request<'_>],
        until: Instant,
    ) -> Vec<Result<Reply, BackendError>> {
        let groups = self.group(requests);
        let (calls, forms): (Vec<_>, Vec<_>) = groups.iter().map(|group| self.call(group)).unzip();
        let answers = match self.call_each(&calls, until).await {
            Ok(answers) => answers,
            Err(error) => return vec![Err(error); requests.len()],
        };
        let mut replies = vec![Err(unknown_shape()); requests.len()];
        for ((group, form), answer) in groups.iter().zip(forms).zip(answers) {
            let answer = answer.map_err(|error| self.connector.explain(&error));
            let read = match answer.and_then(|reply| self.read(form, &reply, &group.requests)) {
                Ok(read) => read.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error); group.places.len()],
            };
            for (&place, reply) in group.places.iter().zip(read) {
                if let Some(missing) = replies.get_mut(place) {
                    *missing = reply;
                }
            }
        }
        replies
    }

    /// The call about the requests of a group, and the form of its answer.
    fn call(&self, group: &Group<'_>) -> (ScriptCall<'_>, Form) {
        let ScriptQuestion { script, arguments, form } = self.question(&group.requests);
        (ScriptCall { script, keys: group.keys.clone(), arguments }, form)
    }

    fn group<'a>(&self, requests: &[Request<'a>]) -> Vec<Group<'a>> {
        let mut groups = BTreeMap::<Slot, Group<'a>>::new();
        for (place, request) in requests.iter().enumerate() {
            let keys: Vec<_> = self.keys(*request).collect();
            let Some(first) = keys.first() else { continue };
            let group = groups.entry(Slot::of(first.as_str())).or_default();
            group.places.push(place);
            group.requests.push(*request);
            group.keys.extend(keys);
        }
        groups.into_values().collect()
    }
}
