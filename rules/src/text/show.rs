//! Writing rules as text.

use std::fmt::{self, Write as _};

use crate::algorithm::{Algorithm, Role};
use crate::bucket::TokenBucket;
use crate::duration::format_duration;
use crate::rule::Rule;
use crate::text::scan::is_bare;

/// Writes the [text form](Rule#text-form), like `100 per 1h as hourly`. `{:#}` leaves the name out.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.role(), self.algorithm()) {
            (Role::Duplicate, _) if self.count() == 1 => f.write_str("prevent_duplicate")?,
            (Role::Duplicate, _) => write!(f, "prevent_duplicate {}", Count(self))?,
            (_, Algorithm::SlidingCounter { .. }) => write!(f, "about {}", Count(self))?,
            _ => write!(f, "{}", Count(self))?,
        }
        f.write_str(if self.lease().is_some() { " concurrent lease " } else { " per " })?;
        match self.algorithm() {
            Algorithm::Concurrency { lease } => f.write_str(&format_duration(*lease))?,
            Algorithm::SlidingWindow { per } | Algorithm::SlidingCounter { per } => {
                f.write_str(&format_duration(*per))?;
            }
            Algorithm::FixedWindow { per } => write!(f, "fixed {}", format_duration(*per))?,
            #[cfg(feature = "cron")]
            Algorithm::Cron { schedule } => write!(f, "{schedule}")?,
            Algorithm::TokenBucket(bucket) => write_bucket(f, bucket)?,
        }
        match self.name() {
            Some(name) if !f.alternate() => {
                f.write_str(" as ")?;
                write_name(f, name)
            }
            _ => Ok(()),
        }
    }
}

struct Count<'a>(&'a Rule);

impl fmt::Display for Count<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_varying() { f.write_str("n") } else { write!(f, "{}", self.0.count()) }
    }
}

fn write_bucket(f: &mut fmt::Formatter<'_>, bucket: &TokenBucket) -> fmt::Result {
    f.write_str(&format_duration(bucket.per()))?;
    match bucket.capacity() {
        Some(capacity) => write!(f, " burst {capacity}")?,
        None => f.write_str(" bucket")?,
    }
    if let Some(initial) = bucket.initial() {
        write!(f, " initial {initial}")?;
    }
    if let Some(reset_after) = bucket.reset_after() {
        write!(f, " reset_after {}", format_duration(reset_after))?;
    }
    Ok(())
}

fn write_name(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    if is_bare(name) {
        return f.write_str(name);
    }
    f.write_char('"')?;
    for character in name.chars() {
        if matches!(character, '"' | '\\') {
            f.write_char('\\')?;
        }
        f.write_char(character)?;
    }
    f.write_char('"')
}
