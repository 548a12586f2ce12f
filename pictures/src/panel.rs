//! One panel of the dashboard.

use serde::Deserialize;

use crate::canvas::{Anchor, Canvas};

/// The values of one series: one for each step, or none.
#[derive(Clone, Deserialize)]
pub(crate) struct Series {
    name: String,
    values: Vec<Option<f64>>,
}

/// The place of a panel, in pixels.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) x: u64,
    pub(crate) y: u64,
    pub(crate) width: u64,
    pub(crate) height: u64,
}

/// The part of a panel with the curves, and its scale.
struct Plot {
    left: u64,
    right: u64,
    top: u64,
    ground: u64,
    greatest: f64,
    steps: usize,
}

const COLOURS: usize = 8;

/// Draws the last value.
pub(crate) fn stat(canvas: &mut Canvas, place: Place, series: &[Series], unit: Unit) {
    let last = series.iter().find_map(|series| series.values.iter().rev().flatten().next());
    let text = last.map_or_else(|| "no data".to_owned(), |last| unit.write(*last));
    canvas.text(place.x + place.width / 2, place.y + place.height - 26, Anchor::Middle, "big", &text);
}

/// Draws curves beside each other.
pub(crate) fn curves(canvas: &mut Canvas, place: Place, series: &[Series], unit: Unit, max: Option<f64>, step_s: u64) {
    let greatest = series.iter().flat_map(|series| series.values.iter().flatten()).fold(0.0, |a: f64, b| a.max(*b));
    let plot = Plot::new(place, series, max.unwrap_or_else(|| above(greatest)));
    plot.axes(canvas, unit, step_s);
    for (number, series) in series.iter().enumerate() {
        // Where there is no value, there is no line.
        for part in series.points().chunk_by(|(step, _), (next, _)| step + 1 == *next) {
            let points: Vec<_> = part.iter().map(|(step, value)| plot.point(*step, *value)).collect();
            canvas.curve(&points, &format!("line c{}", number % COLOURS));
        }
    }
    legend(canvas, place, series);
}

/// Draws areas on top of each other.
pub(crate) fn stacked(canvas: &mut Canvas, place: Place, series: &[Series], unit: Unit, step_s: u64) {
    let mut sums = Vec::new();
    let mut sum: Vec<f64> = vec![0.0; series.first().map_or(0, |first| first.values.len())];
    for series in series {
        let below = sum.clone();
        sum.iter_mut().zip(&series.values).for_each(|(sum, value)| *sum += value.unwrap_or_default());
        sums.push((below, sum.clone()));
    }
    let plot = Plot::new(place, series, above(sum.iter().fold(0.0, |a: f64, b| a.max(*b))));
    plot.axes(canvas, unit, step_s);
    for (number, (below, above)) in sums.iter().enumerate() {
        let edge =
            |sums: &[f64]| sums.iter().enumerate().map(|(step, value)| plot.point(step, *value)).collect::<Vec<_>>();
        let (top, bottom) = (edge(above), edge(below));
        let corners: Vec<_> = top.iter().chain(bottom.iter().rev()).copied().collect();
        canvas.area(&corners, &format!("area c{}", number % COLOURS));
        canvas.curve(&top, &format!("line c{}", number % COLOURS));
    }
    legend(canvas, place, series);
}

/// Names the series by their colours, as many as there is room for.
fn legend(canvas: &mut Canvas, place: Place, series: &[Series]) {
    const LINE: u64 = 16;
    let (mut x, mut y) = (place.x + 12, place.y + place.height - 26);
    for (number, Series { name, .. }) in series.iter().enumerate() {
        let width = 26 + 7 * name.chars().count() as u64;
        if x + width > place.x + place.width && x > place.x + 12 {
            (x, y) = (place.x + 12, y + LINE);
        }
        if y > place.y + place.height {
            return;
        }
        canvas.rectangle(x, y, 12, 3, &format!("c{}", number % COLOURS));
        canvas.text(x + 17, y + 6, Anchor::Start, "small", name);
        x += width;
    }
}

impl Series {
    /// The values that are there, with their steps.
    fn points(&self) -> Vec<(usize, f64)> {
        self.values.iter().enumerate().filter_map(|(step, value)| Some((step, (*value)?))).collect()
    }
}

impl Plot {
    fn new(place: Place, series: &[Series], greatest: f64) -> Self {
        let steps = series.iter().map(|series| series.values.len()).max().unwrap_or_default();
        let Place { x, y, width, height } = place;
        Self { left: x + 72, right: x + width - 14, top: y + 36, ground: y + height - 52, greatest, steps }
    }

    fn point(&self, step: usize, value: f64) -> [u64; 2] {
        let last = self.steps.max(2) - 1;
        let x = self.left + (self.right - self.left) * step as u64 / last as u64;
        let height = f64::from(u32::try_from(self.ground - self.top).unwrap_or_default());
        [x, self.ground - pixels(height * (value / self.greatest).clamp(0.0, 1.0))]
    }

    fn axes(&self, canvas: &mut Canvas, unit: Unit, step_s: u64) {
        for part in 0..=2_u32 {
            let value = self.greatest * f64::from(part) / 2.0;
            let [_, y] = self.point(0, value);
            canvas.line([self.left, y], [self.right, y], if part == 0 { "axis" } else { "grid" });
            canvas.text(self.left - 6, y + 4, Anchor::End, "small", &unit.write(value));
        }
        let seconds = step_s * (self.steps as u64).saturating_sub(1);
        let (middle, below) = (self.left.midpoint(self.right), self.ground + 16);
        canvas.text(self.left, below, Anchor::Start, "small", "0 s");
        canvas.text(middle, below, Anchor::Middle, "small", &format!("{} s", seconds / 2));
        canvas.text(self.right, below, Anchor::End, "small", &format!("{seconds} s"));
    }
}

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
            Self::PerSecond => format!("{} req/s", one_decimal(value)),
            Self::Share => format!("{} %", one_decimal(value * 100.0)),
            Self::Seconds if value < 0.001 => format!("{} µs", one_decimal(value * 1_000_000.0)),
            Self::Seconds if value < 1.0 => format!("{} ms", one_decimal(value * 1_000.0)),
            Self::Seconds => format!("{} s", one_decimal(value)),
            Self::Number => one_decimal(value),
        }
    }
}

/// One digit behind the point, where it says something.
fn one_decimal(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// The next of 1, 2 or 5 times a power of ten.
fn above(value: f64) -> f64 {
    let mut power = 1e-6;
    loop {
        for step in [1.0, 2.0, 5.0] {
            // Rounding errors of floats are not visible.
            if value <= power * step * 1.000_001 || power > 1e12 {
                return power * step;
            }
        }
        power *= 10.0;
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place on the picture, and never negative"
)]
fn pixels(length: f64) -> u64 {
    length.round().max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_ends_at_a_round_number() {
        assert_eq!([0.3, 1.0, 1.1, 70.0].map(|value| format!("{:.1}", above(value))), ["0.5", "1.0", "2.0", "100.0"]);
    }

    #[test]
    fn numbers_have_the_unit_that_suits_them() {
        assert_eq!(Unit::PerSecond.write(12.34), "12.3 req/s");
        assert_eq!(Unit::Share.write(0.25), "25 %");
        assert_eq!([0.000_25, 0.0123, 2.0].map(|value| Unit::Seconds.write(value)), ["250 µs", "12.3 ms", "2 s"]);
        assert_eq!(Unit::Number.write(3.0), "3");
        assert!(Unit::read("furlong").is_err());
    }
}
