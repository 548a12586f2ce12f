//! A tool makes the subjects that the processes count, without a copy of their code.

use tallygate::admin::{Placeholder, RegisteredPolicy};
use tallygate::context::{Context, scope};
use tallygate::{Limiter, Policy, Rejection, RejectionKind, Rule, RuleStatus, Subject, rate_limit};
use tallygate_harness::server::{Server, connected, patient};

use super::{HOUR, hourly_builder, until_listed};

#[rate_limit(
    name = "mail.send",
    key = "mail:{email:trim:lower:hash}/{{{tenant}}}",
    limiter = limiter,
    rule(count = 2, per = "1h"),
    rule(count = 5, per = "1h", key = "{@ip:subnet}/{tenant}"),
    ban(denials = 30, within = "1h", duration = "2h"),
)]
async fn send(limiter: &Limiter, tenant: &str, email: &str) -> Result<(), Rejection> {
    Ok(())
}

async fn send_from(limiter: &Limiter, ip: &str, email: &str) -> Result<(), Rejection> {
    scope(Context::new().with("ip", ip), send(limiter, "acme", email)).await
}

/// Two limiters with the secret of the program, one of them that of a tool, and the policy as the tool finds it.
async fn listed(server: &Server) -> (Limiter, Limiter, RegisteredPolicy) {
    let program = connected(&patient().registry(true).secret("of the program"), &server.url()).await;
    let tool = connected(&patient().secret("of the program"), &server.url()).await;
    send_from(&program, "2001:db8::1", " Zoe@Example.org").await.unwrap();
    let listed = until_listed(&tool, "mail.send", |_| true).await;
    (program, tool, listed)
}

#[tokio::test]
async fn a_tool_peeks_resets_and_bans_by_the_values_of_a_call() {
    let server = Server::start();
    let (program, tool, listed) = listed(&server).await;
    let shown: Vec<_> =
        listed.placeholders().unwrap().iter().map(|shown| (shown.name().to_owned(), shown.is_hashed())).collect();
    let expected = [("email", true), ("tenant", false), ("@ip", false)];
    assert_eq!(shown, expected.map(|(name, is_hashed)| (name.to_owned(), is_hashed)));

    let policy = listed.policy().unwrap();
    let subjects = listed.render(&tool).values(["zoe@example.org", "acme", "2001:db8::/64"]).build().unwrap();
    let left = async || {
        let decision = subjects.check(&tool, &policy).peek().report().await.unwrap();
        decision.report().iter().map(RuleStatus::remaining).collect::<Vec<_>>()
    };
    assert_eq!(left().await, [1, 4]);
    assert!(subjects.main().to_string().ends_with("/{acme}"));
    assert_eq!(subjects.others().map(|(label, _)| label).collect::<Vec<_>>(), ["{@ip:subnet}/{tenant}"]);

    subjects.check(&tool, &policy).ban(HOUR).await.unwrap();
    let rejection = send_from(&program, "2001:db8::1", "zoe@example.org").await.unwrap_err();
    assert_eq!(rejection.kind(), RejectionKind::Banned);
    subjects.check(&tool, &policy).unban().await.unwrap();
    send_from(&program, "2001:db8::1", "zoe@example.org").await.unwrap();
    subjects.check(&tool, &policy).reset_all().await.unwrap();
    assert_eq!(left().await, [2, 5]);
}

#[tokio::test]
async fn values_may_be_named_and_subjects_given_as_a_whole() {
    let server = Server::start();
    let (_program, tool, listed) = listed(&server).await;
    let by_position = listed.render(&tool).values(["zoe@example.org", "acme", "192.0.2.1"]).build().unwrap();
    let by_name = listed.render(&tool).named("@ip", "192.0.2.1").named("tenant", "acme").value("zoe@example.org");
    assert_eq!(by_name.build().unwrap(), by_position);
    let main = Subject::from_rendered(&by_position.main().to_string()).unwrap();
    let whole = listed.render(&tool).main(main.clone()).named("@ip", "192.0.2.1").named("tenant", "acme");
    assert_eq!(whole.build().unwrap(), by_position);
    let (label, network) = by_position.others().next().unwrap();
    assert_eq!(listed.render(&tool).main(main).subject(label, network.clone()).build().unwrap(), by_position);
}

