//! Shapes and colours. All coordinates are whole pixels, so that every machine draws the same bytes.

use svg::Document;
use svg::node::element::{Line, Path, Polygon, Polyline, Rectangle, Style, TSpan, Text, Title};

/// Colours that keep their contrast on the picture's own background, whatever is around it, also for the colour-blind.
const STYLE: &str = "\
text { font: 14px system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; fill: #1f2328 }
.head { font-size: 19px; font-weight: 600 }
.name { font-size: 16px; font-weight: 600 }
.code { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #57606a }
.quiet { fill: #57606a }
.most { font-weight: 600 }
.over { fill: #b3261e }
.paper { fill: #ffffff; stroke: #d0d7de }
.admitted { fill: #0969da }
.denied { stroke: #bc4c00; stroke-width: 2; fill: none }
.count { fill: #b6d6fb }
.excess { fill: #e5534b }
.limit { stroke: #1f2328; stroke-width: 1.5; stroke-dasharray: 6 4 }
.edge { stroke: #6e40c9; stroke-width: 1.5; stroke-dasharray: 2 3 }
.axis { stroke: #8c959f }
.phase { fill: #f6f8fa }";

/// A picture that is being drawn.
pub(crate) struct Canvas {
    document: Document,
}

/// Where a text is anchored.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Canvas {
    /// Starts a picture. `style` defines classes beside the common ones.
    pub(crate) fn new(width: u64, height: u64, title: &str, style: &str) -> Self {
        let document = Document::new()
            .set("viewBox", (0, 0, width, height))
            .set("width", width)
            .set("height", height)
            .set("role", "img")
            .add(Title::new(title))
            .add(Style::new(format!("{STYLE}{style}")));
        let mut canvas = Self { document };
        canvas.add(rectangle(0, 0, width, height).set("rx", 8).set("class", "paper"));
        canvas
    }

    pub(crate) fn text(&mut self, x: u64, y: u64, anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.add(Text::new(text).set("x", x).set("y", y).set("text-anchor", anchor).set("class", class));
    }

    /// A name, and code behind it, however wide the name is.
    pub(crate) fn named_code(&mut self, x: u64, y: u64, name: &str, code: &str) {
        let code = TSpan::new(code).set("class", "code").set("dx", 12);
        self.add(Text::new("").set("x", x).set("y", y).add(TSpan::new(name).set("class", "name")).add(code));
    }

    pub(crate) fn rectangle(&mut self, x: u64, y: u64, width: u64, height: u64, class: &str) {
        self.add(rectangle(x, y, width, height).set("class", class));
    }

    pub(crate) fn line(&mut self, [x1, y1]: [u64; 2], [x2, y2]: [u64; 2], class: &str) {
        self.add(Line::new().set("x1", x1).set("y1", y1).set("x2", x2).set("y2", y2).set("class", class));
    }

    /// A bar that stands for an admitted call.
    pub(crate) fn admitted(&mut self, x: u64, y: u64) {
        self.add(rectangle(x - 2, y, 4, 18).set("rx", 1).set("class", "admitted"));
    }

    /// A cross that stands for a denied call.
    pub(crate) fn denied(&mut self, x: u64, y: u64) {
        let (left, right, top, bottom) = (x - 3, x + 3, y, y + 6);
        let cross = format!("M{left} {top}L{right} {bottom}M{left} {bottom}L{right} {top}");
        self.add(Path::new().set("d", cross).set("class", "denied"));
    }

    pub(crate) fn area(&mut self, corners: &[[u64; 2]], class: &str) {
        self.add(Polygon::new().set("points", joined(corners)).set("class", class));
    }

    pub(crate) fn curve(&mut self, points: &[[u64; 2]], class: &str) {
        self.add(Polyline::new().set("points", joined(points)).set("class", class));
    }

    pub(crate) fn finish(self) -> String {
        format!("{}\n", self.document)
    }

    fn add(&mut self, node: impl Into<Box<dyn svg::Node>>) {
        let document = std::mem::replace(&mut self.document, Document::new());
        self.document = document.add(node);
    }
}

fn joined(points: &[[u64; 2]]) -> String {
    points.iter().map(|[x, y]| format!("{x},{y}")).collect::<Vec<_>>().join(" ")
}

fn rectangle(x: u64, y: u64, width: u64, height: u64) -> Rectangle {
    Rectangle::new().set("x", x).set("y", y).set("width", width).set("height", height)
}
