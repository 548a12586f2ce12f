//! The messages of a policy for requests.

use tallygate_rules::TemplateUse;

use super::lines::{At, Lines};
use super::table::Table;
use crate::context::ContextMessage;
use crate::decision::{Rejection, RejectionKind};
use crate::subject::filters::Secret;

const MESSAGE: &str = r#"message = "try again in {@retry_after}""#;

/// The messages of a policy for requests. The message of a rule goes before that of the policy.
#[derive(Debug)]
pub(crate) struct FileMessages {
    policy: Option<ContextMessage>,
    /// One for each rule, in their order.
    rules: Vec<Option<ContextMessage>>,
    ban: Option<ContextMessage>,
}

impl FileMessages {
    /// Returns the messages, or `None` if there is none.
    pub(super) fn new(
        policy: Option<ContextMessage>,
        rules: impl Iterator<Item = Option<ContextMessage>>,
        ban: Option<ContextMessage>,
    ) -> Option<Self> {
        let rules: Vec<_> = rules.collect();
        let is_any = policy.is_some() || ban.is_some() || rules.iter().any(Option::is_some);
        is_any.then_some(Self { policy, rules, ban })
    }

    /// Returns the names of the values of the context that they show.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().chain([&self.policy, &self.ban]).flatten().flat_map(ContextMessage::names)
    }

    /// Returns the text for a rejection in the current context; `None` is the usual one.
    pub(crate) fn text(&self, rejection: &Rejection, secret: &Secret) -> Option<String> {
        let message = match rejection.denying_rule() {
            Some(position) => self.rules.get(position).and_then(Option::as_ref).or(self.policy.as_ref()),
            None => self.ban.as_ref().filter(|_| rejection.kind() == RejectionKind::Banned),
        };
        message.map(|message| message.text(rejection, secret))
    }
}

/// Takes `message = "text with {@placeholders}"`.
pub(super) fn take(
    table: &mut Table<'_>,
    template_use: TemplateUse,
    lines: &mut Lines<'_>,
) -> Option<At<ContextMessage>> {
    let text = table.text("message", MESSAGE, lines)?;
    lines.read(text, |text| ContextMessage::parse(text, template_use))
}