#[tokio::test]
async fn what_is_missing_or_misspelt_is_named() {
    let server = Server::start();
    let (_program, tool, listed) = listed(&server).await;
    let refused = |rendering: tallygate::admin::Rendering<'_>| rendering.build().unwrap_err().to_string();
    let render = || listed.render(&tool);
    assert_eq!(refused(render().value("zoe")), "policy `mail.send`: a value is missing for `tenant`, `@ip`");
    let many = refused(render().values(["a", "b", "c", "d"]));
    assert!(many.contains("more values than its keys show, which are `email`, `tenant`, `@ip`"), "{many}");
    assert!(refused(render().named("emial", "zoe")).contains("no key shows `emial`; did you mean `email`?"));
    assert!(refused(render().named("email", "a").named("email", "b")).contains("`email` is given twice"));
    let network = render().subject("{@ip}/{tenant}", Subject::everyone());
    assert!(refused(network).contains("no rule on a subject `{@ip}/{tenant}`"));

    let public = server.limiter().await;
    let values = ["zoe@example.org", "acme", "192.0.2.1"];
    let secretless = refused(listed.render(&public).values(values));
    assert!(secretless.contains("the digest of `email`; give the limiter the secret"), "{secretless}");
    assert!(listed.render(&public).values(values).without_secret().build().is_ok());
}

#[tokio::test]
async fn a_tool_with_another_secret_than_the_program_says_so() {
    let server = Server::start();
    let (_program, tool, listed) = listed(&server).await;
    let values = ["zoe@example.org", "acme", "192.0.2.1"];
    assert_eq!(listed.has_secret(), Some(true));
    let own_line_end = connected(&patient().secret("of the program\r\n"), &server.url()).await;
    let [subjects, same] = [&tool, &own_line_end].map(|tool| listed.render(tool).values(values).build().unwrap());
    assert_eq!(subjects, same);

    let other = connected(&patient().secret("of another program"), &server.url()).await;
    let refused = listed.render(&other).values(values).build().unwrap_err().to_string();
    assert_eq!(
        refused,
        "policy `mail.send`: its key has the digest of `email`, and `LimiterBuilder::secret` is not the secret of the programs; \
         give the limiter theirs, or none if they have none"
    );
    // A subject as it stands in keys needs no secret.
    let whole = listed.render(&other).main(subjects.main().clone());
    assert_eq!(whole.named("@ip", "192.0.2.1").named("tenant", "acme").build().unwrap(), subjects);
}

#[tokio::test]
async fn an_address_that_the_programs_count_by_its_network_is_refused() {
    let server = Server::start();
    let (_program, tool, listed) = listed(&server).await;
    let render = |ip: &str| listed.render(&tool).values(["zoe@example.org", "acme", ip]).build();
    for ip in ["192.0.2.1", "2001:db8:1:2::/64", "2001:db8::/33", "none"] {
        assert!(render(ip).is_ok(), "{ip}");
    }
    for ip in [
        "2001:db8:1:2::7",
        "::ffff:192.0.2.1",
        "[2001:db8:1:2::7]:80",
        "192.0.2.1:80",
        "fe80::1%eth0",
        "2001:db8:1:2::7/64",
        "2001:DB8:1:2::/64",
        "2001:db8:1:2:0:0:0:0/64",
        "2001:db8:1:2::/064",
        "2001:db8:1:2::/129",
    ] {
        let refused = render(ip).unwrap_err().to_string();
        assert!(refused.contains("`@ip`") && refused.contains("like 2001:db8:1:2::/64"), "{refused}");
    }
}

#[tokio::test]
async fn the_subject_of_a_policy_whose_key_is_not_known_is_given_as_a_whole() {
    let server = Server::start();
    let limiter = connected(&patient().registry(true), &server.url()).await;
    let policy = hourly_builder("by.hand", 5).rule_on("network", Rule::fixed_window(20, HOUR)).build().unwrap();
    let (user, network) = (Subject::of("user").and(7), Subject::of("network"));
    assert!(limiter.check(&policy, &user).subject("network", &network).await.unwrap().is_allowed());
    let listed = until_listed(&limiter, "by.hand", |_| true).await;
    assert_eq!(listed.placeholders().unwrap(), Vec::<Placeholder>::new());
    let refused = |rendering: tallygate::admin::Rendering<'_>| rendering.build().unwrap_err().to_string();
    assert!(refused(listed.render(&limiter)).contains("how its main subject is written is not known"));
    let main = Subject::from_rendered("user:7").unwrap();
    let unnamed = refused(listed.render(&limiter).main(main.clone()));
    assert!(unnamed.contains("how its subject `network` is written is not known"), "{unnamed}");
    let subjects = listed.render(&limiter).main(main).subject("network", network).build().unwrap();
    let decision = subjects.check(&limiter, &policy).peek().report().await.unwrap();
    assert_eq!(decision.report().iter().map(RuleStatus::remaining).collect::<Vec<_>>(), [4, 19]);
}

