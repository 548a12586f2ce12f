//! The picture of all algorithms on one trace.

use std::error::Error;

use crate::canvas::{Anchor, Canvas};
use crate::lane::{self, BURST_MS, COUNT, Lane, PER_MS, STEADY_MS};

const TITLE: &str = "One trace, five algorithms: 5 calls per 10 seconds";

/// The parts of the trace that have names.
const PHASES: [([u64; 2], &str); 2] = [(BURST_MS, "a burst"), (STEADY_MS, "one call a second: twice the limit")];

/// The first and the last second that is shown.
const FROM_S: u64 = 6;
const TO_S: u64 = 50;
const PIXELS_A_SECOND: u64 = 18;

const LEFT: u64 = 48;
const RIGHT: u64 = LEFT + (TO_S - FROM_S) * PIXELS_A_SECOND;
const WIDTH: u64 = RIGHT + 24;
/// Where the first lane begins, below the headings.
const TOP: u64 = 132;
const LANE_HEIGHT: u64 = 152;
/// Below the last lane.
const AXIS_HEIGHT: u64 = 40;

/// From the top of a lane to its marks, and to the ground of its chart.
const ADMITTED: u64 = 30;
const DENIED: u64 = 52;
const GROUND: u64 = 130;
const PIXELS_A_CALL: u64 = 6;

/// Draws the picture, as SVG.
pub(crate) fn draw() -> Result<String, Box<dyn Error>> {
    let lanes = lane::all()?;
    let bottom = lanes.iter().fold(TOP, |top, _| top + LANE_HEIGHT);
    let mut canvas = Canvas::new(WIDTH, bottom + AXIS_HEIGHT, TITLE, "");
    canvas.text(LEFT, 36, Anchor::Start, "head", TITLE);
    legend(&mut canvas, 60);
    phases(&mut canvas, bottom);
    let mut top = TOP;
    for lane in &lanes {
        self::lane(&mut canvas, lane, top);
        top += LANE_HEIGHT;
    }
    axis(&mut canvas, bottom);
    Ok(canvas.finish())
}

/// Says what the marks mean.
fn legend(canvas: &mut Canvas, top: u64) {
    let middle = top + 9;
    let text = |canvas: &mut Canvas, x: u64, text: &str| canvas.text(x, top + 14, Anchor::Start, "label", text);
    canvas.admitted(LEFT + 4, top);
    text(canvas, LEFT + 14, "admitted");
    canvas.denied(LEFT + 104, top + 6);
    text(canvas, LEFT + 114, "denied");
    canvas.rectangle(LEFT + 184, top + 2, 20, 14, "count");
    text(canvas, LEFT + 210, "admitted in the 10 s before");
    canvas.rectangle(LEFT + 412, top + 2, 20, 14, "excess");
    text(canvas, LEFT + 438, "more than 5");
    canvas.line([LEFT + 540, middle], [LEFT + 566, middle], "limit");
    text(canvas, LEFT + 572, "the limit");
    canvas.line([LEFT + 660, top], [LEFT + 660, top + 18], "edge");
    text(canvas, LEFT + 668, "a window starts");
}

/// Names the parts of the trace, and shades them behind all lanes.
fn phases(canvas: &mut Canvas, bottom: u64) {
    for ([from, to], name) in PHASES {
        let (left, right) = (x(from) - 6, x(to) + 6);
        canvas.rectangle(left, TOP - 34, right - left, bottom - TOP + 34, "phase");
        canvas.text(left.midpoint(right), TOP - 16, Anchor::Middle, "quiet", name);
    }
}

fn axis(canvas: &mut Canvas, bottom: u64) {
    canvas.line([LEFT, bottom], [RIGHT, bottom], "axis");
    for second in (FROM_S..=TO_S).filter(|second| second.is_multiple_of(5)) {
        let x = x(second * 1_000);
        canvas.line([x, bottom], [x, bottom + 5], "axis");
        canvas.text(x, bottom + 22, Anchor::Middle, "quiet", &format!("{second} s"));
    }
}

/// Draws a lane: marks for the calls, and beneath them how many were admitted in any window.
fn lane(canvas: &mut Canvas, lane: &Lane, top: u64) {
    canvas.named_code(LEFT, top + 16, lane.name, &lane.attribute);
    let most = lane.most_in_any_window();
    let class = if most > COUNT { "most over" } else { "most" };
    canvas.text(RIGHT, top + 16, Anchor::End, class, &format!("most in 10 s: {most}"));

    counts(canvas, lane, top + GROUND);
    for &edge in &lane.edges_ms {
        canvas.line([x(edge), top + ADMITTED - 4], [x(edge), top + GROUND], "edge");
    }
    for call in &lane.calls {
        if call.is_admitted {
            canvas.admitted(x(call.ms), top + ADMITTED);
        } else {
            canvas.denied(x(call.ms), top + DENIED);
        }
    }
}

/// Draws how many calls were admitted in the window that ends at each moment.
fn counts(canvas: &mut Canvas, lane: &Lane, ground: u64) {
    let height = |calls: u64| ground - calls * PIXELS_A_CALL;
    canvas.area(&steps(lane, |calls| height(calls.min(COUNT))), "count");
    canvas.area(&steps(lane, |calls| height(calls.max(COUNT))), "excess");
    canvas.line([LEFT, height(COUNT)], [RIGHT, height(COUNT)], "limit");
    canvas.line([LEFT, ground], [RIGHT, ground], "axis");
    for calls in [0, COUNT, 2 * COUNT] {
        canvas.text(LEFT - 8, height(calls) + 5, Anchor::End, "quiet", &calls.to_string());
    }
}

/// The corners of an area whose height changes with every call that comes into the window or leaves it.
fn steps(lane: &Lane, height: impl Fn(u64) -> u64) -> Vec<[u64; 2]> {
    let [from_ms, to_ms] = [FROM_S, TO_S].map(|second| second * 1_000);
    let mut changes: Vec<_> = lane.admitted_ms().flat_map(|ms| [ms, ms + PER_MS]).filter(|ms| *ms < to_ms).collect();
    changes.sort_unstable();
    changes.dedup();
    let none = height(0);
    let mut corners = vec![[x(from_ms), none]];
    let mut before = none;
    for ms in changes {
        let after = height(lane.in_window(ms));
        corners.extend([[x(ms), before], [x(ms), after]]);
        before = after;
    }
    corners.extend([[x(to_ms), before], [x(to_ms), none]]);
    corners
}

/// Where a moment is.
fn x(ms: u64) -> u64 {
    LEFT + (ms.saturating_sub(FROM_S * 1_000) * PIXELS_A_SECOND / 1_000).min(RIGHT - LEFT)
}
