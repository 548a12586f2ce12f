//! Numbers as a server reads and writes them.

use super::flavour::Flavour;

/// Reads an integer as a server does: digits, maybe behind a minus, and nothing else.
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_plain = digits.first().is_some_and(u8::is_ascii_digit) && (digits[0] != b'0' || text == b"0");
    if !is_plain {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Reads a number with a fraction.
pub(crate) fn float(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let number: f64 = text.parse().ok()?;
    let is_too_large = number.is_infinite() && text.contains(|letter: char| letter.is_ascii_digit());
    (!number.is_nan() && !is_too_large).then_some(number)
}

/// Writes a number so that it is the same when it is read again.
pub(crate) fn precise(flavour: Flavour, number: f64) -> String {
    const LARGEST: f64 = 4_611_686_018_427_387_904.0;
    let is_small = if flavour == Flavour::Valkey9 { number.abs() <= LARGEST } else { number.abs() < 1e17 };
    let is_negative_zero = number == 0.0 && number.is_sign_negative();
    if number.fract() == 0.0 && is_small && !is_negative_zero {
        #[allow(clippy::cast_possible_truncation, reason = "the number is an integer of that size")]
        return (number as i64).to_string();
    }
    if flavour == Flavour::Valkey9 { shortest(number) } else { seventeen_digits(number) }
}

/// Writes a number as C's `%.17g` does.
pub(crate) fn seventeen_digits(number: f64) -> String {
    const DIGITS: i32 = 17;
    let Some(decimal) = Decimal::of(number, &format!("{number:.16e}")) else { return not_finite(number) };
    if (-4..DIGITS).contains(&decimal.exponent) { decimal.plain() } else { decimal.scientific(2) }
}

/// Writes a number with as few digits as tell it from others.
fn shortest(number: f64) -> String {
    let Some(decimal) = Decimal::of(number, &format!("{number:e}")) else { return not_finite(number) };
    let digits = i32::try_from(decimal.digits.len()).unwrap_or(i32::MAX);
    let behind = decimal.exponent - (digits - 1);
    let is_plain = if behind >= 0 { decimal.exponent < digits + 7 } else { behind > -7 || decimal.exponent.abs() < 4 };
    if is_plain { decimal.plain() } else { decimal.scientific(1) }
}

fn not_finite(number: f64) -> String {
    let text = if number.is_nan() { "nan" } else { "inf" };
    if number.is_sign_negative() { format!("-{text}") } else { text.to_owned() }
}

/// A number by its digits, of which the first stands before the point.
struct Decimal {
    is_negative: bool,
    digits: String,
    exponent: i32,
}

impl Decimal {
    /// Takes apart what Rust writes; `None` for what is not finite.
    fn of(number: f64, text: &str) -> Option<Self> {
        let (digits, exponent) = text.split_once('e')?;
        let mut digits = digits.replace(['-', '.'], "");
        digits.truncate(digits.trim_end_matches('0').len().max(1));
        Some(Self { is_negative: number.is_sign_negative(), digits, exponent: exponent.parse().ok()? })
    }

    fn sign(&self) -> &'static str {
        if self.is_negative { "-" } else { "" }
    }

    fn plain(&self) -> String {
        let (sign, digits) = (self.sign(), &self.digits);
        match usize::try_from(self.exponent) {
            Ok(exponent) if digits.len() > exponent + 1 => {
                format!("{sign}{}.{}", &digits[..=exponent], &digits[exponent + 1..])
            }
            Ok(exponent) => format!("{sign}{digits}{}", "0".repeat(exponent + 1 - digits.len())),
            Err(_) => {
                let zeros = usize::try_from(-self.exponent - 1).unwrap_or_default();
                format!("{sign}0.{}{digits}", "0".repeat(zeros))
            }
        }
    }

    fn scientific(&self, width: usize) -> String {
        let (first, rest) = self.digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let sign = if self.exponent < 0 { '-' } else { '+' };
        format!("{}{first}{point}{rest}e{sign}{:0width$}", self.sign(), self.exponent.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_in_c() {
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1e15, "1000000000000000"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (0.1, "0.10000000000000001"),
            (-1.0 / 3.0, "-0.33333333333333331"),
            (1e-5, "1.0000000000000001e-05"),
            (12.5, "12.5"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(seventeen_digits(number), text);
        }
        for (number, text) in [(0.1, "0.1"), (1e-7, "1e-7"), (12.5, "12.5"), (1e100, "1e+100"), (120.0, "120")] {
            assert_eq!(shortest(number), text);
        }
    }

    #[test]
    fn numbers_are_read_strictly() {
        for text in ["", "-", "+1", "01", " 1", "1 ", "1.0", "-0", "9223372036854775808"] {
            assert_eq!(integer(text.as_bytes()), None, "{text}");
        }
        assert_eq!(integer(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(float(b"1e400"), None);
        assert_eq!(float(b"nan"), None);
        assert_eq!(float(b"-inf"), Some(f64::NEG_INFINITY));
    }
}
