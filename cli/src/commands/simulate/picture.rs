//! A picture of the decisions over time.

mod axis;
mod canvas;
mod lane;

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use tallygate::Policy;

use self::canvas::{Anchor, Canvas};
pub(super) use self::lane::Verdict;
use self::lane::{Bins, Count, Lane, MOST};
use crate::duration;
use crate::number::grouped;

const LEFT: u64 = 64;
/// The width of all bars, and so of the axis.
const BARS_WIDTH: u64 = 4 * MOST;
const RIGHT_MARGIN: u64 = 32;
const TOP: u64 = 76;
/// A lane: its heading, and its bars.
const HEADING: u64 = 28;
const BARS: u64 = 140;
const LANE: u64 = HEADING + BARS + 24;
const AXIS: u64 = 48;
const TICK: u64 = 5;

/// A picture with one lane for each file of limits.
#[derive(Debug)]
pub(super) struct Picture {
    policy: String,
    lanes: Vec<Lane>,
    by_rule: bool,
    from: Option<SystemTime>,
}

impl Picture {
    /// Begins a picture with one lane for each file. With `by_rule`, each rule that denies a call has a lane, too.
    pub(super) fn new<'a>(files: impl IntoIterator<Item = (String, &'a Policy)>, by_rule: bool) -> Self {
        let (mut lanes, mut name) = (Vec::new(), String::new());
        for (file, policy) in files {
            policy.name().clone_into(&mut name);
            lanes.push(Lane::new(file, policy));
        }
        Self { policy: name, lanes, by_rule, from: None }
    }

    /// Adds a call, with the verdict of each lane. Calls come in the order of time.
    pub(super) fn add(&mut self, at: SystemTime, verdicts: &[Verdict]) {
        let from = *self.from.get_or_insert(at);
        let since = at.duration_since(from).unwrap_or_default();
        for (lane, &verdict) in self.lanes.iter_mut().zip(verdicts) {
            lane.add(since, verdict);
        }
    }

    pub(super) fn svg(&self) -> String {
        let right = LEFT + BARS_WIDTH;
        let parts: Vec<_> = self.lanes.iter().flat_map(|lane| lane.parts(self.by_rule)).collect();
        let bottom = parts.iter().fold(TOP, |top, _| top + LANE);
        let title = format!("Calls of {} over time", self.policy);
        let mut canvas = Canvas::new(right + RIGHT_MARGIN, bottom + AXIS, &title);
        canvas.text(LEFT, 32, Anchor::Start, "head", &title);
        legend(&mut canvas);
        let scale = self.scale();
        let mut ground = TOP + HEADING + BARS;
        for (heading, bins) in &parts {
            canvas.text(LEFT, ground - BARS - 10, Anchor::Start, "name", heading);
            scale.draw(&mut canvas, bins, ground);
            ground += LANE;
        }
        self.draw_time(&mut canvas, bottom, &scale);
        canvas.finish()
    }

    fn scale(&self) -> Scale {
        let bars = self.lanes.iter().map(|lane| lane.all().counts().len() as u64).max().unwrap_or_default();
        let most = self.lanes.iter().map(|lane| lane.all().most()).max().unwrap_or_default();
        let width = self.lanes.first().map(|lane| lane.all().width()).unwrap_or_default();
        let from = self.from.map(ms).unwrap_or_default();
        Scale { from, bars: bars.max(1), width, most: most.max(1) }
    }

    fn draw_time(&self, canvas: &mut Canvas, top: u64, scale: &Scale) {
        let Some(from) = self.from else { return };
        for (at, text) in axis::times(scale.from.div_ceil(1_000), scale.to() / 1_000) {
            canvas.text(scale.x(at * 1_000), top, Anchor::Middle, "quiet", &text);
        }
        let [start, end] = [from, SystemTime::UNIX_EPOCH + Duration::from_millis(scale.to())].map(shown);
        let right = LEFT + BARS_WIDTH;
        canvas.text(LEFT, top + 24, Anchor::Start, "quiet", &start);
        canvas.text(right, top + 24, Anchor::End, "quiet", &end);
        let bar = format!("one bar: {}", duration::shown(scale.width));
        canvas.text(LEFT.midpoint(right), top + 24, Anchor::Middle, "quiet", &bar);
    }
}

/// Maps times and numbers of calls to pixels. The axis ends where the last bar does.
struct Scale {
    /// In milliseconds since 1970.
    from: u64,
    bars: u64,
    /// The time that one bar covers.
    width: Duration,
    /// The number of calls in the highest bar.
    most: u64,
}

impl Scale {
    /// Returns the end in milliseconds since 1970.
    fn to(&self) -> u64 {
        self.from.saturating_add(self.bars.saturating_mul(duration::ms(self.width)))
    }

    /// Returns the horizontal position of a time in milliseconds since 1970.
    fn x(&self, at: u64) -> u64 {
        let span = u128::from(self.to() - self.from).max(1);
        let pixels = u128::from(at.saturating_sub(self.from)) * u128::from(BARS_WIDTH) / span;
        LEFT + u64::try_from(pixels).unwrap_or(BARS_WIDTH).min(BARS_WIDTH)
    }

