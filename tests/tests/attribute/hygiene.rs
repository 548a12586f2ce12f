//! Names of the user and of the expansion do not meet.

use tallygate::{Limiter, Rejection, RejectionKind, rate_limit};

use crate::assert_limited;

#[allow(non_snake_case, clippy::too_many_arguments)]
#[rate_limit(
    key = "{subject}:{tallygate_subject}:{SITE}:{RULES}:{here}:{policy}:{rejection}",
    rule(count = 1, per = "60s"),
    limiter = tallygate_limiter
)]
async fn names_of_ours(
    subject: u8,
    tallygate_subject: u8,
    SITE: u8,
    RULES: u8,
    here: u8,
    policy: u8,
    rejection: u8,
    tallygate_limiter: &Limiter,
) -> Result<u8, Rejection> {
    let _ = tallygate_limiter;
    Ok(subject + tallygate_subject + SITE + RULES + here + policy + rejection)
}

#[tokio::test]
async fn arguments_may_have_the_names_that_the_expansion_uses() {
    let limiter = Limiter::in_memory();
    assert_eq!(names_of_ours(1, 2, 3, 4, 5, 6, 7, &limiter).await.unwrap(), 28);
    assert_limited(names_of_ours(1, 2, 3, 4, 5, 6, 7, &limiter).await);
    names_of_ours(1, 2, 3, 4, 5, 6, 0, &limiter).await.unwrap();
}

mod bare {
    #![no_implicit_prelude]
    #![allow(dead_code, non_camel_case_types, non_upper_case_globals)]

    struct Result;
    struct String;
    mod core {}
    mod std {}
    mod tallygate {}
    struct tally;
    static subject: u8 = 0;
    const policy: u8 = 0;

    #[::tallygate::rate_limit(key = "{name}", rule(count = 1, per = "60s"))]
    pub(super) async fn limited(name: &str) -> ::core::result::Result<usize, ::tallygate::Rejection> {
        ::core::result::Result::Ok(name.len())
    }
}

#[tokio::test]
async fn nothing_is_needed_in_scope() {
    assert_eq!(bare::limited("abc").await.unwrap(), 3);
    assert_limited(bare::limited("abc").await);
}

mod shadowed {
    #![allow(dead_code, non_camel_case_types)]

    use ::tallygate::{Limiter, Rejection, rate_limit};

    type u8 = ();
    type u32 = ();
    type u64 = bool;
    type usize = bool;
    type bool = ();
    type str = ();
    type Option = ();
    type Result = ();
    struct String;
    struct Duration;
    struct Some;
    struct None;
    struct Ok;
    struct Err;
    mod core {}
    mod std {}

    pub(super) struct Service {
        pub(super) limiter: Limiter,
    }

    impl Service {
        #[rate_limit(
            key = "{name}",
            prevent_duplicate(per = "60s", key = "{name:lower:trim}"),
            rule(count = count, per = "60s", message = "{name:hash} is late by {@retry_after}"),
            rule(count = 100, per = "60s", key = "all"),
            ban(denials = 100, within = "60s", duration = "60s"),
            cost = cost,
            wait = "1ms",
            refund_if = ::core::result::Result::is_err,
            skip_if = name.is_empty(),
            limiter = self.limiter
        )]
        pub(super) async fn limited(
            &self,
            name: &::core::primitive::str,
            count: ::core::primitive::u64,
            cost: ::core::primitive::u64,
        ) -> ::core::result::Result<::core::primitive::u64, Rejection> {
            ::core::result::Result::Ok(count + cost)
        }
    }
}

#[tokio::test]
async fn the_users_types_may_have_the_names_of_primitive_types_and_of_the_prelude() {
    let service = shadowed::Service { limiter: Limiter::in_memory() };
    assert_eq!(service.limited("abc", 2, 2).await.unwrap(), 4);
    assert_eq!(service.limited("abc", 2, 2).await.unwrap_err().kind(), RejectionKind::Duplicate);
    assert_eq!(service.limited("", 2, 2).await.unwrap(), 4);
}

macro_rules! limited {
    ($name:ident, $argument:ident, $key:literal, $count:expr, $per:expr) => {
        #[rate_limit(key = $key, rule(count = $count, per = $per))]
        async fn $name($argument: u8, inner: u8) -> Result<u8, Rejection> {
            Ok($argument + inner)
        }
    };
}

limited!(from_a_macro, outer, "{outer}:{inner}", 1, "60s");

#[tokio::test]
async fn a_function_may_come_out_of_a_macro() {
    assert_eq!(from_a_macro(1, 2).await.unwrap(), 3);
    assert_limited(from_a_macro(1, 2).await);
    from_a_macro(1, 3).await.unwrap();
}
