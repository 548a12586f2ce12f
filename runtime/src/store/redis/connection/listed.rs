//! Names in a text for operators, of which there may be too many.

use std::fmt;

/// The most that are shown.
const SHOWN: usize = 5;

/// Shows the first of them, and how many others there are.
pub(crate) struct Listed<'a, T>(pub(crate) &'a [T]);

impl<T: fmt::Display> fmt::Display for Listed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.0.iter().take(SHOWN).enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{name}")?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            others => write!(f, " and {others} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_names_are_counted() {
        let names = ["a", "b", "c", "d", "e", "f", "g"];
        let shown = [0, 1, 5, 7].map(|length| Listed(&names[..length]).to_string());
        assert_eq!(shown, ["", "a", "a, b, c, d, e", "a, b, c, d, e and 2 more"]);
    }
}
