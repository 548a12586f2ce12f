//! The screen of `watch`.

use std::time::{Duration, Instant};

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph, Row, Table};
use tallygate::admin::Level;

use super::board::{Board, Walked, WatchedPolicy, WatchedServer};
use crate::commands::top::usage::Usage;
use crate::duration;
use crate::number::{counted, grouped};
use crate::output::printable;

/// The most lines about servers and outages.
const MOST_LINES: usize = 8;

/// The lines of the borders above and below.
const BORDERS: usize = 2;

pub(super) fn draw(frame: &mut Frame<'_>, board: &Board, every: Duration, now: Instant) {
    let lines = servers_and_outages(board, now);
    let height = u16::try_from(lines.len().clamp(1, MOST_LINES) + BORDERS).unwrap_or(u16::MAX);
    let parts = [
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Fill(1),
        Constraint::Length(height),
        Constraint::Length(1),
    ];
    let [head, policies, subjects, servers, foot] = Layout::vertical(parts).areas(frame.area());
    frame.render_widget(Line::from(format!("tallygate   prefix {}", printable(&board.prefix))).bold(), head);
    draw_policies(frame, policies, board);
    draw_subjects(frame, subjects, board);
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title("servers and outages")), servers);
    frame.render_widget(Line::from(format!("every {}; q quits", duration::shown(every))), foot);
}

fn draw_policies(frame: &mut Frame<'_>, area: Rect, board: &Board) {
    let policies = board.policies();
    let title = counted(policies.len() as u64, "policy");
    let widths =
        [Constraint::Fill(2), Constraint::Fill(4), Constraint::Length(9), Constraint::Length(8), Constraint::Length(9)];
    let head = Row::new(["policy", "rules", "denials/s", "denied", "overrides"]).bold();
    let rows = policies.into_iter().map(|policy| policy_row(policy, board));
    frame.render_widget(Table::new(rows, widths).header(head).block(Block::bordered().title(title)), area);
}

fn policy_row(policy: &WatchedPolicy, board: &Board) -> Row<'static> {
    let rate = board.rates.per_second(&policy.name);
    let denied = board.denied(&policy.name);
    let cells = [
        printable(&policy.name),
        printable(&policy.rules),
        rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}")),
        denied.map_or_else(|| "-".to_owned(), grouped),
        if policy.overrides == 0 { String::new() } else { grouped(policy.overrides as u64) },
    ];
    let is_denying = rate.is_some_and(|rate| rate > 0.0) || denied.is_some_and(|denied| denied > 0);
    Row::new(cells).style(if is_denying { Style::new().yellow() } else { Style::new() })
}

fn draw_subjects(frame: &mut Frame<'_>, area: Rect, board: &Board) {
    let found = board.walked.as_ref().map_or_else(
        || "busiest subjects".to_owned(),
        |Walked { subjects, .. }| format!("busiest of {}", counted(*subjects, "subject")),
    );
    let progress = board.progress.map(|share| format!(", looking: {:.0} %", share * 100.0)).unwrap_or_default();
    let widths =
        [Constraint::Fill(2), Constraint::Fill(3), Constraint::Length(6), Constraint::Fill(4), Constraint::Fill(2)];
    let rows = board.walked.iter().flat_map(|walked| &walked.busiest).map(subject_row);
    let block = Block::bordered().title(found + &progress);
    frame.render_widget(Table::new(rows, widths).block(block), area);
}

fn subject_row(usage: &Usage) -> Row<'static> {
    let cells = std::iter::once(usage.policy().to_owned()).chain(usage.cells());
    let style = if usage.is_denied() { Style::new().yellow() } else { Style::new() };
    Row::new(cells.map(|cell| printable(&cell))).style(style)
}

fn servers_and_outages(board: &Board, now: Instant) -> Vec<Line<'static>> {
    let outages = board.outages.lines(now).map(|(goes_on, line)| {
        let line = Line::from(printable(&line));
        if goes_on { line.red().bold() } else { line }
    });
    outages.chain(board.servers().iter().flat_map(server_lines)).collect()
}

fn server_lines(server: &WatchedServer) -> Vec<Line<'static>> {
    let line = |text: &str| Line::from(printable(&format!("{}   {}   {text}", server.server, server.level)));
    match server.level {
        Level::Ok => vec![line("")],
        Level::Warning => server.findings.iter().map(|finding| line(finding)).collect(),
        _ => server.findings.iter().map(|finding| line(finding).red()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn drawn(board: &Board, now: Instant) -> String {
        let mut terminal = Terminal::new(TestBackend::new(100, 16)).unwrap();
        terminal.draw(|frame| draw(frame, board, Duration::from_secs(1), now)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn before_the_first_look_the_screen_says_what_will_stand_there() {
        let screen = drawn(&Board::new("shop"), Instant::now());
        for text in [
            "tallygate   prefix shop",
            "0 policies",
            "denials/s",
            "busiest subjects",
            "servers and outages",
            "every 1s; q quits",
        ] {
            assert!(screen.contains(text), "{text}\n{screen}");
        }
    }

    #[test]
    fn an_outage_and_the_progress_of_a_walk_are_shown() {
        let (mut board, start) = (Board::new("shop"), Instant::now());
        board.outages.note("redis", Some("no\u{1b} answer"), start);
        board.walked = Some(Walked { subjects: 1_234, ..Walked::default() });
        board.progress = Some(0.4);
        let screen = drawn(&board, start + Duration::from_secs(12));
        assert!(screen.contains("redis is away for 12s: no\\u{1b} answer"), "{screen}");
        assert!(screen.contains("busiest of 1,234 subjects, looking: 40 %"), "{screen}");
    }

    #[test]
    fn a_terminal_without_room_is_no_mistake() {
        let mut terminal = Terminal::new(TestBackend::new(1, 1)).unwrap();
        terminal.draw(|frame| draw(frame, &Board::new("shop"), Duration::from_secs(1), Instant::now())).unwrap();
    }
}
