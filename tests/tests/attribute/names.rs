//! Functions never share a tally by accident.

use tallygate::{Rejection, rate_limit};

use crate::assert_limited;

#[rate_limit(rule(count = 1, per = "1m"))]
async fn unnamed() -> Result<(), Rejection> {
    Ok(())
}

#[tokio::test]
async fn a_policy_is_named_by_module_and_function() {
    unnamed().await.unwrap();
    assert_eq!(unnamed().await.unwrap_err().policy(), "attribute.names.unnamed");
}

#[rate_limit(name = "shared", rule(count = 2, per = "1m"))]
async fn one() -> Result<(), Rejection> {
    Ok(())
}

#[rate_limit(name = "shared", rule(count = 2, per = "1m"))]
async fn another() -> Result<(), Rejection> {
    Ok(())
}

#[tokio::test]
async fn functions_of_one_given_name_share_their_tally() {
    one().await.unwrap();
    another().await.unwrap();
    assert_eq!(one().await.unwrap_err().policy(), "shared");
    assert_eq!(another().await.unwrap_err().policy(), "shared");
}

struct Shop;
struct Bank<T>(T);

impl Shop {
    #[rate_limit(rule(count = 1, per = "1m"))]
    async fn pay(&self) -> Result<(), Rejection> {
        Ok(())
    }
}

impl<T> Bank<T> {
    #[rate_limit(rule(count = 1, per = "1m"))]
    async fn pay(&self) -> Result<(), Rejection> {
        Ok(())
    }
}

#[tokio::test]
async fn methods_of_one_name_on_two_types_have_tallies_of_their_own() {
    Shop.pay().await.unwrap();
    Bank(1).pay().await.unwrap();
    assert_eq!(Shop.pay().await.unwrap_err().policy(), "attribute.names.Shop.pay");
    assert_limited(Bank(2).pay().await);
}

trait Open {
    async fn open(&self) -> Result<(), Rejection>;
}

trait Ajar {
    async fn open(&self) -> Result<(), Rejection>;
}

impl Open for Shop {
    #[rate_limit(rule(count = 1, per = "1m"))]
    async fn open(&self) -> Result<(), Rejection> {
        Ok(())
    }
}

impl Ajar for Shop {
    #[rate_limit(rule(count = 1, per = "1m"))]
    async fn open(&self) -> Result<(), Rejection> {
        Ok(())
    }
}

impl Open for Bank<u8> {
    #[rate_limit(rule(count = 1, per = "1m"))]
    async fn open(&self) -> Result<(), Rejection> {
        Ok(())
    }
}

#[tokio::test]
async fn methods_of_two_traits_or_types_have_tallies_of_their_own() {
    Open::open(&Shop).await.unwrap();
    Ajar::open(&Shop).await.unwrap();
    Bank(1).open().await.unwrap();
    let rejection = Open::open(&Shop).await.unwrap_err();
    assert_eq!(rejection.policy(), "<attribute.names.Shop as attribute.names.Open>.open");
    assert_limited(Ajar::open(&Shop).await);
    assert_limited(Bank(1).open().await);
}

async fn inner_of_one() -> Result<(), Rejection> {
    #[rate_limit(rule(count = 1, per = "1m"))]
    async fn inner() -> Result<(), Rejection> {
        Ok(())
    }
    inner().await
}

async fn inner_of_another() -> Result<(), Rejection> {
    #[rate_limit(rule(count = 1, per = "1m"))]
    async fn inner() -> Result<(), Rejection> {
        Ok(())
    }
    inner().await
}

#[tokio::test]
async fn functions_in_functions_have_tallies_of_their_own() {
    inner_of_one().await.unwrap();
    inner_of_another().await.unwrap();
    assert_eq!(inner_of_one().await.unwrap_err().policy(), "attribute.names.inner_of_one.inner");
    assert_limited(inner_of_another().await);
}

#[rate_limit(name = "attribute.by_phone", key = "{phone}", rule(count = 1, per = "1m"))]
#[rate_limit(name = "attribute.by_network", key = "{network}", rule(count = 2, per = "1m"))]
async fn limited_twice(phone: u8, network: u8) -> Result<u8, Rejection> {
    Ok(phone + network)
}

#[tokio::test]
async fn two_attributes_of_two_names_both_hold() {
    assert_eq!(limited_twice(1, 1).await.unwrap(), 2);
    assert_eq!(limited_twice(1, 2).await.unwrap_err().policy(), "attribute.by_phone");
    limited_twice(2, 1).await.unwrap();
    assert_eq!(limited_twice(3, 1).await.unwrap_err().policy(), "attribute.by_network");
}
