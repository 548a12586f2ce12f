//! Which sets of features the library is linted with: few that say much.
//!
//! Each feature alone shows what it lacks. Beside these stands an orthogonal array of strength 3, the Hadamard matrix of order
//! 16 and its complement: 32 sets in which any three features occur in all eight combinations. So a feature, or two of them
//! together, that need what a third one brings are found without it.

/// As many features as the array has columns.
const MOST: usize = 16;

/// Returns the features of a manifest, without those that are on by default.
pub(crate) fn features(manifest: &str) -> Vec<&str> {
    let section = manifest.split_once("\n[features]\n").unwrap_or_default().1;
    let section = section.split("\n[").next().unwrap_or_default();
    let names = section.lines().filter_map(|line| Some(line.split_once(" = ")?.0));
    names.filter(|name| !name.starts_with(['#', ' ']) && *name != "default").collect()
}

/// Returns the sets, each as cargo takes it.
///
/// # Errors
///
/// There are more features than the array has columns.
pub(crate) fn sets(features: &[&str]) -> Result<Vec<String>, String> {
    if features.len() > MOST {
        return Err(format!("{} features; remedy: an array for more than {MOST} in feature_sets.rs", features.len()));
    }
    let alone = features.iter().map(|feature| (*feature).to_owned());
    let together = (0..2 * MOST).map(|row| {
        let chosen = features.iter().enumerate().filter(|(column, _)| is_chosen(row, *column));
        chosen.map(|(_, feature)| *feature).collect::<Vec<_>>().join(",")
    });
    Ok(together.chain(alone).collect())
}

/// One cell of the array: the parity of the bits that row and column share, inverted in the second half.
fn is_chosen(row: usize, column: usize) -> bool {
    let is_odd = ((row % MOST) & column).count_ones() % 2 == 1;
    is_odd != (row >= MOST)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn any_three_features_occur_in_all_combinations() {
        for (a, b, c) in (0..MOST).flat_map(|a| (0..a).flat_map(move |b| (0..b).map(move |c| (a, b, c)))) {
            let seen: HashSet<_> = (0..2 * MOST).map(|row| [a, b, c].map(|column| is_chosen(row, column))).collect();
            assert_eq!(seen.len(), 8, "{a} {b} {c}");
        }
    }

    #[test]
    fn none_all_and_each_one_are_among_the_sets() {
        let sets = sets(&["a", "b", "c"]).unwrap();
        for set in ["", "a,b,c", "a", "b", "c", "a,b", "b,c", "a,c"] {
            assert!(sets.iter().any(|known| known == set), "{set}");
        }
    }

    #[test]
    fn the_features_of_the_library_are_read_from_its_manifest() {
        let manifest = crate::step::read("runtime/Cargo.toml").unwrap();
        let features = features(&manifest);
        for known in ["redis", "web", "utoipa", "testing"] {
            assert!(features.contains(&known), "{known}");
        }
        assert!(!features.contains(&"default") && features.iter().all(|name| name.len() < 20));
        assert!(sets(&features).is_ok());
    }
}
