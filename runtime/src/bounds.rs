//! Bounds on what is read from others, and how it is shown.
//!
//! Whoever may write to the server or to a file chooses how much is there and what it says. Values that are longer than
//! any process writes are not read to the end, and no text of others controls a log or a terminal.

use std::borrow::Cow;

/// The most overrides of one limiter, including those for single subjects.
pub(crate) const MOST_OVERRIDES: usize = 10_000;

pub(crate) const OVERRIDE_BYTES: usize = 8 * 1024;

/// The most bytes of all overrides, with the names of their policies and subjects.
pub(crate) const ALL_OVERRIDES_BYTES: usize = 8 << 20;

/// The most policies in the registry of a prefix, and in a file.
pub(crate) const MOST_POLICIES: usize = 1_000;

/// The most mistakes of a file, and the most names, in one entry of the log.
const MOST_SHOWN: usize = 10;

/// The greatest length of a file of policies.
pub(crate) const FILE_BYTES: usize = 4 << 20;

pub(crate) const MOST_MISTAKES: usize = 1_000;

/// The most unknown names for which the likely meant name is searched: each is compared with all known names.
pub(crate) const MOST_SUGGESTIONS: usize = 32;

/// The most texts of one list in a file, and the most paths in the whole file: each path is compared with all others.
pub(crate) const MOST_TEXTS: usize = 256;
pub(crate) const MOST_PATHS: usize = 4_096;

/// The greatest length of a key in a file: each of its values is compared with all others.
pub(crate) const KEY_BYTES: usize = 4 * 1024;

/// The greatest length of a policy's name in a file. The name is in the head of responses.
pub(crate) const POLICY_NAME_BYTES: usize = 256;

/// The greatest length of a plan's name in a file. The list of policies in Redis has it.
pub(crate) const PLAN_NAME_BYTES: usize = 128;

pub(crate) const DESCRIPTION_BYTES: usize = 4 * 1024;

/// The greatest length of an error's text.
const MESSAGE_BYTES: usize = 2 * 1024;

/// The greatest length of a name or a text of others within a message.
pub(crate) const WORD_BYTES: usize = 256;

/// Returns the first lines of a text in which each line is a mistake, and how many more there are.
pub(crate) fn shown_mistakes(text: &str) -> Cow<'_, str> {
    let Some((rest, _)) = text.match_indices('\n').nth(MOST_SHOWN - 1) else { return text.into() };
    let (first, more) =
        (text.get(..rest).unwrap_or_default(), text.get(rest..).unwrap_or_default().lines().skip(1).count());
    format!("{first}\nand {more} more").into()
}

/// Returns the first of these names, and how many more there are.
pub(crate) fn shown_names(names: &[impl AsRef<str>]) -> String {
    let first: Vec<_> = names.iter().take(MOST_SHOWN).map(|name| format!("`{}`", shown_word(name.as_ref()))).collect();
    match names.len().saturating_sub(MOST_SHOWN) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// Returns the text of an error as it may be shown.
pub(crate) fn shown_message(text: Cow<'static, str>) -> Cow<'static, str> {
    match shown(&text, MESSAGE_BYTES) {
        Cow::Borrowed(_) => text,
        Cow::Owned(shown) => shown.into(),
    }
}

/// Returns a name, or another text of others, as it may be shown within a message.
pub(crate) fn shown_word(text: &str) -> Cow<'_, str> {
    shown(text, WORD_BYTES)
}

/// Returns a text of others as a log or a terminal may show it. It is cut at the greatest length. Characters that are
/// not visible, or that change how others are shown, are escaped.
fn shown(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most && !text.chars().any(is_unseen) {
        return text.into();
    }
    let mut shown = String::new();
    for character in text.chars() {
        if shown.len() >= most {
            shown.push('…');
            break;
        }
        if is_unseen(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown.into()
}

/// Whether a character is not visible: a control character, or one that changes the order or the shape of others.
pub(crate) fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_lists_the_bounds() {
        let page = include_str!("../guide/limitations.md");
        for bound in [
            format!("{},000, and 8 MiB with", MOST_OVERRIDES / 1_000),
            format!("{} KiB, and {} rules", OVERRIDE_BYTES / 1_024, tallygate_rules::MAX_RULES),
            format!("each with a description of {} KiB", DESCRIPTION_BYTES / 1_024),
            format!("{} bytes, in code and in files", tallygate_rules::MAX_NAME_BYTES),
            format!("{} KiB, and {WORD_BYTES} bytes; the password", MESSAGE_BYTES / 1_024),
        ] {
            assert!(page.contains(&bound), "{bound}");
        }
    }

    #[test]
    fn of_many_mistakes_and_names_the_first_are_shown_and_how_many_more_there_are() {
        let lines = |number: usize| (1..=number).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
        assert_eq!(shown_mistakes(&lines(10)), lines(10));
        assert_eq!(shown_mistakes(&lines(1_000)), format!("{}\nand 990 more", lines(10)));
        assert_eq!(shown_names(&["a", "b"]), "`a`, `b`");
        assert_eq!(shown_names(&["a"; 1_000]), format!("{} and 990 more", ["`a`"; 10].join(", ")));
        assert!(shown_names(&["x".repeat(9_000)]).len() < 2 * WORD_BYTES);
    }

    #[test]
    fn what_is_shown_is_cut_and_controls_nothing() {
        assert_eq!(shown_word("sms.send 每天"), "sms.send 每天");
        assert_eq!(shown_word("a\u{1b}[2J\nb\u{202e}c\u{9b}"), r"a\u{1b}[2J\nb\u{202e}c\u{9b}");
        let long = shown_message("é".repeat(MESSAGE_BYTES).into());
        assert!(long.len() <= MESSAGE_BYTES + '…'.len_utf8() && long.ends_with("é…"), "{}", long.len());
        assert!(matches!(shown_message("short".into()), Cow::Borrowed("short")));
    }
}
