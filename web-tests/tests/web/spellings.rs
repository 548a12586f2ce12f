//! Other spellings of paths, for the routers of all frameworks.

use std::net::SocketAddr;

use tallygate_web_tests::ask;

/// A policy for each handler.
pub(crate) const FILE: &str = r#"
policy.login = { match = { path = "/login" }, key = "{@ip}", rules = ["1 per 1m"] }
policy.admin = { match = { path = "/users/admin" }, key = "{@ip}", rules = ["1 per 1m"] }
policy.users = { match = { path = "/users/*" }, key = "{@ip}", rules = ["1 per 1m"] }
policy.api = { match = { path = "/api/*" }, key = "{@ip}", rules = ["1 per 1m"] }
policy.assets = { match = { path = "/assets/*" }, key = "{@ip}", rules = ["1 per 1m"] }
policy.others = { match = { path = "/*" }, key = "{@ip}", rules = ["1 per 1m"] }
"#;

/// Targets of requests.
pub(crate) const SPELLINGS: &[&str] = &[
    "/login",
    "/%6Cogin",
    "/%6cogin",
    "/logi%6E",
    "//login",
    "///login",
    "/login/",
    "/login//",
    "//login//",
    "/./login",
    "/login/.",
    "/x/../login",
    "/x/%2e%2E/login",
    "/login;v=1",
    "/LOGIN",
    "/login%00",
    "/login%20",
    "/%256Cogin",
    "/%2Flogin",
    "/login%2F",
    "\\login",
    "/\\login",
    "/%5Clogin",
    "/users/admin",
    "/users/%61dmin",
    "/users/%61%64%6D%69%6E",
    "/users/%2561dmin",
    "/users/admin/",
    "/users//admin",
    "/users/./admin",
    "/users/x/../admin",
    "/users/admin%2Fx",
    "/users%2Fadmin",
    "/users/%FF",
    "/users/%C0%AF",
    "/users/caf%C3%A9",
    "/users/caf\u{e9}",
    "/assets/../api/items",
    "/assets/..%2Fapi/items",
    "/assets/%2e%2e/api/items",
    "/assets/..;/api/items",
    "/assets/..%5Capi/items",
    "/api/../assets/a.css",
    "/assets//..//users/admin",
    "/assets/x%2Fy/..\\..\\api/items",
    "/assets/x%2Fy/../../api/items",
    "/assets/x%2Fy\\z/..%2F..\\../api/items",
    "/assets/a%2Fb/../x%2F..%2F..%2Fapi/items",
    "/x%2Fy/..\\login",
    "/users//../admin",
    "/login/..;/%2e%2e",
    "/api/items?x=/login",
];

/// Asks a server within the limits of the file for a target. A handler answers with a plain path that reaches it, and others with
/// `/other`. Whoever has reached a handler has used up its limit.
pub(crate) async fn assert_counted(server: SocketAddr, target: &str) {
    let (status, reached) = ask(server, "GET", target, &[]).await;
    if status == 200 {
        let has_policy = ["/users/", "/assets/", "/api/"].iter().any(|start| target.starts_with(start));
        let plain = if reached == "/other" && has_policy { target } else { &reached };
        assert_eq!(ask(server, "GET", plain, &[]).await.0, 429, "{target} reaches {reached}");
    } else {
        assert_eq!(status, 400, "{target} is refused by the framework");
    }
}
