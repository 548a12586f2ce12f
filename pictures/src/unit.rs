//! Numbers with their units, as Grafana writes them.

/// The unit of a panel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unit {
    PerSecond,
    Share,
    Seconds,
    Number,
}

impl Unit {
    /// Reads the name that it has in Grafana.
    pub(crate) fn read(name: &str) -> Result<Self, String> {
        match name {
            "reqps" => Ok(Self::PerSecond),
            "percentunit" => Ok(Self::Share),
            "s" => Ok(Self::Seconds),
            "none" => Ok(Self::Number),
            other => Err(format!("the unit `{other}` is not drawn")),
        }
    }

    pub(crate) fn write(self, value: f64) -> String {
        match self {
            Self::PerSecond => format!("{} req/s", short(value)),
            Self::Share => format!("{} %", short(value * 100.0)),
            Self::Seconds if value < 0.001 => format!("{} µs", short(value * 1_000_000.0)),
            Self::Seconds if value < 1.0 => format!("{} ms", short(value * 1_000.0)),
            Self::Seconds => format!("{} s", short(value)),
            Self::Number => short(value),
        }
    }
}

/// One digit behind the point, where it says something.
fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_unit_that_suits_them() {
        assert_eq!(Unit::PerSecond.write(12.34), "12.3 req/s");
        assert_eq!(Unit::Share.write(0.25), "25 %");
        assert_eq!([0.000_25, 0.0123, 2.0].map(|value| Unit::Seconds.write(value)), ["250 µs", "12.3 ms", "2 s"]);
        assert_eq!(Unit::Number.write(3.0), "3");
        assert!(Unit::read("furlong").is_err());
    }
}
