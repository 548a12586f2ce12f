//! The model of a ban.

use tallygate_rules::{Ban, MAX_PER};

use crate::attr::{Arguments, WrittenList};
use crate::model::rule::{CALL_ARGUMENTS, UNTIL_BELONGS};
use crate::template::{SpannedTemplate, TextPurpose};

/// `ban(...)`.
pub(crate) struct BanModel {
    pub(crate) ban: Ban,
    pub(crate) message: Option<SpannedTemplate>,
    pub(crate) written: WrittenList,
}

impl BanModel {
    pub(super) fn take(arguments: &mut Arguments<'_>) -> Option<Self> {
        let [denials, within, duration] = ["denials = 20", r#"within = "10m""#, r#"duration = "1h""#];
        let argument = arguments.take("ban")?;
        let example = format!("ban({denials}, {within}, {duration})");
        let mut list = Arguments::open(argument, &example, arguments.diagnostics);
        list.require("denials", denials);
        list.require("within", within);
        list.require("duration", duration);
        list.refuse(&CALL_ARGUMENTS, "applies to the whole call; write it outside of the ban");
        list.refuse(&["shadow"], "is for a `rule`, or for the whole call; write it outside of the ban");
        list.refuse(&["until"], UNTIL_BELONGS);
        list.refuse(&["key"], "of a ban is that of the function; write it outside of the ban");
        let denials = list.integer("denials", denials).unwrap_or(1);
        // If a duration cannot be read, the longest one stands for it. It is valid beside any rule, so only the
        // unreadable duration is reported.
        let mut read = |name, example| list.duration(name, example).map_or(MAX_PER, |duration| duration.value);
        let ban = Ban::new(denials, read("within", within), read("duration", duration));
        let message = list.message(TextPurpose::BanMessage);
        Some(Self { ban, message, written: list.finish() })
    }
}
