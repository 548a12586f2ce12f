//! What a server answers, taken apart by independent parsers.

use reqwest::Response;
use reqwest::header::HeaderMap;
use serde_json::Value;
use sfv::{BareItem, List, ListEntry, Parser};

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The version of HTTP.
    pub version: reqwest::Version,
    /// All fields.
    pub headers: HeaderMap,
    /// The body.
    pub body: String,
}

/// An item of `RateLimit-Policy`.
#[derive(Debug, PartialEq)]
pub struct PolicyItem {
    /// The name of the limit.
    pub name: String,
    /// The quota.
    pub q: u64,
    /// The window, in seconds.
    pub w: Option<u64>,
}

/// An item of `RateLimit`.
#[derive(Debug, PartialEq)]
pub struct LimitItem {
    /// The name of the limit.
    pub name: String,
    /// What remains.
    pub r: u64,
    /// The time in which no more may be used, in seconds.
    pub t: Option<u64>,
}

/// Problem details, as RFC 9457 defines their members.
#[derive(Debug, PartialEq)]
pub struct Problem {
    /// The type.
    pub problem_type: String,
    /// The kind of the rejection.
    pub kind: String,
    /// The text for people.
    pub detail: String,
    /// The limits that denied the call.
    pub violated_policies: Vec<String>,
    /// How long to wait, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

impl LimitItem {
    /// Reads the items of a value of `RateLimit`; none if there is no value.
    #[must_use]
    pub fn list(value: Option<&str>) -> Vec<Self> {
        let item = |item: Item| Self { r: item.required("r"), t: item.get("t"), name: item.name };
        items(value).into_iter().map(item).collect()
    }
}

impl Answer {
    pub(crate) async fn read(response: Response) -> Self {
        let (status, version) = (response.status().as_u16(), response.version());
        let headers = response.headers().clone();
        Self { status, version, headers, body: response.text().await.expect("a body") }
    }

    /// The value of a field that is there once, if it is there.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        let value = values.next()?;
        assert_eq!(values.next(), None, "{name} is there twice");
        Some(value.to_str().expect("ASCII"))
    }

    /// The seconds of `Retry-After`.
    #[must_use]
    pub fn retry_after(&self) -> Option<u64> {
        self.header("retry-after").map(|seconds| seconds.parse().expect("whole seconds"))
    }

    /// The items of `RateLimit-Policy`.
    #[must_use]
    pub fn policies(&self) -> Vec<PolicyItem> {
        let items = items(self.header("ratelimit-policy"));
        items.into_iter().map(|item| PolicyItem { q: item.required("q"), w: item.get("w"), name: item.name }).collect()
    }

    /// The items of `RateLimit`. No effective window ends later than `Retry-After`.
    #[must_use]
    pub fn limits(&self) -> Vec<LimitItem> {
        let items = LimitItem::list(self.header("ratelimit"));
        if let Some(retry_after) = self.retry_after() {
            assert!(items.iter().all(|item| item.t <= Some(retry_after)), "{items:?} and {retry_after}");
        }
        items
    }

    /// The body, which is to be problem details that agree with the rest of the answer.
    #[must_use]
    pub fn problem(&self) -> Problem {
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        let body: Value = serde_json::from_str(&self.body).expect("JSON");
        let text = |name: &str| body[name].as_str().unwrap_or_else(|| panic!("`{name}` in {body}")).to_owned();
        assert_eq!(body["status"], self.status);
        assert!(!text("title").is_empty());
        let retry_after_ms = body.get("retry_after_ms").map(|wait| wait.as_u64().expect("a whole number"));
        assert_eq!(retry_after_ms.map(|wait| wait.div_ceil(1_000)), self.retry_after());
        let policies = body["violated-policies"].as_array().expect("an array");
        Problem {
            problem_type: text("type"),
            kind: text("kind"),
            detail: text("detail"),
            violated_policies: policies.iter().map(|name| name.as_str().expect("a text").to_owned()).collect(),
            retry_after_ms,
        }
    }
}

struct Item {
    name: String,
    parameters: sfv::Parameters,
}

impl Item {
    fn get(&self, name: &str) -> Option<u64> {
        let value = self.parameters.get(name)?.as_integer().expect("an integer");
        Some(u64::try_from(value).expect("no negative integer"))
    }

    fn required(&self, name: &str) -> u64 {
        self.get(name).unwrap_or_else(|| panic!("`{}` has no `{name}`", self.name))
    }
}

fn items(value: Option<&str>) -> Vec<Item> {
    let Some(value) = value else { return Vec::new() };
    let list: List = Parser::new(value).parse().expect("a list of structured fields");
    let item = |entry| match entry {
        ListEntry::Item(sfv::Item { bare_item: BareItem::String(name), params }) => {
            Item { name: name.as_str().to_owned(), parameters: params }
        }
        other => panic!("{other:?} is no string with parameters"),
    };
    list.into_iter().map(item).collect()
}
