//! Calls that are made while the program answers a request.

use tallygate_web_tests::Client as Caller;

use super::*;

#[tokio::test]
async fn the_answer_of_a_request_says_nothing_of_the_pace_of_calls_that_it_makes() {
    let partner = Arc::new(Partner::start().await);
    let client = paced(pace([per_minute(1)], "{@host}"));
    let handler = async move || match rejected(&client, partner.request("/")).await {
        None => "sent",
        Some(_) => "not sent",
    };
    let own = web::limit(&Policy::builder("own").rule(per_minute(7)).build().unwrap(), "all").unwrap();
    let own = own.limiter(&Limiter::in_memory());
    let router = Router::new().route("/", any(handler.clone())).layer(WebLayer::new().on_success(true));
    let limited = Router::new().route("/", any(handler)).layer(own).layer(WebLayer::new().on_success(true));
    let (caller, limited) = (Caller::new(serve(router).await), Caller::new(serve(limited).await));
    for text in ["sent", "not sent"] {
        let answer = caller.get("/").await;
        assert_eq!((answer.body.as_str(), answer.header("ratelimit")), (text, None));
    }
    let answer = limited.get("/").await;
    let fields = [answer.header("ratelimit"), answer.header("ratelimit-policy")].map(Option::unwrap);
    assert!(fields.iter().all(|field| field.contains("own") && !field.contains("partner")), "{fields:?}");
}
