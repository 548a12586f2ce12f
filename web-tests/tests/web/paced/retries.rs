//! Tower's retries around the pace, as the guide has them.

use std::future::{Ready, ready};

use http::Response;
use tower::ServiceBuilder;
use tower::retry::Policy as RetryPolicy;

use super::pauses::pausable;
use super::*;

/// Sends a request again that the partner denied, so many times at most.
#[derive(Clone)]
struct Again(u32);

impl<Q: Clone, B> RetryPolicy<Request<Q>, Response<B>, PaceError> for Again {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut Request<Q>, answer: &mut Result<Response<B>, PaceError>) -> Option<Ready<()>> {
        let is_denied = answer.as_ref().is_ok_and(|response| response.status() == StatusCode::TOO_MANY_REQUESTS);
        self.0 = self.0.checked_sub(1).filter(|_| is_denied)?;
        Some(ready(()))
    }

    fn clone_request(&mut self, request: &Request<Q>) -> Option<Request<Q>> {
        Some(request.clone())
    }
}

/// A partner that denies so many requests first, and how many it was sent.
async fn denying(first: usize) -> (Partner, Arc<AtomicUsize>) {
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    let answer = move || {
        let is_denied = counted.fetch_add(1, Ordering::SeqCst) < first;
        let status = if is_denied { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::OK };
        ready((status, [("retry-after-ms", "20")]))
    };
    (Partner::answering(|router| router.route("/busy", any(answer))).await, sent)
}

#[tokio::test]
async fn a_request_that_is_sent_again_waits_for_the_end_of_the_pause_and_counts_each_time() {
    for (denied, status) in [(1, StatusCode::OK), (5, StatusCode::TOO_MANY_REQUESTS)] {
        let (partner, sent) = denying(denied).await;
        let client = ServiceBuilder::new().retry(Again(2)).service(paced(pausable().wait(MINUTE)));
        let answer = client.oneshot(partner.request("/busy")).await.unwrap();
        assert_eq!((answer.status(), sent.load(Ordering::SeqCst)), (status, (denied + 1).min(3)));
    }
}
