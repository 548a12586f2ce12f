//! What support can do.

use reqwest::Method;
use serde_json::{Value, json};

use super::{code, start};

#[tokio::test]
async fn support_sees_resets_and_raises_the_limits_of_a_mail_address() {
    let service = start(&[("ADMIN_TOKEN", "sesame")]);
    let path = "/admin/codes/alice@example.org";
    let support = |method| service.request(method, path).bearer_auth("sesame");
    let email = "alice@example.org";
    assert_eq!([code(&service, email).await.status(), code(&service, email).await.status()], [200, 429]);

    for _ in 0..2 {
        let limits: Value = support(Method::GET).send().await.unwrap().json().await.unwrap();
        assert_eq!((&limits[0]["rule"], &limits[0]["remaining"]), (&json!("1 per 1m as again"), &json!(0)));
        assert_eq!((&limits[2]["rule"], &limits[2]["remaining"]), (&json!("20 per 1h as network"), &json!(19)));
    }
    assert_eq!(support(Method::DELETE).send().await.unwrap().status(), 204);
    assert_eq!([code(&service, email).await.status(), code(&service, email).await.status()], [200, 429]);

    let raised = support(Method::PUT).body("again = 3 per 1m for 2h").send().await.unwrap();
    assert_eq!(raised.status(), 204, "{:?}", raised.text().await);
    for status in [200, 200, 429] {
        assert_eq!(code(&service, email).await.status(), status);
    }
    assert_eq!(
        [code(&service, "bob@example.org").await.status(), code(&service, "bob@example.org").await.status()],
        [200, 429]
    );
    assert_eq!(support(Method::PUT).body("again = 3 per fortnight").send().await.unwrap().status(), 400);

    assert_eq!(service.get(path).send().await.unwrap().status(), 401);
    assert_eq!(service.get(path).bearer_auth("open").send().await.unwrap().status(), 401);
    assert_eq!(start(&[]).get(path).bearer_auth("").send().await.unwrap().status(), 404, "there is no token");
}
