//! What is released with the duplicates of a call, and what its key shows.

use async_trait::async_trait;
use tallygate::{Limiter, Rejection, RejectionKind, rate_limit};

#[derive(Debug, PartialEq)]
pub(crate) enum Failure {
    Rejected(RejectionKind),
    Failed,
}

impl From<Rejection> for Failure {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection.kind())
    }
}

#[rate_limit(
    name = "released.send_code",
    key = "{tenant}",
    prevent_duplicate(per = "1h", key = "{phone}", release_if = Result::is_err),
    rule(count = 2, per = "1d", key = "{phone}"),
    rule(count = 9, per = "1d"),
    limiter = limiter
)]
async fn send_code(limiter: &Limiter, tenant: &str, phone: &str) -> Result<(), Failure> {
    let _ = (limiter, tenant, phone);
    Err(Failure::Failed)
}

#[tokio::test]
async fn a_rule_of_the_same_key_still_counts_a_call_whose_duplicates_are_released() {
    let limiter = Limiter::in_memory();
    assert_eq!(send_code(&limiter, "acme", "138").await, Err(Failure::Failed));
    assert_eq!(send_code(&limiter, "acme", "138").await, Err(Failure::Failed));
    assert_eq!(send_code(&limiter, "acme", "138").await, Err(Failure::Rejected(RejectionKind::Limited)));
    assert_eq!(send_code(&limiter, "acme", "139").await, Err(Failure::Failed));
}

#[async_trait]
trait Shop {
    fn limiter(&self) -> &Limiter;

    #[rate_limit(
        key = "{*}",
        prevent_duplicate(per = "1h"),
        limiter = self.limiter()
    )]
    async fn order(&self, customer: u32, (product, number): (&str, u32)) -> Result<u32, Failure> {
        Ok(customer + number + u32::from(product.is_empty()))
    }
}

struct Teas(Limiter);

impl Shop for Teas {
    fn limiter(&self) -> &Limiter {
        &self.0
    }
}

#[tokio::test]
async fn all_arguments_of_a_method_of_an_async_trait_are_those_that_its_user_wrote() {
    let shop = Teas(Limiter::in_memory());
    assert_eq!(shop.order(1, ("oolong", 2)).await, Ok(3));
    assert_eq!(shop.order(1, ("oolong", 2)).await, Err(Failure::Rejected(RejectionKind::Duplicate)));
    assert_eq!(shop.order(1, ("oolong", 3)).await, Ok(4));
}
