use super::*;

/// Returns the parts of a template as texts, with placeholders in brackets.
fn parts_for(template_use: TemplateUse, template: &str) -> Result<Vec<String>, Vec<String>> {
    let show = |part| match part {
        TextPart::Text(text) => text,
        TextPart::Value(TemplateValue { root, source, members, filters, .. }) => {
            let at = if source == Source::Context { "@" } else { "" };
            format!("[{at}{root}{}{}]", ".".repeat(members.len()), ":".repeat(filters.len()))
        }
        TextPart::Rejection(field) => format!("@{}", field as u8),
    };
    Ok(read(template, template_use)?.into_iter().map(show).collect())
}

fn parts(template: &str) -> Result<Vec<String>, Vec<String>> {
    parts_for(TemplateUse::Key, template)
}

#[test]
fn text_and_placeholders_keep_their_order() {
    assert_eq!(parts("sms:{phone}").unwrap(), ["sms:", "[phone]"]);
    assert_eq!(parts("{a}:{b.c.0}/{ d.e() }").unwrap(), ["[a]", ":", "[b..]", "/", "[d.]"]);
    assert_eq!(parts("").unwrap(), [""; 0]);
}

#[test]
fn doubled_braces_are_braces() {
    assert_eq!(parts("{{a}}").unwrap(), ["{a}"]);
    assert_eq!(parts("{{{a}}}").unwrap(), ["{", "[a]", "}"]);
    assert_eq!(parts("}}{{").unwrap(), ["}{"]);
}

#[test]
fn single_braces_are_refused() {
    for mistaken in ["{", "}", "a{b", "a}b", "{a}}", "{{a}", "{a{b}}"] {
        assert!(parts(mistaken).is_err(), "{mistaken}");
    }
}

#[test]
fn only_arguments_fields_and_methods_are_placeholders() {
    for mistaken in [
        "",
        " ",
        ".",
        "a.",
        ".a",
        "a..b",
        "1",
        "a b",
        "a+b",
        "a()",
        "a.b(c)",
        "a[0]",
        "a::b",
        "_",
        "a._",
        "a.self",
        "a.super()",
        "a.+1",
        "a.1b",
        "a.()",
        "&a",
        "*a",
        "a:?",
    ] {
        assert!(parts(&format!("{{{mistaken}}}")).is_err(), "{mistaken}");
    }
}

#[test]
fn filters_follow_the_value() {
    assert_eq!(parts("{a:lower}{ b.c : trim : lower }{d:hash}{e:subnet}").unwrap(), ["[a:]", "[b.::]", "[d:]", "[e:]"]);
    for mistaken in ["{a:}", "{:lower}", "{a::lower}", "{a:Lower}", "{a:lower()}"] {
        assert!(parts(mistaken).is_err(), "{mistaken}");
    }
}

#[test]
fn a_filter_comes_once_and_not_after_one_that_hides_the_value() {
    for sound in ["{a:trim:lower}", "{a:lower:trim:hash}", "{a:trim:subnet:hash}", "{a:lower:hash}"] {
        assert!(parts(sound).is_ok(), "{sound}");
    }
    for (mistaken, meant) in [
        ("{a:hash:lower}", "{a:lower:hash}"),
        ("{a:hash:subnet:trim}", "{a:trim:subnet:hash}"),
        ("{a:subnet:lower}", "{a:lower:subnet}"),
        ("{a.b() : trim : trim}", "{a.b():trim}"),
        ("{a:hash:hash}", "{a:hash}"),
    ] {
        let found = parts(mistaken).unwrap_err();
        assert!(found[0].ends_with(&format!("write `{meant}`")), "{found:?}");
    }
}

#[test]
fn messages_show_the_fields_of_a_rejection() {
    let template = "{@retry_after}{@count}{ @per }{@rule}{@unit}";
    assert_eq!(parts_for(TemplateUse::Message, template).unwrap(), ["@0", "@1", "@2", "@3", "@4"]);
    assert_eq!(parts(template).unwrap_err().len(), 5);
    assert_eq!(parts_for(TemplateUse::BanMessage, template).unwrap_err().len(), 4);
    assert_eq!(parts_for(TemplateUse::BanMessage, "{@retry_after}").unwrap(), ["@0"]);
    for mistaken in ["{@}", "{@rule:lower}", "{@ retry after}", "{@retry_afetr}", "{@counts}"] {
        assert!(parts_for(TemplateUse::Message, mistaken).is_err(), "{mistaken}");
    }
}

#[test]
fn other_names_behind_an_at_are_values_of_the_context() {
    for template_use in [TemplateUse::Key, TemplateUse::Message, TemplateUse::BanMessage] {
        assert_eq!(parts_for(template_use, "{@ip}:{ @user : trim:lower }").unwrap(), ["[@ip]", ":", "[@user::]"]);
        assert_eq!(parts_for(template_use, "{@role}/{@größe}").unwrap(), ["[@role]", "/", "[@größe]"]);
        for mistaken in ["{@}", "{@user.id}", "{@user()}", "{@1st}", "{@a b}", "{@ip:hash:lower}", "{@r#type}"] {
            assert!(parts_for(template_use, mistaken).is_err(), "{mistaken}");
        }
    }
}

#[test]
fn alternatives_are_values_of_the_context_in_keys() {
    assert_eq!(parts("u/{@user:lower|@ip}").unwrap(), ["u/", "[@user|@ip]"]);
    for mistaken in
        ["{@user|ip}", "{ip|@user}", "{@user|}", "{@user|@user}", "{@user|@count}", "{@user|@ip:hash:lower}"]
    {
        assert!(parts(mistaken).is_err(), "{mistaken}");
    }
    assert!(parts_for(TemplateUse::Message, "{@user|@ip}").is_err());
}

#[test]
fn every_mistake_in_a_template_is_reported() {
    assert_eq!(parts("{a b}{c:d}{@i-p}{e}").unwrap_err().len(), 3);
}

#[test]
fn an_identifier_may_be_raw_or_of_any_script() {
    assert_eq!(parts("{r#type}{type}{größe}{self}").unwrap(), ["[type]", "[type]", "[größe]", "[self]"]);
}

#[test]
fn escaped_text_is_never_mistaken_for_an_escape_or_a_digest() {
    assert_eq!(escape("a:/ {b}"), "a:/ {b}");
    assert_eq!(escape("%!é\n\u{7f}"), "%25%21%C3%A9%0A%7F");
}
