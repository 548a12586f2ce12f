//! A call to a partner by the layer for clients.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::request::Parts;
use http::{Request, Response};
use tallygate::client::{self, Pace, PaceError};
use tallygate::{BackendError, DecidedBy, Error, Limiter, Policy, Rejection};
use tower_layer::Layer as _;
use tower_service::Service;

use super::note::{Note, reader};
use crate::history::Answer;
use crate::partner::Partners;
use crate::workload::{Action, CallPlan, PartnerPlan, PolicyPlan};

/// The number of the subjects of a call, in the extensions of its request.
#[derive(Clone, Copy)]
struct Number(usize);

/// Builds the pace of a policy; `None` if the calls to its partner are made by hand.
pub(super) fn pace(limiter: &Limiter, policy: &Policy, plan: &PolicyPlan) -> Result<Option<Pace>, Error> {
    let Some(partner) = plan.partner.as_ref().filter(|_| plan.is_called_by_layer()) else { return Ok(None) };
    let number = |request: &Parts| request.extensions.get::<Number>().map(|Number(number)| number.to_string());
    let pace = client::pace(policy, "user{@number}")?.value("number", number);
    let pace = if plan.has_net() { pace.subject("net", "net{@number}")? } else { pace };
    Ok(Some(pace.limiter(limiter).responses(reader(partner))))
}

/// Whether the layer makes such a call: it has neither options nor a cost.
pub(super) fn makes(plan: &CallPlan) -> bool {
    let is_plain = plan.cost == 1 && plan.units.named().next().is_none();
    is_plain && matches!(plan.action, Action::Decide | Action::Wait(_))
}

/// The way of one call to its partner. Who has admitted it is known, as its policy denies all calls while Redis is away.
#[derive(Clone)]
struct Way {
    partners: Arc<Partners>,
    plan: CallPlan,
    partner: PartnerPlan,
    note: Arc<Mutex<Note>>,
}

impl Way {
    fn note(&self) -> MutexGuard<'_, Note> {
        self.note.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service<Request<String>> for Way {
    type Response = Response<String>;
    type Error = &'static str;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<String>) -> Self::Future {
        let way = self.clone();
        Box::pin(async move {
            way.note().answer(Answer::Admitted(DecidedBy::Backend));
            let answer = way.partners.call(way.plan.policy, way.plan.subject).await.ok_or("the answer is lost")?;
            way.note().hear(&answer, &way.partner);
            let mut response = Response::new(String::new());
            (*response.status_mut(), *response.headers_mut()) = (answer.status, answer.headers);
            Ok(response)
        })
    }
}

/// Makes a call.
pub(super) async fn call(pace: &Pace, plan: CallPlan, partner: PartnerPlan, partners: Arc<Partners>, note: Note) {
    let pace = match plan.action {
        Action::Wait(us) => pace.clone().wait(Duration::from_micros(us)),
        _ => pace.clone(),
    };
    let mut request = Request::new(String::new());
    request.extensions_mut().insert(Number(plan.subject));
    let way = Way { partners, plan, partner, note: Arc::new(Mutex::new(note)) };
    // An answer that is lost is an error of the client.
    if let Err(PaceError::Rejected(rejection)) = pace.layer(way.clone()).call(request).await {
        way.note().answer(rejected(&rejection));
    }
}

fn rejected(rejection: &Rejection) -> Answer {
    let error = std::error::Error::source(rejection).and_then(|error| error.downcast_ref::<BackendError>());
    match (rejection.denial(), error) {
        (Some(denial), _) => Answer::denied(denial),
        (None, Some(error)) => Answer::Failed(error.kind()),
        (None, None) => Answer::Failed(tallygate::BackendErrorKind::Unknown),
    }
}
