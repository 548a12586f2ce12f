//! The picture of all algorithms on one trace.

use std::error::Error;

use crate::canvas::{Anchor, Canvas};
use crate::frame::{AXIS_HEIGHT, LANE_HEIGHT, LEFT, PHASES, RIGHT, TOP, WIDTH, named_seconds, x};
use crate::{chart, lane};

const TITLE: &str = "One trace, five algorithms: 5 calls per 10 seconds";

/// Draws the picture, as SVG.
pub(crate) fn draw() -> Result<String, Box<dyn Error>> {
    let lanes = lane::all()?;
    let bottom = lanes.iter().fold(TOP, |top, _| top + LANE_HEIGHT);
    let mut canvas = Canvas::new(WIDTH, bottom + AXIS_HEIGHT, TITLE);
    canvas.text(LEFT, 36, Anchor::Start, "head", TITLE);
    legend(&mut canvas, 60);
    phases(&mut canvas, bottom);
    let mut top = TOP;
    for lane in &lanes {
        chart::draw(&mut canvas, lane, top);
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
    canvas.box_of(LEFT + 184, top + 2, 20, 14, "count");
    text(canvas, LEFT + 210, "admitted in the 10 s before");
    canvas.box_of(LEFT + 412, top + 2, 20, 14, "excess");
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
        canvas.box_of(left, TOP - 34, right - left, bottom - TOP + 34, "phase");
        canvas.text(left.midpoint(right), TOP - 16, Anchor::Middle, "quiet", name);
    }
}

fn axis(canvas: &mut Canvas, bottom: u64) {
    canvas.line([LEFT, bottom], [RIGHT, bottom], "axis");
    for second in named_seconds() {
        let x = x(second * 1_000);
        canvas.line([x, bottom], [x, bottom + 5], "axis");
        canvas.text(x, bottom + 22, Anchor::Middle, "quiet", &format!("{second} s"));
    }
}
