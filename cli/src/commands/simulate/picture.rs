//! What was decided over time, as a picture.

mod bins;
mod canvas;

use std::time::{Duration, SystemTime};

use jiff::Timestamp;

use self::bins::{Bins, Count};
use self::canvas::{Anchor, Canvas};
use crate::duration;
use crate::number::grouped;

const LEFT: u64 = 64;
/// The width of all bars.
const BARS_WIDTH: u64 = 4 * bins::MOST;
const RIGHT_MARGIN: u64 = 24;
const TOP: u64 = 76;
/// A lane: its heading, and its bars.
const HEADING: u64 = 28;
const BARS: u64 = 140;
const LANE: u64 = HEADING + BARS + 24;
const AXIS: u64 = 36;

/// What was decided over time: one lane for each file of limits.
#[derive(Debug)]
pub(super) struct Picture {
    policy: String,
    lanes: Vec<Bins>,
    from: Option<SystemTime>,
}

impl Picture {
    /// Begins a picture of that many lanes.
    pub(super) fn new(policy: &str, lanes: usize) -> Self {
        Self { policy: policy.to_owned(), lanes: vec![Bins::default(); lanes], from: None }
    }

    /// Adds a call, and whether each lane admits it. Calls come in the order of time.
    pub(super) fn add(&mut self, at: SystemTime, is_admitted: &[bool]) {
        let from = *self.from.get_or_insert(at);
        let since = at.duration_since(from).unwrap_or_default();
        for (lane, &is_admitted) in self.lanes.iter_mut().zip(is_admitted) {
            lane.add(since, is_admitted);
        }
    }

    /// Draws it, with these names of the lanes.
    pub(super) fn svg(&self, names: &[String]) -> String {
        let right = LEFT + BARS_WIDTH;
        let bottom = self.lanes.iter().fold(TOP, |top, _| top + LANE);
        let title = format!("Calls of {} over time", self.policy);
        let mut canvas = Canvas::new(right + RIGHT_MARGIN, bottom + AXIS, &title);
        canvas.text(LEFT, 32, Anchor::Start, "head", &title);
        legend(&mut canvas);
        let most = self.lanes.iter().map(Bins::most).max().unwrap_or_default().max(1);
        let bar = BARS_WIDTH / self.bars();
        let mut ground = TOP + HEADING + BARS;
        for (lane, name) in self.lanes.iter().zip(names) {
            canvas.text(LEFT, ground - BARS - 10, Anchor::Start, "name", name);
            draw_lane(&mut canvas, lane, ground, bar, most);
            ground += LANE;
        }
        self.draw_axis(&mut canvas, bottom);
        canvas.finish()
    }

    /// Returns how many bars there are.
    fn bars(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.counts().len() as u64).max().unwrap_or_default().clamp(1, bins::MOST)
    }

    fn draw_axis(&self, canvas: &mut Canvas, top: u64) {
        let Some(from) = self.from else { return };
        let width = self.lanes.first().map(Bins::width).unwrap_or_default();
        let to = from + width * u32::try_from(self.bars()).unwrap_or(u32::MAX);
        let right = LEFT + BARS_WIDTH / self.bars() * self.bars();
        canvas.text(LEFT, top + 8, Anchor::Start, "quiet", &shown(from));
        canvas.text(right, top + 8, Anchor::End, "quiet", &shown(to));
        let bar = format!("one bar: {}", duration::shown(width));
        canvas.text(LEFT.midpoint(right), top + 8, Anchor::Middle, "quiet", &bar);
    }
}

fn legend(canvas: &mut Canvas) {
    canvas.box_of([LEFT, 46], [12, 12], "admitted");
    canvas.text(LEFT + 18, 57, Anchor::Start, "label", "admitted");
    canvas.box_of([LEFT + 100, 46], [12, 12], "denied");
    canvas.text(LEFT + 118, 57, Anchor::Start, "label", "denied");
}

/// Draws the bars of a lane on the ground, each of that width, and as high as the `most` calls of any bar allow.
fn draw_lane(canvas: &mut Canvas, lane: &Bins, ground: u64, bar: u64, most: u64) {
    let mut left = LEFT;
    for Count { admitted, denied } in lane.counts() {
        let (whole, lower) = (scaled(admitted + denied, most), scaled(*admitted, most));
        canvas.box_of([left, ground - lower], [bar, lower], "admitted");
        canvas.box_of([left, ground - whole], [bar, whole - lower], "denied");
        left += bar;
    }
    canvas.line([LEFT, ground], [LEFT + BARS_WIDTH, ground], "axis");
    canvas.text(LEFT - 8, ground + 4, Anchor::End, "quiet", "0");
    canvas.text(LEFT - 8, ground - BARS + 4, Anchor::End, "quiet", &grouped(most));
}

/// Returns a height in pixels. What is there is seen.
fn scaled(calls: u64, most: u64) -> u64 {
    let pixels = u128::from(calls) * u128::from(BARS) / u128::from(most.max(1));
    let pixels = u64::try_from(pixels).unwrap_or(BARS).min(BARS);
    if calls > 0 { pixels.max(1) } else { 0 }
}

fn shown(time: SystemTime) -> String {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    Timestamp::try_from(time).map(|time| time.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lane_has_a_bar_for_what_it_admitted_and_one_for_what_it_denied() {
        let mut picture = Picture::new("a <b>", 2);
        let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        picture.add(start, &[true, true]);
        picture.add(start, &[true, false]);
        let svg = picture.svg(&["one".to_owned(), "other".to_owned()]);
        let count = |part: &str| svg.matches(part).count();
        // Each has one in the legend, too.
        assert_eq!((count("class=\"admitted\""), count("class=\"denied\"")), (3, 2));
        assert!(svg.contains("2027-01-15T08:00:00Z") && svg.contains("2027-01-15T08:00:01Z"), "{svg}");
        assert!(svg.contains("&lt;b&gt;") && !svg.contains("<b>"), "{svg}");
    }

    #[test]
    fn what_is_there_is_seen() {
        assert_eq!((scaled(0, 9), scaled(1, 1_000_000), scaled(9, 9)), (0, 1, BARS));
    }
}
