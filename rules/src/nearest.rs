//! Suggestions for misspelt words.

/// Returns the known word that is most similar to `word`, if one is similar enough to be what was meant.
///
/// A third of the letters may differ, and one letter of a short word. Letter case is ignored.
///
/// # Examples
///
/// ```
/// assert_eq!(tallygate_rules::nearest("dayly", ["hourly", "daily"]), Some("daily"));
/// assert_eq!(tallygate_rules::nearest("weekly", ["hourly", "daily"]), None);
/// ```
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = (word.chars().count() / 3).max(1);
    let similar = known.into_iter().filter_map(|candidate| Some((edits_up_to(most, word, candidate)?, candidate)));
    similar.min_by_key(|&(edits, _)| edits).map(|(_, candidate)| candidate)
}

/// Returns the number of [edits](edits) if there are at most so many.
pub(crate) fn edits_up_to(most: usize, one: &str, other: &str) -> Option<usize> {
    // Words of very different lengths are not worth comparing letter by letter.
    let lengths = one.chars().count().abs_diff(other.chars().count());
    (lengths <= most).then(|| edits(one, other)).filter(|&edits| edits <= most)
}

/// Returns how many letters must be inserted, removed, replaced or swapped with their neighbour to turn one word into
/// the other, ignoring letter case: the optimal string alignment distance.
fn edits(one: &str, other: &str) -> usize {
    let one: Vec<char> = one.chars().flat_map(char::to_lowercase).collect();
    let other: Vec<char> = other.chars().flat_map(char::to_lowercase).collect();
    // `row[column]`: the distance between the first `row` letters of `one` and the first `column` letters of `other`.
    let mut rows = vec![vec![0; other.len() + 1]; one.len() + 1];
    for row in 0..=one.len() {
        for column in 0..=other.len() {
            rows[row][column] = if row == 0 || column == 0 {
                row.max(column)
            } else {
                let differs = usize::from(one[row - 1] != other[column - 1]);
                let replaced = rows[row - 1][column - 1] + differs;
                let edited = replaced.min(rows[row - 1][column] + 1).min(rows[row][column - 1] + 1);
                let swapped =
                    row > 1 && column > 1 && one[row - 1] == other[column - 2] && one[row - 2] == other[column - 1];
                if swapped { edited.min(rows[row - 2][column - 2] + 1) } else { edited }
            };
        }
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_slip_is_one_edit() {
        for slip in ["brst", "bursts", "bunst", "busrt"] {
            assert_eq!(edits(slip, "burst"), 1, "{slip}");
        }
        assert_eq!(edits("BURST", "burst"), 0);
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
    }

    #[test]
    fn the_most_similar_word_is_suggested() {
        assert_eq!(nearest("inital", ["burst", "initial"]), Some("initial"));
        assert_eq!(nearest("bunst", ["hunt", "burst"]), Some("burst"));
        assert_eq!(nearest("pre", ["rule", "per"]), Some("per"));
    }

    #[test]
    fn a_word_like_no_other_suggests_nothing() {
        assert_eq!(nearest("window", ["per", "count"]), None);
        assert_eq!(nearest("x", []), None);
    }
}
