//! A Redis without a network and without a clock of its own: bytes go in, bytes come out, and the caller sets the time.

mod flavour;

pub use self::flavour::Flavour;
