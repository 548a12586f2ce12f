//! Numbers, as people read them.

use indicatif::HumanCount;
use tallygate_rules::CALLS;

/// Returns a number with its thousands apart: `9,214`.
pub(crate) fn grouped(number: u64) -> String {
    HumanCount(number).to_string()
}

/// Reads a number that is at least 1.
pub(crate) fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("nothing would be shown; write 1 or more, like 20".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}; write a number, like 20")),
    }
}

/// Reads what a call costs, like `3` for calls, or `tokens=500`. Returns the unit and the amount.
pub(crate) fn cost(text: &str) -> Result<(String, u64), String> {
    let (unit, amount) = text.split_once('=').unwrap_or((CALLS, text));
    let read =
        amount.parse().map_err(|error| format!("{error}; write a number, like 3, or a unit with one, like tokens=500"));
    Ok((unit.to_owned(), read?))
}

/// Returns a number of things: `1 call`, `9,214 calls`.
pub(crate) fn counted(number: u64, singular: &str) -> String {
    let plural = match singular.strip_suffix('y') {
        _ if number == 1 => singular.to_owned(),
        Some(stem) => format!("{stem}ies"),
        None => format!("{singular}s"),
    };
    format!("{} {plural}", grouped(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        let shown = [0, 999, 1_000, 12_345, 1_234_567].map(grouped);
        assert_eq!(shown, ["0", "999", "1,000", "12,345", "1,234,567"]);
    }

    #[test]
    fn one_thing_is_singular() {
        let shown = [counted(1, "policy"), counted(2, "policy"), counted(1, "call"), counted(0, "call")];
        assert_eq!(shown, ["1 policy", "2 policies", "1 call", "0 calls"]);
    }
}
