//! Shapes and colours.

use svg::node::element::{Line, Rectangle, Style, Text, Title};
use svg::{Document, Node as _};

/// Colours that keep their contrast on the picture's own background, also for the colour-blind.
const STYLE: &str = "\
text { font: 13px system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; fill: #1f2328 }
.head { font-size: 18px; font-weight: 600 }
.name { font-size: 14px; font-weight: 600 }
.quiet { fill: #57606a }
.paper { fill: #ffffff; stroke: #d0d7de }
.admitted { fill: #0969da }
.denied { fill: #e16f24 }
.axis { stroke: #8c959f }
.grid { stroke: #eaeef2 }";

#[derive(Debug)]
pub(super) struct Canvas {
    document: Document,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Canvas {
    pub(super) fn new(width: u64, height: u64, title: &str) -> Self {
        let document = Document::new()
            .set("viewBox", (0, 0, width, height))
            .set("width", width)
            .set("height", height)
            .set("role", "img")
            .add(Title::new(title))
            .add(Style::new(STYLE));
        let mut canvas = Self { document };
        canvas.box_of([0, 0], [width, height], "paper");
        canvas
    }

    pub(super) fn text(&mut self, x: u64, y: u64, anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.document.append(Text::new(text).set("x", x).set("y", y).set("text-anchor", anchor).set("class", class));
    }

    /// Draws a box, unless its height is 0.
    pub(super) fn box_of(&mut self, [x, y]: [u64; 2], [width, height]: [u64; 2], class: &str) {
        if height > 0 {
            let shape = Rectangle::new().set("x", x).set("y", y).set("width", width).set("height", height);
            self.document.append(shape.set("class", class));
        }
    }

    pub(super) fn line(&mut self, [x1, y1]: [u64; 2], [x2, y2]: [u64; 2], class: &str) {
        self.document.append(Line::new().set("x1", x1).set("y1", y1).set("x2", x2).set("y2", y2).set("class", class));
    }

    pub(super) fn finish(self) -> String {
        format!("{}\n", self.document)
    }
}
