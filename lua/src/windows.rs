//! The scripts for windows alone. Their text depends on the numbers of rules and of subjects, because loops over them would
//! take longer.

use std::ops::Range;

/// The scripts before the number of rules is known.
const MANY: &str = include_str!(concat!(env!("OUT_DIR"), "/windows.lua"));
const ONE: &str = include_str!(concat!(env!("OUT_DIR"), "/windows_alone.lua"));
const TOGETHER: &str = include_str!(concat!(env!("OUT_DIR"), "/windows_together.lua"));

/// The words of a template for the position of a rule and of a subject, and for their numbers.
const RULE: &str = "RULE";
const SUBJECT: &str = "SUBJECT";
const FIRST_RULE: &str = "${FIRST_RULE}";
const LAST_RULE: &str = "${LAST_RULE}";
const SUBJECTS: &str = "${SUBJECTS}";

/// Returns the text of `windows.lua`, which decides calls of policies that have this number of sliding windows and no
/// other rules.
#[must_use]
pub fn windows(rules: usize) -> String {
    with_rules(MANY, 0..rules)
}

/// Returns the text of `windows_alone.lua`, which decides one call of such a policy.
#[must_use]
pub fn windows_alone(rules: usize) -> String {
    with_rules(ONE, 0..rules)
}

/// Returns the text of `windows_together.lua`, which decides calls of this number of subjects that have at most this
/// number of sliding windows each, and no other rules.
#[must_use]
pub fn windows_together(subjects: usize, rules: usize) -> String {
    let text = TOGETHER.replace(SUBJECTS, &subjects.to_string());
    let text = with_lists(&text, "${EACH_SUBJECT ", |item| numbered(item, SUBJECT, 0..subjects));
    let mut pieces = text.split("--- @each subject\n");
    let mut script = with_rules(pieces.next().unwrap_or_default(), 0..subjects * rules);
    for piece in pieces {
        let (each, rest) = piece.split_once("--- @end subject\n").unwrap_or((piece, ""));
        for subject in 0..subjects {
            let text = each.replace(SUBJECT, &subject.to_string());
            script += &with_rules(&text, subject * rules..(subject + 1) * rules);
        }
        script += &with_rules(rest, 0..subjects * rules);
    }
    script
}

/// Repeats the lines between `--- @each rule` and `--- @end`, and the text in `${EACH ...}`, for each of these rules, with
/// the position of the rule in place of `RULE`.
fn with_rules(template: &str, rules: Range<usize>) -> String {
    let template = template.replace(FIRST_RULE, &rules.start.to_string());
    let template = template.replace(LAST_RULE, &rules.end.saturating_sub(1).to_string());
    let template = with_lists(&template, "${EACH ", |item| numbered(item, RULE, rules.clone()));
    let mut script = String::new();
    let mut block = None;
    for line in template.lines() {
        match line.trim_start() {
            "--- @each rule" => block = Some(String::new()),
            "--- @end" => script += &numbered(&block.take().unwrap_or_default(), RULE, rules.clone()),
            // What stands before a directive.
            "" if !line.is_empty() => {}
            _ => block.as_mut().unwrap_or(&mut script).extend([line, "\n"]),
        }
    }
    script
}

/// Repeats a text for each of these positions, in place of that word.
fn numbered(text: &str, word: &str, positions: Range<usize>) -> String {
    positions.map(|position| text.replace(word, &position.to_string())).collect()
}

/// Repeats the text in each list that begins so.
fn with_lists(text: &str, begin: &str, repeated: impl Fn(&str) -> String) -> String {
    let mut pieces = text.split(begin);
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| match piece.split_once('}') {
        Some((item, rest)) => text + &repeated(item) + rest,
        None => text + piece,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MAX_PLAIN_RULES, MAX_TOGETHER_SUBJECTS, max_together_rules};

    #[test]
    fn each_rule_has_its_lines_and_its_locals() {
        for script in [windows(2), windows_alone(2), windows_together(1, 2)] {
            assert!(script.contains("local back_0, span_0, back_1, span_1, "));
            assert!(script.contains("unpack('>I5I7I5I7"));
            assert_eq!(script.matches("if size > back_0 then").count(), 1);
            assert_eq!(script.matches("if size > back_1 then").count(), 1);
            assert!(script.contains("for rule = 0, (is_decided or fault) and -1 or 1 do"));
        }
    }

    #[test]
    fn the_rules_of_several_subjects_are_counted_across_them() {
        let script = windows_together(2, 2);
        assert!(script.contains("back_3, span_3, reach_0, most_0, weight_0, reach_1, "));
        let second = script.split_once("local name_1 = ").unwrap().1;
        assert!(!second.contains("if size > back_1 then") && second.contains("if size > back_2 then"));
        assert!(second.contains("for rule = 2, (is_decided or fault) and -1 or 3 do"));
    }

    #[test]
    fn nothing_of_the_template_is_left() {
        let scripts = (1..=MAX_PLAIN_RULES).flat_map(|rules| [windows(rules), windows_alone(rules)]);
        let together =
            |subjects| (1..=max_together_rules(subjects)).map(move |rules| windows_together(subjects, rules));
        for script in scripts.chain((2..=MAX_TOGETHER_SUBJECTS).flat_map(together)) {
            let code: String = script
                .lines()
                .filter(|line| !line.trim_start().starts_with("-- "))
                .skip_while(|line| !line.contains("]]"))
                .collect();
            let words = [RULE, SUBJECT, "${", "--- @"];
            assert!(words.iter().all(|word| !code.contains(word)), "{code}");
        }
    }
}
