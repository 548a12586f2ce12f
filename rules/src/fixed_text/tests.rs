//! The fixed texts that are refused, and their errors.

use super::TemplateUse::{Key, Message};
use super::*;

/// Returns what a template was meant to contain, in a function with the arguments `phone`, `user` and `tenant`.
#[track_caller]
fn remedy(template_use: TemplateUse, template: &str) -> Option<String> {
    let is_argument = |name: &str| ["phone", "user", "tenant"].contains(&name);
    let mistake = template_use.check_fixed_text(template, is_argument).err()?;
    let (_, remedy) = mistake.split_once("; write `").expect(template);
    Some(remedy.split('`').next().unwrap_or_default().to_owned())
}

#[test]
fn a_value_of_the_context_without_braces_is_refused_in_a_key() {
    for (key, meant) in [
        ("@ip", "{@ip}"),
        ("login:@ip", "{@ip}"),
        ("{phone}:@ip", "{@ip}"),
        ("{phone}@ip", "{@ip}"),
        ("@anything", "{@anything}"),
        ("@phone", "{phone}"),
        ("ip", "{@ip}"),
        ("$ip", "{@ip}"),
        ("<ip>", "{@ip}"),
        ("{{ip}}", "{@ip}"),
        ("{{@ip:subnet}}", "{@ip}"),
        ("{phone}/{{ @anything }}", "{@anything}"),
    ] {
        assert_eq!(remedy(Key, key).as_deref(), Some(meant), "{key}");
    }
}

#[test]
fn an_argument_without_braces_is_refused_in_a_key() {
    for key in [
        "phone",
        "sms:phone",
        "sms.phone",
        "(phone)",
        "$phone",
        "#phone",
        ":phone",
        "<phone>",
        "[phone]",
        "%phone%",
        "/codes/:phone",
        "{tenant}:$phone",
        "{tenant}$phone",
        "{tenant}/:phone",
        "{tenant}:#phone",
        "{tenant}/<phone>",
        "{tenant}:[phone]",
        "{{phone}}",
        "{tenant}:{{phone}}",
        "{tenant}:{{ phone:lower }}",
    ] {
        assert_eq!(remedy(Key, key).as_deref(), Some("{phone}"), "{key}");
    }
    assert_eq!(remedy(Key, "order:user.id()").as_deref(), Some("{user.id()}"));
    assert_eq!(remedy(Key, "{{user.id}}:{phone}").as_deref(), Some("{user.id}"));
}

#[test]
fn what_stands_for_a_value_elsewhere_is_refused() {
    assert_eq!(remedy(Key, "*").as_deref(), Some("{*}"));
    assert_eq!(remedy(Key, "sms:*").as_deref(), Some("{*}"));
    for (template_use, template) in [(Key, "sms:%s"), (Key, "{phone}:%d"), (Message, "try again in %s, please")] {
        let mistake = template_use.check_fixed_text(template, |_| false).unwrap_err();
        assert!(mistake.contains("write what it stands for in braces, like `{@"), "{mistake}");
    }
}

#[test]
fn a_message_may_have_the_words_of_its_language() {
    for message in [
        "too many codes for this phone",
        "[phone] slow down, user",
        "phone:user #tenant <phone>",
        "ask @support, or mail a@phone",
        "100% of 5 %, 20%s",
        "{{ok}}",
        "costs $5",
    ] {
        assert_eq!(remedy(Message, message), None, "{message}");
    }
    for (message, meant) in [
        ("wait @retry_after", "{@retry_after}"),
        ("wait {{retry_after}}", "{@retry_after}"),
        ("wait {{@wait}}", "{@wait}"),
        ("no more codes for $phone", "{phone}"),
        ("no more codes for {{phone}}", "{phone}"),
    ] {
        assert_eq!(remedy(Message, message).as_deref(), Some(meant), "{message}");
    }
}

#[test]
fn a_name_shows_no_values() {
    let text = |name| TemplateUse::Name.check_fixed_text(name, |name| name == "phone").unwrap_err();
    let refused = "without braces is fixed text, so this `name` is the same for all calls";
    assert_eq!(
        text("sms.$phone"),
        format!("`$phone` {refused}; put `{{phone}}` into a `key`, as a `name` shows no values")
    );
    assert_eq!(text("@ip"), format!("`@ip` {refused}; put `{{@ip}}` into a `key`, as a `name` shows no values"));
    assert_eq!(text("sms.%s"), format!("`%s` {refused}; remove it"));
    for name in ["sms.phone", "phone", "user@host", "#phone", "ip"] {
        assert_eq!(TemplateUse::Name.check_fixed_text(name, |name| name == "phone"), Ok(()), "{name}");
    }
}

#[test]
fn fixed_text_that_names_no_value_is_a_key() {
    for key in [
        "all",
        "sms:all",
        "user sign-up/{{x}}",
        "phone:{phone}",
        "{phone}:user",
        "{phone}#user",
        "{tenant}::user",
        "{{{tenant}}}",
        "{phone}@example",
        "a@b",
        "sms_phone",
        "100%",
        "<all>",
        "{phone",
        "",
    ] {
        let shows_user = key.contains("sign-up");
        let is_argument = |name: &str| ["phone", "tenant"].contains(&name) || (name == "user" && !shows_user);
        assert_eq!(Key.check_fixed_text(key, is_argument), Ok(()), "{key}");
    }
}

#[test]
fn the_error_says_what_the_text_does_and_what_to_write() {
    let text = |key| Key.check_fixed_text(key, |name| name == "tenant").unwrap_err();
    assert_eq!(
        text("@ip"),
        "`@ip` without braces is fixed text, so this `key` is the same for all calls; write `{@ip}`"
    );
    assert_eq!(
        text("{{tenant}}:{@ip}"),
        "`{{tenant}}` in double braces is fixed text, so all its values share one tally; write `{tenant}`, or \
         `{{{tenant}}}` for the value in braces"
    );
    assert_eq!(
        text("tenant"),
        "`tenant` without braces is fixed text, so this `key` is the same for all calls; write `{tenant}`, or a text \
         that names no argument"
    );
}