#[tokio::test]
async fn what_only_the_program_can_write_is_given_as_a_whole() {
    #[derive(Debug)]
    #[allow(dead_code, reason = "its text is all that is needed")]
    struct Status(u8);

    #[rate_limit(name = "by.status", key = "{status:debug}/{@tier}", limiter = limiter, rule(count = 2, per = "1h"))]
    async fn call(limiter: &Limiter, status: Status) -> Result<(), Rejection> {
        Ok(())
    }
    let server = Server::start();
    let limiter = connected(&patient().registry(true), &server.url()).await;
    scope(Context::new().with("tier", "gold"), call(&limiter, Status(7))).await.unwrap();
    let listed = until_listed(&limiter, "by.status", |_| true).await;
    let refused = listed.render(&limiter).values(["Status(7)", "gold"]).build().unwrap_err().to_string();
    assert!(refused.contains("`status` as `Debug` writes it") && refused.contains("as a whole"), "{refused}");
    assert!(listed.render(&limiter).main(Subject::of("Status(7)").and("gold")).build().is_ok());
}

#[tokio::test]
async fn a_main_subject_that_nothing_counts_is_refused() {
    let server = Server::start();
    let limiter = connected(&patient().registry(true), &server.url()).await;
    let policy = Policy::builder("networks").rule_on("network", Rule::fixed_window(20, HOUR)).build().unwrap();
    let (everyone, network) = (Subject::everyone(), Subject::of("n"));
    assert!(limiter.check(&policy, &everyone).subject("network", &network).await.unwrap().is_allowed());
    let listed = until_listed(&limiter, "networks", |_| true).await;
    let render = || listed.render(&limiter).subject("network", network.clone());
    let refused = render().main(Subject::of("alice")).build().unwrap_err().to_string();
    assert_eq!(
        refused,
        "policy `networks`: no rule counts a main subject; leave it out, and give the others by their labels"
    );
    assert_eq!(render().build().unwrap().main(), &everyone);
}

#[test]
fn a_subject_is_read_as_it_stands_in_keys_and_nothing_else_is() {
    for subject in [Subject::everyone(), Subject::of("zoë").and("a b"), Subject::of("x".repeat(300))] {
        assert_eq!(Subject::from_rendered(&subject.to_string()).unwrap(), subject);
    }
    for (text, mistake) in [
        ("zoë", "bytes other than printable ASCII"),
        ("50 %", "two hexadecimal digits in upper case follow each `%`"),
        ("a%3a", "two hexadecimal digits in upper case"),
        (&"x".repeat(101), "more than 100 bytes"),
    ] {
        let refused = Subject::from_rendered(text).unwrap_err().to_string();
        assert!(refused.contains(mistake) && !refused.contains("zoë"), "{refused}");
    }
}

#[rate_limit(name = "any.caller", key = "{@user:lower|@ip}", rule(count = 3, per = "1h"), limiter = limiter)]
async fn by_any_caller(limiter: &Limiter) -> Result<(), Rejection> {
    let _ = limiter;
    Ok(())
}

#[tokio::test]
async fn a_value_of_alternatives_begins_with_the_name_of_one() {
    let server = Server::start();
    let limiter = connected(&patient().registry(true), &server.url()).await;
    let context = Context::new().with("user", "Zoë").with("ip", "192.0.2.1");
    scope(context, by_any_caller(&limiter)).await.unwrap();
    let listed = until_listed(&limiter, "any.caller", |_| true).await;
    assert_eq!(listed.placeholders().unwrap().iter().map(Placeholder::name).collect::<Vec<_>>(), ["@user|@ip"]);
    let rendered =
        |value: &str| listed.render(&limiter).value(value).build().map(|subjects| subjects.main().to_string());
    assert_eq!(rendered("user:ZOË").unwrap(), "user:zo%C3%AB");
    assert_eq!(rendered("ip:2001:db8:1:2::/64").unwrap(), "ip:2001%3Adb8%3A1%3A2%3A%3A%2F64");
    let policy = listed.policy().unwrap();
    let subjects = listed.render(&limiter).value("user:zoë").build().unwrap();
    let decision = subjects.check(&limiter, &policy).peek().report().await.unwrap();
    assert_eq!(decision.report()[0].remaining(), 2);
    let untagged = rendered("zoë").unwrap_err().to_string();
    assert!(untagged.ends_with("begins with the name of one of them; write `user:…` or `ip:…`"), "{untagged}");
    let unknown_network = rendered("ip:2001:db8:1:2::7").unwrap_err().to_string();
    assert!(unknown_network.contains("like 2001:db8:1:2::/64"), "{unknown_network}");
}
