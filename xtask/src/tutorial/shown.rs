//! Whether a text is what a page shows, where `…` stands for anything in one line or, alone, for any lines.

/// How a text differs from what is shown.
#[derive(Debug, PartialEq)]
pub(super) enum Difference {
    /// It ends too early: more may come.
    Less,
    /// It goes on behind what is shown.
    More,
    /// Another line stands where this one is shown, counted from 0.
    Other(usize),
}

/// Compares lines but for spaces at their ends.
pub(super) fn compare(shown: &[impl AsRef<str>], printed: &[&str]) -> Result<(), Difference> {
    let mut printed = printed.iter().map(|line| line.trim_end());
    let mut shown = shown.iter().map(|line| line.as_ref().trim_end()).enumerate();
    while let Some((at, line)) = shown.next() {
        if line == "…" {
            let Some((_, next)) = shown.next() else { return Ok(()) };
            printed.find(|other| is_line(next, other)).ok_or(Difference::Less)?;
        } else if !is_line(line, printed.next().ok_or(Difference::Less)?) {
            return Err(Difference::Other(at));
        }
    }
    printed.next().map_or(Ok(()), |_| Err(Difference::More))
}

fn is_line(shown: &str, printed: &str) -> bool {
    let Some((start, rest)) = shown.split_once('…') else { return shown == printed };
    let Some(after) = printed.strip_prefix(start) else { return false };
    let mut ends = after.char_indices().map(|(at, _)| at).chain([after.len()]);
    ends.any(|at| is_line(rest, &after[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(shown: &str, printed: &str) -> Option<Difference> {
        let lines = |text| str::lines(text).collect::<Vec<_>>();
        compare(&lines(shown), &lines(printed)).err()
    }

    #[test]
    fn dots_stand_for_anything_in_a_line_and_for_lines() {
        let printed = "a\r\nb 7 c \nd\n";
        for same in ["a\nb 7 c\nd", "…", "a\n…", "…\nd", "a\nb … c\nd", "a\nb…c\n…", "…a\n…7…\nd…", "…\na\n…\nd"]
        {
            assert_eq!(difference(same, printed), None, "{same}");
        }
        for other in ["a\nb … d\nd", "…\nb…", "…\ne", "a\nd", "a\nb…\nd\ne"] {
            assert!(difference(other, printed).is_some(), "{other}");
        }
        assert_eq!(difference("", ""), None);
        assert_eq!(difference("…", ""), None);
    }

    #[test]
    fn a_difference_is_found_where_it_begins() {
        assert_eq!(difference("a\nb\nc", "a\nx\nc"), Some(Difference::Other(1)));
        assert_eq!(difference("…\nb\nc", "a\na\nb\nx"), Some(Difference::Other(2)));
        assert_eq!(difference("a…d\ne", "abc\ne"), Some(Difference::Other(0)));
        assert_eq!(difference("a", "a\nb"), Some(Difference::More));
        assert_eq!(difference("", "a"), Some(Difference::More));
        assert_eq!(difference("a\nb", "a"), Some(Difference::Less));
        assert_eq!(difference("…\nb", "a\nc"), Some(Difference::Less));
    }
}
