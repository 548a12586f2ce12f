//! The scripts for windows alone. Their text depends on the number of rules, because a loop over the rules would take
//! longer.

/// The scripts before the number of rules is known.
const MANY: &str = include_str!(concat!(env!("OUT_DIR"), "/windows.lua"));
const ONE: &str = include_str!(concat!(env!("OUT_DIR"), "/windows_alone.lua"));
const TOGETHER: &str = include_str!(concat!(env!("OUT_DIR"), "/windows_together.lua"));

/// The words of a template for the position of a rule, and for the number of all rules.
const RULE: &str = "RULE";
const RULES: &str = "${RULES}";

/// Returns the text of `windows.lua`, which decides calls of policies that have this number of sliding windows and no
/// other rules.
#[must_use]
pub fn windows(rules: usize) -> String {
    expand(MANY, rules)
}

/// Returns the text of `windows_alone.lua`, which decides one call of such a policy.
#[must_use]
pub fn windows_alone(rules: usize) -> String {
    expand(ONE, rules)
}

/// Returns the text of `windows_together.lua`, which decides calls of several subjects that have at most this number of
/// sliding windows each, and no other rules.
#[must_use]
pub fn windows_together(rules: usize) -> String {
    expand(TOGETHER, rules)
}

/// Repeats the lines between `--- @each rule` and `--- @end`, and the text in `${EACH ...}`, for each rule, with the
/// position of the rule in place of `RULE`.
fn expand(template: &str, rules: usize) -> String {
    let copies = |text: &str| (0..rules).map(|rule| text.replace(RULE, &rule.to_string())).collect::<String>();
    let mut script = String::new();
    let mut block = None;
    for line in template.lines() {
        match line.trim_start() {
            "--- @each rule" => block = Some(String::new()),
            "--- @end" => script += &copies(&block.take().unwrap_or_default()),
            _ => {
                let line = with_lists(&line.replace(RULES, &rules.to_string()), copies) + "\n";
                *block.as_mut().unwrap_or(&mut script) += &line;
            }
        }
    }
    script
}

/// Repeats the text in each `${EACH ...}` of a line.
fn with_lists(line: &str, copies: impl Fn(&str) -> String) -> String {
    let mut pieces = line.split("${EACH ");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |line, piece| match piece.split_once('}') {
        Some((item, rest)) => line + &copies(item) + rest,
        None => line + piece,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MAX_PLAIN_RULES, MAX_TOGETHER_RULES};

    #[test]
    fn each_rule_has_its_lines_and_its_locals() {
        for script in [windows(2), windows_alone(2), windows_together(2)] {
            assert!(script.contains("local back_0, span_0, back_1, span_1, "));
            assert!(script.contains("unpack('>I5I7I5I7"));
            assert_eq!(script.matches("if size > back_0 then").count(), 1);
            assert_eq!(script.matches("if size > back_1 then").count(), 1);
            assert!(script.contains(" and -1 or 2 - 1 do"));
        }
    }

    #[test]
    fn nothing_of_the_template_is_left() {
        let scripts = (1..=MAX_PLAIN_RULES).flat_map(|rules| [windows(rules), windows_alone(rules)]);
        for script in scripts.chain((1..=MAX_TOGETHER_RULES).map(windows_together)) {
            let code: String = script
                .lines()
                .filter(|line| !line.trim_start().starts_with("-- "))
                .skip_while(|line| !line.contains("]]"))
                .collect();
            assert!(!code.contains(RULE) && !code.contains("${") && !code.contains("--- @"), "{code}");
        }
    }
}
