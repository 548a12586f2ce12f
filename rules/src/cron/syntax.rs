//! The syntax of every field of a cron expression: lists of `*`, values, ranges and steps.

use crate::cron::bits::Bits;
use crate::cron::error::ScheduleError;
use crate::cron::field::{CronField, SUNDAY};

pub(super) fn unknown(field: CronField, text: &str) -> ScheduleError {
    ScheduleError::Value { field, text: text.to_owned() }
}

pub(super) fn parse_list(field: CronField, text: &str) -> Result<Bits, ScheduleError> {
    entries(field, text)?.try_fold(Bits::default(), |set, entry| Ok(set | parse_entry(field, entry)?))
}

/// Splits a list. `?` alone means `*`.
pub(super) fn entries(field: CronField, text: &str) -> Result<impl Iterator<Item = &str>, ScheduleError> {
    let text = if text == "?" && field.is_day() { "*" } else { text };
    if text.contains('?') {
        return Err(ScheduleError::QuestionMark(field));
    }
    Ok(text.split(','))
}

/// Reads `*`, a value or a range, with or without a step.
pub(super) fn parse_entry(field: CronField, entry: &str) -> Result<Bits, ScheduleError> {
    let (range, step) = match entry.split_once('/') {
        Some((range, step)) => (range, Some(parse_step(field, step)?)),
        None => (entry, None),
    };
    let (from, to) = match range.split_once('-') {
        Some((from, to)) => parse_range(field, from, to)?,
        None if range == "*" => (field.star(), field.max()),
        None => {
            let value = parse_value(field, range)?;
            (value, if step.is_some() { field.max() } else { value })
        }
    };
    Ok((from..=to).step_by(step.unwrap_or(1)).collect())
}

fn parse_range(field: CronField, from: &str, to: &str) -> Result<(i8, i8), ScheduleError> {
    let start = parse_value(field, from)?;
    let end = parse_value(field, to)?;
    if start <= end {
        Ok((start, end))
    } else if field == CronField::DayOfWeek && start == SUNDAY {
        Ok((0, end))
    } else {
        Err(ScheduleError::Backwards { field, from: from.to_owned(), to: to.to_owned() })
    }
}

pub(super) fn parse_value(field: CronField, text: &str) -> Result<i8, ScheduleError> {
    let named = (1..).zip(field.names()).find(|(_, name)| name.eq_ignore_ascii_case(text));
    named
        .map(|(value, _)| value)
        .or_else(|| parse_number(text))
        .filter(|value| (field.min()..=field.max()).contains(value))
        .ok_or_else(|| unknown(field, text))
}

fn parse_step(field: CronField, text: &str) -> Result<usize, ScheduleError> {
    let step = parse_number(text).filter(|&step| step > 0);
    step.ok_or_else(|| ScheduleError::Step { field, text: text.to_owned() })
}

/// Reads digits and nothing else: no sign, no white space.
pub(super) fn parse_number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}
