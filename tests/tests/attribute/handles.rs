//! Limits that are written elsewhere are found by name, and their subjects are built by hand.

use std::time::Duration;

use tallygate::{Limiter, Policy, Rejection, Rule, Subject, SubjectBuilder, rate_limit};
use tallygate_harness::until::wait_until;

/// Values that filters and escaping change.
const VALUES: [&str; 14] = [
    "",
    "138",
    "a:b",
    "a/b {c}",
    "100 %!",
    "é",
    " Zoë@Example.ORG\n",
    "ΑΣ",
    "192.0.2.1:443",
    "::ffff:192.0.2.1",
    "[2001:db8:1:2:3:4:5:6]:443",
    "2001:DB8::7",
    "a value that is much longer than the part of a key that is kept for it, and so ends in a digest of the whole of it",
    "ééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé",
];

/// A test for each template: the subject that is built by hand is the one that the attribute counts.
macro_rules! templates {
    ($($test:ident: $template:literal, |$builder:ident, $value:ident| $built:expr;)*) => {$(
        mod $test {
            use super::*;

            #[rate_limit(key = $template, rule(count = 1, per = "1h"), limiter = limiter)]
            async fn limited(value: &str, limiter: &Limiter) -> Result<(), Rejection> {
                let _ = (value, limiter);
                Ok(())
            }

            fn build($builder: SubjectBuilder<'_>, $value: &str) -> Subject {
                $built
            }

            #[tokio::test]
            async fn renders_what_is_built() {
                for value in VALUES {
                    let limiter = Limiter::builder().secret("secret").build_in_memory().unwrap();
                    limited(value, &limiter).await.unwrap();
                    let policy = Limiter::policy(concat!("attribute.handles.", stringify!($test), ".limited")).unwrap();
                    let built = build(limiter.subject(), value);
                    let peeked = limiter.peek(&policy, &built).await.unwrap();
                    assert_eq!(peeked.report()[0].remaining(), 0, "{value:?}: {built}");
                }
            }
        }
    )*};
}

templates! {
    a_value: "{value}", |subject, value| subject.value(value).build();
    text_before_a_value: "sms:{value}", |subject, value| subject.text("sms:").value(value).build();
    text_around_a_value: "/a/{value}?b=%", |subject, value| subject.text("/a/").value(value).text("?b=%").build();
    braces_and_odd_text: "a{{{value}}}%!é ", |subject, value| subject.text("a{").value(value).text("}%!é ").build();
    two_values: "{value}:{value}", |subject, value| subject.value(value).text(":").value(value).build();
    lower_case: "mail:{value:lower}", |subject, value| subject.text("mail:").value(value).lower().build();
    white_space: "mail:{value:trim}", |subject, value| subject.text("mail:").value(value).trim().build();
    a_digest: "sms:{value:hash}", |subject, value| subject.text("sms:").value(value).hash().build();
    a_network: "ip:{value:subnet}", |subject, value| subject.text("ip:").value(value).subnet().build();
    a_wider_network: "ip:{value:subnet(24, 56)}", |subject, value| {
        subject.text("ip:").value(value).subnet_bits(24, 56).build()
    };
    several_filters: "mail:{value:trim:lower:hash}", |subject, value| {
        subject.text("mail:").value(value).trim().lower().hash().build()
    };
    filters_beside_each_other: "{value:subnet:hash}/{value:trim}/{value}", |subject, value| {
        subject.value(value).subnet().hash().text("/").value(value).trim().text("/").value(value).build()
    };
}

#[rate_limit(name = "handles.called", key = "user:{id}", rule(count = 2, per = "1h"))]
async fn called(id: u64) -> Result<(), Rejection> {
    let _ = id;
    Ok(())
}

#[tokio::test]
async fn the_policy_of_a_function_is_found_from_its_first_call_on() {
    assert!(Limiter::policy("handles.called").is_none());
    called(7).await.unwrap();
    let policy = Limiter::policy("handles.called").unwrap();
    let limiter = Limiter::installed();
    let subject = Subject::of("user").and(7);
    let remaining = async || limiter.peek(&policy, &subject).await.unwrap().report()[0].remaining();
    assert_eq!(remaining().await, 1);
    limiter.check(&policy, &subject).reset().await.unwrap();
    assert_eq!(remaining().await, 2);
}

#[test]
fn policies_that_were_built_are_found_while_they_are_in_use() {
    let build = |name: &'static str, count| {
        Policy::builder(name).rule(Rule::sliding_window(count, Duration::from_secs(60))).build().unwrap()
    };
    let found = || Limiter::policies().map(|policy| policy.name().to_owned()).filter(|name| name.starts_with("built."));
    let (second, first) = (build("built.b", 1), build("built.a", 1));
    assert_eq!(found().collect::<Vec<_>>(), ["built.a", "built.b"]);
    let newer = build("built.b", 9);
    assert_eq!(Limiter::policy("built.b").unwrap().rules()[0].count(), 9);
    drop((newer, first));
    // Whoever lists policies meanwhile holds them for a moment.
    wait_until("the other is alone", || found().eq(["built.b"]));
    assert_eq!(Limiter::policy("built.b").unwrap().rules(), second.rules());
}
