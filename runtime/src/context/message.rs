//! Messages that are read when the program runs. They consist of text and values of the context and of the rejection.

use tallygate_rules::{
    EMPTY_MESSAGE, FilteredValue, RejectionField, Template, TemplatePart, TemplateUse, alternatives_in_message,
    is_blank,
};

use super::placeholder::show;
use super::scope;
use super::template::{check_value, is_field};
use crate::decision::{Rejection, push_field};
use crate::subject::filters::{self, Secret};

/// The message of a rejection, like `{@user}: at most {@count} {@unit} per {@per}`.
#[derive(Clone, Debug)]
pub(crate) struct ContextMessage {
    parts: Vec<MessagePart>,
}

#[derive(Clone, Debug)]
enum MessagePart {
    Text(String),
    Value(FilteredValue),
    Field(RejectionField),
}

impl ContextMessage {
    /// Reads the message of a rule, of a policy or of a ban.
    ///
    /// # Errors
    ///
    /// The text is blank, has a wrong placeholder or one that a message cannot show, or has fixed text that was meant to show a
    /// value.
    pub(crate) fn parse(text: &str, template_use: TemplateUse) -> Result<Self, String> {
        if is_blank(text) {
            return Err(EMPTY_MESSAGE.to_owned());
        }
        let template = Template::parse(text)?;
        let part = |part: &TemplatePart| match part {
            TemplatePart::Text(text) => Ok(MessagePart::Text(text.clone())),
            TemplatePart::Value(value) => read(value, template_use),
        };
        let parts = template.parts().iter().map(part).collect::<Result<_, String>>()?;
        template_use.check_fixed_text(text, |_| false)?;
        Ok(Self { parts })
    }

    /// Returns the names of the values of the context that it shows.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            MessagePart::Value(value) => value.context_name(),
            MessagePart::Text(_) | MessagePart::Field(_) => None,
        })
    }

    /// Whether it shows this value of the rejection.
    pub(crate) fn shows(&self, field: RejectionField) -> bool {
        self.parts.iter().any(|part| matches!(part, MessagePart::Field(shown) if *shown == field))
    }

    /// Returns the text for a rejection in the current context.
    pub(crate) fn text(&self, rejection: &Rejection, secret: &Secret) -> String {
        let mut message = String::new();
        for part in &self.parts {
            match part {
                MessagePart::Text(text) => message.push_str(text),
                MessagePart::Field(field) => push_field(&mut message, *field, rejection),
                MessagePart::Value(value) => push_value(&mut message, value, secret),
            }
        }
        message
    }
}

fn read(value: &FilteredValue, template_use: TemplateUse) -> Result<MessagePart, String> {
    if value.has_alternatives() {
        return Err(alternatives_in_message(&value.text));
    }
    let of_rejection = match value.text.trim().strip_prefix('@') {
        Some(name) => template_use.rejection_field(name)?,
        None => None,
    };
    match of_rejection {
        Some(field) => Ok(MessagePart::Field(field)),
        None => check_value(value).map(|()| MessagePart::Value(value.clone())),
    }
}

fn push_value(message: &mut String, value: &FilteredValue, secret: &Secret) {
    let Some(name) = value.context_name() else { return };
    let filtered =
        |text: &str| value.filters.iter().fold(text.to_owned(), |text, filter| filters::apply(*filter, &text, secret));
    // A client may leave out any field.
    if is_field(value) {
        message.push_str(&scope::read(name, filtered).unwrap_or_default());
    } else {
        show(message, name, filtered);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{Context, scope};
    use crate::error::BackendError;

    fn mistake(text: &str) -> String {
        ContextMessage::parse(text, TemplateUse::Message).unwrap_err()
    }

    #[tokio::test]
    async fn values_of_the_context_are_shown_with_their_filters() {
        let message =
            ContextMessage::parse("{@user:lower}, {{x}} {@header_x}{@retry_after}", TemplateUse::Message).unwrap();
        assert_eq!(message.names().collect::<Vec<_>>(), ["user", "header_x"]);
        let rejection = Rejection::from(BackendError::misuse("none".to_owned()));
        let context = Context::new().with("user", "Zoë");
        let text = scope(context, async { message.text(&rejection, &Secret::public()) }).await;
        assert_eq!(text, "zoë, {x} never");
    }

    #[test]
    fn a_mistake_says_what_to_write_instead() {
        assert!(mistake(" ").starts_with("`message` must not be empty"));
        assert!(mistake("{@ip").starts_with("unmatched `{`"));
        assert!(
            mistake("{phone}").contains("`{phone}` is no value of the context; write the name of one behind an `@`")
        );
        assert!(mistake("{@user|@ip}").contains("a message shows one value"));
        assert!(mistake("{@count:lower}").ends_with("takes no filter; write just `{@count}`"));
        assert!(mistake("{@retry_afer}").ends_with("did you mean `{@retry_after}`?"));
        assert!(mistake("try again in $retry_after").ends_with("write `{@retry_after}`"));
        let of_ban = ContextMessage::parse("{@count}", TemplateUse::BanMessage).unwrap_err();
        assert!(of_ban.ends_with("its `message` can show `{@retry_after}`"), "{of_ban}");
    }
}
