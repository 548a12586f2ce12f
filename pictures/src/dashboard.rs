//! The picture of the dashboard: its panels where Grafana puts them, with what its queries have answered.

use std::error::Error;

use serde::Deserialize;
use serde_json::Value;

use crate::canvas::{Anchor, Canvas};
use crate::panel::{self, Place, Series, Unit};

/// What is drawn, and the recorded answers: `cargo xtask pictures --record` makes them.
const DASHBOARD: &str = include_str!("../../deploy/grafana/tallygate.json");
const RECORDED: &str = include_str!("../recorded/dashboard.json");

const TITLE: &str = "Tallygate: the dashboard on one service, 100 seconds";
const COLUMN: u64 = 42;
const ROW: u64 = 27;
const EDGE: u64 = 14;
const HEAD: u64 = 52;

/// Eight colours that can be told apart, also by the colour-blind.
const STYLE: &str = "
.panel { fill: #ffffff; stroke: #d0d7de }
.title { font-weight: 600 }
.big { font-size: 30px; font-weight: 600 }
.small { font-size: 12px; fill: #57606a }
.grid { stroke: #eaeef2 }
.line { fill: none; stroke-width: 1.8; stroke-linejoin: round }
.c0 { stroke: #0969da; fill: #0969da } .c1 { stroke: #bc4c00; fill: #bc4c00 } .c2 { stroke: #1a7f37; fill: #1a7f37 }
.c3 { stroke: #8250df; fill: #8250df } .c4 { stroke: #bf8700; fill: #bf8700 } .c5 { stroke: #cf222e; fill: #cf222e }
.c6 { stroke: #1b7c83; fill: #1b7c83 } .c7 { stroke: #57606a; fill: #57606a }
.area { fill-opacity: 0.45 }
.line.c0, .line.c1, .line.c2, .line.c3, .line.c4, .line.c5, .line.c6, .line.c7 { fill: none }";

#[derive(Deserialize)]
struct Dashboard {
    panels: Vec<Panel>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Panel {
    id: u64,
    r#type: String,
    title: String,
    grid_pos: GridPos,
    field_config: Value,
}

/// A place, in columns and rows.
#[derive(Deserialize)]
struct GridPos {
    x: u64,
    y: u64,
    w: u64,
    h: u64,
}

#[derive(Deserialize)]
struct Recorded {
    step_s: u64,
    panels: Vec<RecordedPanel>,
}

#[derive(Deserialize)]
struct RecordedPanel {
    id: u64,
    series: Vec<Series>,
}

/// Draws the picture, as SVG.
pub(crate) fn draw() -> Result<String, Box<dyn Error>> {
    let dashboard: Dashboard = serde_json::from_str(DASHBOARD)?;
    let recorded: Recorded = serde_json::from_str(RECORDED)?;
    let rows = dashboard.panels.iter().map(|panel| panel.grid_pos.y + panel.grid_pos.h).max().unwrap_or_default();
    let mut canvas = Canvas::new(24 * COLUMN + 2 * EDGE, HEAD + rows * ROW + EDGE, TITLE, STYLE);
    canvas.text(EDGE + 4, 34, Anchor::Start, "head", TITLE);
    for panel in &dashboard.panels {
        let answers = recorded.panels.iter().find(|recorded| recorded.id == panel.id);
        let answers = answers.ok_or_else(|| format!("nothing is recorded of the panel `{}`", panel.title))?;
        draw_panel(&mut canvas, panel, &answers.series, recorded.step_s)?;
    }
    Ok(canvas.finish())
}

fn draw_panel(canvas: &mut Canvas, panel: &Panel, series: &[Series], step_s: u64) -> Result<(), String> {
    let GridPos { x, y, w, h } = panel.grid_pos;
    let place = Place { x: EDGE + x * COLUMN + 3, y: HEAD + y * ROW + 3, width: w * COLUMN - 6, height: h * ROW - 6 };
    let defaults = &panel.field_config["defaults"];
    let unit = Unit::read(defaults["unit"].as_str().unwrap_or_default())?;
    canvas.rectangle(place.x, place.y, place.width, place.height, "panel");
    canvas.text(place.x + 10, place.y + 20, Anchor::Start, "title", &panel.title);
    match panel.r#type.as_str() {
        "stat" => panel::stat(canvas, place, series, unit),
        "timeseries" if defaults["custom"]["stacking"].is_null() => {
            panel::curves(canvas, place, series, unit, defaults["max"].as_f64(), step_s);
        }
        "timeseries" => panel::stacked(canvas, place, series, unit, step_s),
        other => return Err(format!("panels of the type `{other}` are not drawn")),
    }
    Ok(())
}
