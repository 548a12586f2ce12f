//! Patterns of keys: `*`, `?`, `[a-z]` and `\`.

/// Tells whether a text matches a pattern.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let Some((&first, rest)) = pattern.split_first() else { return text.is_empty() };
    match first {
        b'*' if rest.is_empty() => true,
        b'*' => (0..=text.len()).any(|begin| matches(rest, &text[begin..])),
        b'?' => !text.is_empty() && matches(rest, &text[1..]),
        b'[' => {
            let Some((&letter, behind)) = text.split_first() else { return false };
            let end = (1..rest.len()).find(|&at| rest[at] == b']' && rest[at - 1] != b'\\').unwrap_or(rest.len());
            is_in_set(&rest[..end], letter) && matches(rest.get(end + 1..).unwrap_or_default(), behind)
        }
        b'\\' if !rest.is_empty() => text.first() == Some(&rest[0]) && matches(&rest[1..], &text[1..]),
        letter => text.first() == Some(&letter) && matches(rest, &text[1..]),
    }
}

fn is_in_set(set: &[u8], letter: u8) -> bool {
    let (is_negated, mut set) = match set.split_first() {
        Some((b'^', rest)) => (true, rest),
        _ => (false, set),
    };
    let mut is_in = false;
    while let Some((&first, rest)) = set.split_first() {
        match (first, rest) {
            (b'\\', [escaped, rest @ ..]) => {
                is_in |= *escaped == letter;
                set = rest;
            }
            (_, [b'-', last, rest @ ..]) => {
                is_in |= (first.min(*last)..=first.max(*last)).contains(&letter);
                set = rest;
            }
            _ => {
                is_in |= first == letter;
                set = rest;
            }
        }
    }
    is_in != is_negated
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_those_of_keys_do() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("tallygate:*", "tallygate:p/w1m:s", true),
            ("tallygate:*", "tally", false),
            ("a?c", "abc", true),
            ("a[b-d]e", "ace", true),
            ("a[^b]c", "abc", false),
            (r"a\*c", "a*c", true),
            (r"a\*c", "abc", false),
            (r"\[x\]*", "[x]y", true),
            ("a[]", "a", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }
}