    /// Draws the bars of a lane. `ground` is their lower edge.
    fn draw(&self, canvas: &mut Canvas, bins: &Bins, ground: u64) {
        for calls in axis::calls(self.most) {
            let y = ground - height(calls, self.most);
            canvas.line([LEFT, y], [LEFT + BARS_WIDTH, y], if calls == 0 { "axis" } else { "grid" });
            canvas.text(LEFT - 8, y + 4, Anchor::End, "quiet", &grouped(calls));
        }
        for (bar, Count { admitted, denied }) in (0..).zip(bins.counts()) {
            let [left, right] = [bar, bar + 1].map(|bar| LEFT + BARS_WIDTH * bar / self.bars);
            let (whole, lower) = (seen(admitted + denied, self.most), seen(*admitted, self.most));
            canvas.box_of([left, ground - lower], [right - left, lower], "admitted");
            canvas.box_of([left, ground - whole], [right - left, whole - lower], "denied");
        }
        for (at, _) in axis::times(self.from.div_ceil(1_000), self.to() / 1_000) {
            canvas.line([self.x(at * 1_000), ground], [self.x(at * 1_000), ground + TICK], "axis");
        }
    }
}

fn legend(canvas: &mut Canvas) {
    canvas.box_of([LEFT, 46], [12, 12], "admitted");
    canvas.text(LEFT + 18, 57, Anchor::Start, "label", "admitted");
    canvas.box_of([LEFT + 100, 46], [12, 12], "denied");
    canvas.text(LEFT + 118, 57, Anchor::Start, "label", "denied");
}

/// Returns a height in pixels.
fn height(calls: u64, most: u64) -> u64 {
    let pixels = u128::from(calls) * u128::from(BARS) / u128::from(most.max(1));
    u64::try_from(pixels).unwrap_or(BARS).min(BARS)
}

/// Returns the height of a bar: at least one pixel, if there are calls.
fn seen(calls: u64, most: u64) -> u64 {
    let pixels = height(calls, most);
    if calls > 0 { pixels.max(1) } else { 0 }
}

fn ms(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn shown(time: SystemTime) -> String {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    Timestamp::try_from(time).map(|time| time.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use tallygate::Rule;

    use super::lane::Denier;
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);
    const START: Duration = Duration::from_secs(1_800_000_000);

    fn policy() -> Policy {
        let rules = [Rule::sliding_window(1, HOUR), Rule::fixed_window(9, 24 * HOUR).named("daily")];
        Policy::builder("a <b>").rules(rules).build().unwrap()
    }

    fn drawn(lanes: &[&str], by_rule: bool, calls: &[(u64, &[Verdict])]) -> String {
        let policy = policy();
        let mut picture = Picture::new(lanes.iter().map(|lane| ((*lane).to_owned(), &policy)), by_rule);
        for (second, verdicts) in calls {
            picture.add(SystemTime::UNIX_EPOCH + START + Duration::from_secs(*second), verdicts);
        }
        picture.svg()
    }

    #[test]
    fn each_lane_has_a_bar_for_what_it_admitted_and_one_for_what_it_denied() {
        let denied = Verdict::DeniedBy(Denier::Rule(0));
        let both: [&[Verdict]; 2] = [&[Verdict::Admitted, Verdict::Admitted], &[Verdict::Admitted, denied]];
        let svg = drawn(&["one", "other"], false, &both.map(|verdicts| (0, verdicts)));
        let count = |part: &str| svg.matches(part).count();
        // The legend has one of each class, too.
        assert_eq!((count("class=\"admitted\""), count("class=\"denied\"")), (3, 2));
        assert!(svg.contains("2027-01-15T08:00:00Z") && svg.contains("2027-01-15T08:00:01Z"), "{svg}");
        assert!(svg.contains("&lt;b&gt;") && !svg.contains("<b>"), "{svg}");
    }

    #[test]
    fn the_last_bar_ends_where_the_axis_does() {
        // Seven bars share the width, each rounded.
        let svg = drawn(&["one"], false, &[(0, &[Verdict::Admitted]), (6, &[Verdict::Admitted])]);
        let right = LEFT + BARS_WIDTH;
        let last = LEFT + BARS_WIDTH * 6 / 7;
        assert!(svg.contains(&format!("width=\"{}\" x=\"{last}\"", right - last)), "{svg}");
        assert!(svg.contains(&format!("x2=\"{right}\"")), "{svg}");
        for text in ["08:00:01", "08:00:06", "08:00:07"] {
            assert!(svg.contains(&format!("\n{text}\n")), "{text}: {svg}");
        }
    }

    #[test]
    fn each_rule_that_denies_has_a_lane_of_its_own_if_that_is_asked_for() {
        let calls = [Verdict::DeniedBy(Denier::Ban), Verdict::DeniedBy(Denier::Rule(1)), Verdict::Admitted];
        let calls: Vec<_> = [0, 0, 500].into_iter().zip(calls.iter().map(std::slice::from_ref)).collect();
        let headings = ["one: rule 1, ", "one: ban", "one: rule 0"];
        let split = drawn(&["one"], true, &calls);
        assert_eq!(headings.map(|heading| split.contains(heading)), [true, true, false], "{split}");
        let whole = drawn(&["one"], false, &calls);
        assert_eq!(headings.map(|heading| whole.contains(heading)), [false; 3], "{whole}");
    }

    #[test]
    fn what_is_there_is_seen() {
        assert_eq!((seen(0, 9), seen(1, 1_000_000), seen(9, 9)), (0, 1, BARS));
    }
}
