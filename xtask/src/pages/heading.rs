//! The anchors that GitHub makes of headings.

/// The anchor of a heading: in lower case, with hyphens for spaces, without punctuation.
pub(super) fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// The anchors of the headings of a page: one that there was before gets a number.
pub(super) fn anchors(headings: &[String]) -> Vec<String> {
    let plain: Vec<_> = headings.iter().map(|heading| anchor(heading)).collect();
    let numbered = |(at, name): (usize, &String)| match plain[..at].iter().filter(|earlier| *earlier == name).count() {
        0 => name.clone(),
        earlier => format!("{name}-{earlier}"),
    };
    plain.iter().enumerate().map(numbered).collect()
}

#[test]
fn anchors_are_those_of_github() {
    let headings =
        ["RuoYi's `@RateLimiter`", "Rules", "用于 Web 服务", "规则集中定义，与手动检查", "Rules", "on_outage"];
    let headings = headings.map(|heading| heading.replace('`', ""));
    let expected = ["ruoyis-ratelimiter", "rules", "用于-web-服务", "规则集中定义与手动检查", "rules-1", "on_outage"];
    assert_eq!(anchors(&headings), expected);
}
