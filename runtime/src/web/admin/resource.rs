//! The paths, and the methods of each.

use percent_encoding::percent_decode_str;

use super::error::AdminError;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Resource {
    Policies,
    Policy(String),
    /// The main subject of a policy; a peek also shows the others.
    Subject(String),
    /// All subjects of a call.
    Subjects(String),
    Ban(String),
    Bans(String),
    Pause(String),
    /// The override of all rules on the main subject, or on the subject of a label.
    Override {
        policy: String,
        label: Option<String>,
    },
    Overrides,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Put,
    Delete,
}

impl Resource {
    /// Reads a path without the prefix under which the routes are mounted.
    pub(super) fn read(path: &str) -> Result<Self, AdminError> {
        let segments: Vec<_> = path.strip_prefix('/').unwrap_or(path).split('/').collect();
        Ok(match *segments.as_slice() {
            ["policies"] => Self::Policies,
            ["policies", name] => Self::Policy(decoded(name)?),
            ["policies", name, "subject"] => Self::Subject(decoded(name)?),
            ["policies", name, "subjects"] => Self::Subjects(decoded(name)?),
            ["policies", name, "ban"] => Self::Ban(decoded(name)?),
            ["policies", name, "bans"] => Self::Bans(decoded(name)?),
            ["policies", name, "pause"] => Self::Pause(decoded(name)?),
            ["policies", name, "override"] => Self::Override { policy: decoded(name)?, label: None },
            ["policies", name, "override", label] => {
                Self::Override { policy: decoded(name)?, label: Some(decoded(label)?) }
            }
            ["overrides"] => Self::Overrides,
            _ => return Err(no_such_path()),
        })
    }

    /// Returns the method, if the path has it.
    pub(super) fn allowed(&self, method: &str) -> Result<Method, AdminError> {
        let methods = self.methods();
        match method {
            "GET" | "HEAD" if methods.contains("GET") => Ok(Method::Get),
            "PUT" if methods.contains("PUT") => Ok(Method::Put),
            "DELETE" if methods.contains("DELETE") => Ok(Method::Delete),
            _ => Err(AdminError::NotAllowed { methods }),
        }
    }

    fn methods(&self) -> &'static str {
        match self {
            Self::Policies | Self::Policy(_) | Self::Bans(_) | Self::Overrides => "GET, HEAD",
            Self::Subject(_) => "GET, HEAD, DELETE",
            Self::Subjects(_) => "DELETE",
            Self::Ban(_) | Self::Pause(_) => "PUT, DELETE",
            Self::Override { .. } => "GET, HEAD, PUT, DELETE",
        }
    }
}

fn decoded(segment: &str) -> Result<String, AdminError> {
    // Neither a policy nor a label has an empty name.
    if segment.is_empty() {
        return Err(no_such_path());
    }
    let decoded = percent_decode_str(segment).decode_utf8();
    decoded.map(Into::into).map_err(|_| AdminError::malformed("the path is not percent-encoded UTF-8"))
}

fn no_such_path() -> AdminError {
    AdminError::not_found(
        "there is no such path; `GET policies` lists the policies, and a `/` within a name is written `%2F`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_decoded_once() {
        let read = |path| Resource::read(path).ok();
        assert_eq!(read("/policies/a%3A%3Ab"), Some(Resource::Policy("a::b".into())));
        assert_eq!(read("/policies/a::b/ban"), Some(Resource::Ban("a::b".into())));
        assert_eq!(read("policies/a%2Fb%252F/bans"), Some(Resource::Bans("a/b%2F".into())));
        let label = Some("{@ip}".to_owned());
        assert_eq!(read("/policies/p/override/%7B@ip}"), Some(Resource::Override { policy: "p".into(), label }));
    }

    #[test]
    fn other_paths_are_nothing() {
        for path in ["", "/", "/policies/", "/policies/p/", "/policies//ban", "/policies/p/override/"] {
            assert_eq!(Resource::read(path).ok(), None, "{path}");
        }
        for path in ["/policies/a/b/ban", "/policy", "/overrides/p", "/policies/%FF/ban"] {
            assert_eq!(Resource::read(path).ok(), None, "{path}");
        }
    }
}
