//! Media types, like `application/grpc+proto`.

/// A media type without its parameters, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MediaType(String);

impl MediaType {
    /// Returns `None` if the text is no media type.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (essence, _) = text.split_once(';').unwrap_or((text, ""));
        let essence = essence.trim_matches([' ', '\t']);
        let (media, subtype) = essence.split_once('/')?;
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+*".contains(&byte))
        };
        (is_name(media) && is_name(subtype)).then(|| Self(essence.to_ascii_lowercase()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is `application/` with this subtype, or with this subtype and a suffix, like
    /// `application/grpc+proto`.
    pub(crate) fn is_application(&self, subtype: &str) -> bool {
        let rest = self.0.strip_prefix("application/").and_then(|own| own.strip_prefix(subtype));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('+'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_has_a_type_and_a_subtype() {
        for text in ["text/html", " Text/HTML ; charset=utf-8", "application/vnd.api+json;v=1"] {
            assert!(MediaType::parse(text).is_some(), "{text}");
        }
        for text in ["", "text", "text/", "/html", "text/ht ml", "text/html/x", "text/html, text/plain"] {
            assert_eq!(MediaType::parse(text), None, "{text}");
        }
    }

    #[test]
    fn case_parameters_and_suffixes_make_no_difference_and_other_letters_do() {
        let is_grpc = |text: &str| MediaType::parse(text).unwrap().is_application("grpc");
        for text in [
            "application/grpc",
            "Application/gRPC",
            "application/grpc+proto",
            "application/grpc;x=y",
            "application/grpc ;x",
        ] {
            assert!(is_grpc(text), "{text}");
        }
        for text in [
            "application/grpcfoo",
            "application/grpc-web",
            "application/grpc-web+proto",
            "text/grpc",
            "x-application/grpc",
        ] {
            assert!(!is_grpc(text), "{text}");
        }
    }
}
