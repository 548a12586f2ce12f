//! The options of a ban.

use syn::{LitInt, LitStr};

use crate::attr::arguments::Arguments;
use crate::attr::value::MESSAGE;
use crate::diagnostic::{Mistakes, Place};

/// Arguments of bans only.
pub(super) const BAN_ARGUMENTS: [&str; 3] = ["denials", "within", "duration"];

/// `ban(...)`. An option that could not be read is left out.
pub(crate) struct BanOptions {
    pub(crate) place: Place,
    pub(crate) denials: Option<LitInt>,
    pub(crate) within: Option<LitStr>,
    pub(crate) duration: Option<LitStr>,
    pub(crate) message: Option<LitStr>,
}

impl BanOptions {
    pub(super) fn take(arguments: &mut Arguments, mistakes: &mut Mistakes) -> Option<Self> {
        let [denials, within, duration] = ["denials = 20", r#"within = "10m""#, r#"duration = "1h""#];
        let argument = arguments.take("ban", mistakes)?;
        let place = argument.place();
        let list = mistakes.keep(argument.list(&format!("ban({denials}, {within}, {duration})")))?;
        let mut list = Arguments::from(list);
        for (name, example) in BAN_ARGUMENTS.into_iter().zip([denials, within, duration]) {
            list.require(name, example, place);
        }
        let options = Self {
            place,
            denials: list.integer("denials", denials, mistakes),
            within: list.text("within", within, mistakes),
            duration: list.text("duration", duration, mistakes),
            message: list.template("message", MESSAGE, mistakes),
        };
        list.finish(mistakes);
        Some(options)
    }
}
