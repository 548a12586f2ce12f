use super::*;

/// Shows the parts of a template, placeholders in brackets.
fn parts_for(purpose: Purpose, template: &str) -> Result<Vec<String>, Vec<String>> {
    let show = |part| match part {
        Part::Text(text) => text,
        Part::Value(Placeholder { root, members, filters, .. }) => {
            format!("[{root}{}{}]", ".".repeat(members.len()), ":".repeat(filters.len()))
        }
        Part::Told(told) => format!("@{}", told as u8),
    };
    Ok(read(template, purpose)?.into_iter().map(show).collect())
}

fn parts(template: &str) -> Result<Vec<String>, Vec<String>> {
    parts_for(Purpose::Key, template)
}

#[test]
fn text_and_placeholders_come_in_their_order() {
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
fn what_a_rejection_knows_is_for_messages() {
    let template = "{@retry_after}{@count}{ @per }{@rule}";
    assert_eq!(parts_for(Purpose::Message, template).unwrap(), ["@0", "@1", "@2", "@3"]);
    assert_eq!(parts(template).unwrap_err().len(), 4);
    assert_eq!(parts_for(Purpose::BanMessage, template).unwrap_err().len(), 3);
    assert_eq!(parts_for(Purpose::BanMessage, "{@retry_after}").unwrap(), ["@0"]);
    for mistaken in ["{@}", "{@ip}", "{@rule:lower}", "{@ retry}"] {
        assert!(parts_for(Purpose::Message, mistaken).is_err(), "{mistaken}");
    }
}

#[test]
fn every_mistake_of_a_template_is_found() {
    assert_eq!(parts("{a b}{c:d}{@ip}{e}").unwrap_err().len(), 3);
}

#[test]
fn an_identifier_may_be_raw_or_of_any_script() {
    assert_eq!(parts("{r#type}{type}{größe}{self}").unwrap(), ["[type]", "[type]", "[größe]", "[self]"]);
}

#[test]
fn text_is_escaped_so_that_it_is_never_taken_for_an_escape_or_a_digest() {
    assert_eq!(escape("a:/ {b}"), "a:/ {b}");
    assert_eq!(escape("%!é\n\u{7f}"), "%25%21%C3%A9%0A%7F");
}

#[test]
fn only_what_no_value_contains_keeps_values_apart() {
    for text in [":", "/", "-:", " ", "{", "a=b", "é:"] {
        assert!(keeps_apart(text), "{text}");
    }
    for text in ["", "a", "0", ".", "_", "@", "+", "~", "-", "%", "!", "é", "\n"] {
        assert!(!keeps_apart(text), "{text}");
    }
}
