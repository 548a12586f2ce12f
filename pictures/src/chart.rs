//! One lane of a picture: marks for the calls, and beneath them how many were admitted in any window.

use crate::canvas::{Anchor, Canvas};
use crate::frame::{LEFT, RIGHT, SHOWN_MS, x};
use crate::lane::{COUNT, Lane, PER_MS};

/// From the top of a lane to its marks, and to the ground of its chart.
const ADMITTED: u64 = 30;
const DENIED: u64 = 52;
const GROUND: u64 = 130;
const PIXELS_A_CALL: u64 = 6;

/// Draws a lane whose top is there.
pub(crate) fn draw(canvas: &mut Canvas, lane: &Lane, top: u64) {
    canvas.named_code(LEFT, top + 16, lane.name, lane.attribute);
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
    let [from_ms, to_ms] = SHOWN_MS;
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
