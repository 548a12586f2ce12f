//! The attribute on real functions: whatever their shape, they run when admitted and only then.

use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tallygate::{Kind, Limiter, Rejection, rate_limit};

/// A call was rejected by a limit, not by an outage.
#[track_caller]
fn assert_limited<T>(result: Result<T, impl Into<Failure>>) {
    let failure = result.err().expect("the call is beyond the limit").into();
    assert_eq!(failure.0.kind(), Kind::Limited);
}

/// An error of the user's own.
#[derive(Debug)]
struct Failure(Rejection);

impl From<Rejection> for Failure {
    fn from(rejection: Rejection) -> Self {
        Self(rejection)
    }
}

mod policies {
    use super::*;

    #[rate_limit(rule(count = 10, per = "60s"), rule(count = 20, per = "120s"), prevent_duplicate)]
    async fn customers_line() -> Result<(), Rejection> {
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn the_customers_line_holds() {
        for _ in 0..10 {
            customers_line().await.unwrap();
            let repeated = customers_line().await.unwrap_err();
            assert_eq!(repeated.kind(), Kind::Duplicate);
            assert_eq!(repeated.rule().unwrap().index(), 0);
            tokio::time::advance(Duration::from_secs(5)).await;
        }
        let limited = customers_line().await.unwrap_err();
        assert_eq!(limited.kind(), Kind::Limited);
        let rule = limited.rule().unwrap();
        assert_eq!((rule.index(), rule.count(), rule.per()), (1, 10, Some(Duration::from_secs(60))));
        assert_eq!(limited.retry_after(), Some(Duration::from_secs(10)));
    }

    #[rate_limit(rule(count = 10, per = "60s"), rule(count = 20, per = "120s"), prevent_duplicate)]
    async fn trailing_comma() -> Result<(), Rejection> {
        Ok(())
    }

    #[tokio::test]
    async fn a_trailing_comma_changes_nothing() {
        trailing_comma().await.unwrap();
        assert_eq!(trailing_comma().await.unwrap_err().kind(), Kind::Duplicate);
    }

    #[rate_limit(prevent_duplicate, rule(count = 2, per = "1h",), rule(per = "1m", count = 1))]
    async fn several_rules() -> Result<(), Rejection> {
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn rules_keep_their_order_behind_that_of_duplicates() {
        several_rules().await.unwrap();
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(several_rules().await.unwrap_err().rule().unwrap().index(), 2);
        tokio::time::advance(Duration::from_secs(55)).await;
        several_rules().await.unwrap();
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(several_rules().await.unwrap_err().rule().unwrap().index(), 1);
    }

    #[rate_limit(rule(count = 2, per = "1m"))]
    async fn counted(runs: &Cell<u32>) -> Result<u32, Rejection> {
        runs.set(runs.get() + 1);
        Ok(runs.get())
    }

    #[tokio::test]
    async fn the_body_runs_once_when_admitted_and_never_when_denied() {
        let runs = Cell::new(0);
        assert_eq!(counted(&runs).await.unwrap(), 1);
        assert_eq!(counted(&runs).await.unwrap(), 2);
        assert_limited(counted(&runs).await);
        assert_limited(counted(&runs).await);
        assert_eq!(runs.get(), 2);
    }

    #[rate_limit(rule(count = 1, per = "1m"))]
    async fn never_awaited() -> Result<(), Rejection> {
        Ok(())
    }

    #[tokio::test]
    async fn a_future_that_is_never_polled_counts_nothing() {
        drop(never_awaited());
        never_awaited().await.unwrap();
        assert_limited(never_awaited().await);
    }
}

mod names {
    use super::*;

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
}

mod keys {
    use super::*;

    struct Account {
        id: u64,
        tenant: String,
    }

    impl Account {
        fn owner(&self) -> (&str, u64) {
            (&self.tenant, self.id)
        }
    }

    fn account(id: u64) -> Account {
        Account { id, tenant: "acme".into() }
    }

    #[rate_limit(key = "sms:{phone}", rule(count = 1, per = "60s"))]
    async fn send_code(phone: &str) -> Result<usize, Rejection> {
        Ok(phone.len())
    }

    #[tokio::test]
    async fn every_value_has_a_tally_of_its_own() {
        assert_eq!(send_code("138").await.unwrap(), 3);
        assert_eq!(send_code("1390").await.unwrap(), 4);
        assert_eq!(send_code("").await.unwrap(), 0);
        for phone in ["138", "1390", ""] {
            assert_limited(send_code(phone).await);
        }
    }

    #[rate_limit(key = "{account.owner().0}/{account.id}/{address.ip()}/{pair.1}", rule(count = 1, per = "60s"))]
    async fn members(account: Account, address: SocketAddr, pair: (u8, char)) -> Result<Account, Rejection> {
        let _ = (address, pair);
        Ok(account)
    }

    #[tokio::test]
    async fn fields_methods_and_positions_tell_subjects_apart() {
        let here: SocketAddr = "10.0.0.1:80".parse().unwrap();
        let there: SocketAddr = "10.0.0.2:80".parse().unwrap();
        assert_eq!(members(account(1), here, (1, 'a')).await.unwrap().id, 1);
        members(account(2), here, (1, 'a')).await.unwrap();
        members(account(1), there, (1, 'a')).await.unwrap();
        members(account(1), here, (1, 'b')).await.unwrap();
        let same_ip = SocketAddr::new(here.ip(), 81);
        assert_limited(members(account(1), same_ip, (2, 'a')).await);
    }

    #[rate_limit(key = "a{{{word}}}%!é", rule(count = 1, per = "60s"))]
    async fn braces(word: &str) -> Result<(), Rejection> {
        let _ = word;
        Ok(())
    }

    #[tokio::test]
    async fn braces_and_odd_text_are_text() {
        braces("x").await.unwrap();
        braces("y").await.unwrap();
        assert_limited(braces("x").await);
    }

    #[rate_limit(key = "{r#type}:{r#in.id}", rule(count = 1, per = "60s"))]
    async fn raw(r#type: &str, r#in: Account) -> Result<(), Rejection> {
        let _ = (r#type, r#in);
        Ok(())
    }

    #[rate_limit(key = "{type}:{in.id}", rule(count = 1, per = "60s"))]
    async fn keywords(r#type: &str, r#in: Account) -> Result<(), Rejection> {
        let _ = (r#type, r#in);
        Ok(())
    }

    #[tokio::test]
    async fn raw_identifiers_are_named_with_and_without_their_mark() {
        raw("x", account(1)).await.unwrap();
        assert_limited(raw("x", account(1)).await);
        keywords("x", account(1)).await.unwrap();
        keywords("x", account(2)).await.unwrap();
        assert_limited(keywords("x", account(1)).await);
    }

    #[rate_limit(key = "everyone", rule(count = 1, per = "60s"))]
    async fn constant(phone: &str) -> Result<(), Rejection> {
        let _ = phone;
        Ok(())
    }

    #[tokio::test]
    async fn a_key_without_placeholders_is_one_tally() {
        constant("1").await.unwrap();
        assert_limited(constant("2").await);
    }

    #[rate_limit(key = "{ token.name }", rule(count = 1, per = "60s"))]
    async fn consumed(token: Token) -> Result<String, Rejection> {
        Ok(token.name)
    }

    struct Token {
        name: String,
    }

    #[tokio::test]
    async fn a_placeholder_leaves_its_argument_to_the_body() {
        let token = || Token { name: "t".into() };
        assert_eq!(consumed(token()).await.unwrap(), "t");
        assert_limited(consumed(token()).await);
    }
}

mod arguments {
    use super::*;

    struct Json<T>(T);

    struct Order {
        id: u64,
        lines: Vec<&'static str>,
    }

    #[rate_limit(key = "{order.id}", rule(count = 1, per = "60s"))]
    async fn wrapped(Json(order): Json<Order>) -> Result<usize, Rejection> {
        Ok(order.lines.len())
    }

    #[rate_limit(key = "{a}:{c}:{id}:{first}:{whole.0}:{_unused}", rule(count = 1, per = "60s"))]
    async fn nested(
        (a, [_, c]): (u8, [u8; 2]),
        Order { id, lines: _ }: Order,
        [first, ..]: [u8; 3],
        whole @ Json(_): Json<u8>,
        _unused: u8,
        _: u8,
    ) -> Result<u64, Rejection> {
        Ok(u64::from(a) + u64::from(c) + id + u64::from(first) + u64::from(whole.0))
    }

    #[tokio::test]
    async fn destructured_arguments_are_named_by_what_they_bind() {
        let order = |id| Json(Order { id, lines: vec!["x"] });
        assert_eq!(wrapped(order(1)).await.unwrap(), 1);
        wrapped(order(2)).await.unwrap();
        assert_limited(wrapped(order(1)).await);
        let call = |id| nested((1, [2, 3]), order(id).0, [4, 5, 6], Json(7), 8, 9);
        assert_eq!(call(1).await.unwrap(), 16);
        call(2).await.unwrap();
        assert_limited(call(1).await);
    }

    #[rate_limit(key = "{list.len()}", rule(count = 1, per = "60s"))]
    async fn mutable(mut list: Vec<u8>) -> Result<usize, Rejection> {
        list.push(1);
        Ok(list.len())
    }

    #[rate_limit(key = "{list.len()}", rule(count = 1, per = "60s"))]
    async fn mutably_borrowed(list: &mut Vec<u8>) -> Result<&u8, Rejection> {
        list.push(1);
        Ok(&list[0])
    }

    #[tokio::test]
    async fn mutable_arguments_stay_mutable() {
        assert_eq!(mutable(vec![1]).await.unwrap(), 2);
        assert_limited(mutable(vec![2]).await);
        let mut list = Vec::new();
        assert_eq!(*mutably_borrowed(&mut list).await.unwrap(), 1);
        assert_limited(mutably_borrowed(&mut Vec::new()).await);
    }

    #[rate_limit(key = "{value}:{text}:{other}", rule(count = 1, per = "60s"))]
    async fn generic<'a, T, const N: usize>(
        value: T,
        text: &'a str,
        other: impl Display + Clone,
        bytes: [u8; N],
    ) -> Result<(T, &'a str, String, usize), Rejection>
    where
        T: Display + Clone,
    {
        Ok((value, text, other.to_string(), bytes.len()))
    }

    #[tokio::test]
    async fn generic_functions_share_one_tally_among_their_instances() {
        assert_eq!(generic(1, "a", 'x', [0; 3]).await.unwrap(), (1, "a", "x".to_owned(), 3));
        assert_limited(generic("1", "a", "x", [0; 4]).await);
        generic(2, "a", 'x', [0; 3]).await.unwrap();
    }

    #[rate_limit(key = "{name}", rule(count = 1, per = "60s"))]
    async fn unsized_and_boxed(name: Box<str>, ip: &(dyn Display + Sync)) -> Result<String, Rejection> {
        Ok(format!("{name}{ip}"))
    }

    #[tokio::test]
    async fn unsized_values_can_be_shown() {
        assert_eq!(unsized_and_boxed("a".into(), &IpAddr::from([127, 0, 0, 1])).await.unwrap(), "a127.0.0.1");
        assert_limited(unsized_and_boxed("a".into(), &1).await);
    }
}

mod methods {
    use super::*;

    struct Service {
        tenant: &'static str,
        limiter: Limiter,
        calls: u32,
    }

    impl Service {
        fn new(tenant: &'static str) -> Self {
            Self { tenant, limiter: Limiter::in_memory(), calls: 0 }
        }

        #[rate_limit(key = "{self.tenant}", rule(count = 1, per = "60s"), limiter = self.limiter)]
        async fn by_reference(&self) -> Result<&str, Rejection> {
            Ok(self.tenant)
        }

        #[rate_limit(key = "{self.tenant}", rule(count = 1, per = "60s"))]
        async fn by_mutable_reference(&mut self) -> Result<u32, Rejection> {
            self.calls += 1;
            Ok(self.calls)
        }

        #[rate_limit(key = "{self.tenant}", rule(count = 1, per = "60s"))]
        async fn by_value(mut self) -> Result<Self, Rejection> {
            self.calls += 1;
            Ok(self)
        }

        #[rate_limit(key = "{self.tenant}", rule(count = 1, per = "60s"))]
        async fn shared(self: Arc<Self>, extra: u32) -> Result<u32, Failure> {
            Ok(self.calls + extra)
        }

        #[rate_limit(key = "{tenant}", rule(count = 1, per = "60s"))]
        async fn associated(tenant: &'static str) -> Result<Self, Rejection> {
            Ok(Self::new(tenant))
        }
    }

    #[tokio::test]
    async fn methods_are_limited_however_they_take_self() {
        let mut service = Service::new("acme");
        assert_eq!(service.by_reference().await.unwrap(), "acme");
        assert_limited(service.by_reference().await);
        assert_eq!(service.by_mutable_reference().await.unwrap(), 1);
        assert_limited(service.by_mutable_reference().await);
        assert_eq!(service.by_value().await.unwrap().calls, 2);
        assert_limited(Service::new("acme").by_value().await);
        assert_eq!(Service::new("umbrella").by_value().await.unwrap().calls, 1);
        assert_eq!(Arc::new(Service::new("acme")).shared(1).await.unwrap(), 1);
        assert_limited(Arc::new(Service::new("acme")).shared(1).await);
        assert_eq!(Service::associated("acme").await.unwrap().tenant, "acme");
        assert_limited(Service::associated("acme").await);
    }

    #[tokio::test]
    async fn a_limiter_of_ones_own_has_tallies_of_its_own() {
        let (one, another) = (Service::new("own"), Service::new("own"));
        one.by_reference().await.unwrap();
        another.by_reference().await.unwrap();
        assert_limited(one.by_reference().await);
    }

    trait Greet {
        async fn greet(&self, name: &str) -> Result<String, Rejection>;
    }

    impl Greet for Service {
        #[rate_limit(key = "{self.tenant}:{name}", rule(count = 1, per = "60s"))]
        async fn greet(&self, name: &str) -> Result<String, Rejection> {
            Ok(format!("hello {name}"))
        }
    }

    trait Provided: Display + Sync {
        #[rate_limit(key = "{self}", rule(count = 1, per = "60s"))]
        async fn provided(&self) -> Result<(), Rejection> {
            Ok(())
        }
    }

    impl Provided for u8 {}

    #[tokio::test]
    async fn trait_methods_are_limited_as_implemented_and_as_provided() {
        let service = Service::new("acme");
        assert_eq!(service.greet("ann").await.unwrap(), "hello ann");
        assert_limited(service.greet("ann").await);
        1.provided().await.unwrap();
        2.provided().await.unwrap();
        assert_limited(1.provided().await);
    }
}

mod limiters {
    use super::*;

    #[rate_limit(rule(count = 1, per = "60s"), limiter = limiter)]
    async fn owned(limiter: Limiter) -> Result<Limiter, Rejection> {
        Ok(limiter)
    }

    #[rate_limit(rule(count = 1, per = "60s"), limiter = limiter)]
    async fn borrowed(limiter: &Limiter) -> Result<(), Rejection> {
        let _ = limiter;
        Ok(())
    }

    #[rate_limit(rule(count = 1, per = "60s"), limiter = state.0.clone())]
    async fn temporary(state: (Arc<Limiter>, u8)) -> Result<Arc<Limiter>, Rejection> {
        Ok(state.0)
    }

    #[rate_limit(rule(count = 1, per = "60s"), limiter = cell.borrow())]
    async fn guarded(cell: Rc<RefCell<Limiter>>) -> Result<(), Rejection> {
        cell.replace(Limiter::in_memory());
        Ok(())
    }

    #[tokio::test]
    async fn anything_that_derefs_to_a_limiter_will_do() {
        let limiter = Limiter::in_memory();
        owned(limiter.clone()).await.unwrap();
        assert_limited(owned(limiter.clone()).await);
        borrowed(&limiter).await.unwrap();
        assert_limited(borrowed(&limiter).await);
        let shared = Arc::new(limiter.clone());
        temporary((shared.clone(), 0)).await.unwrap();
        assert_limited(temporary((shared, 0)).await);
        guarded(Rc::new(RefCell::new(limiter.clone()))).await.unwrap();
        assert_limited(guarded(Rc::new(RefCell::new(limiter))).await);
    }
}

mod futures {
    use super::*;

    fn assert_send<T: Send>(future: T) -> T {
        future
    }

    #[rate_limit(key = "{count.get()}:{name}", rule(count = 1, per = "60s"), limiter = source.limiter())]
    async fn not_sync(count: Cell<u32>, name: String, source: Source) -> Result<u32, Rejection> {
        let _ = (name, source);
        Ok(count.get())
    }

    struct Source;

    impl Source {
        #[allow(clippy::unused_self)]
        fn limiter(&self) -> NotSend {
            NotSend(Rc::new(Limiter::installed().clone()))
        }
    }

    struct NotSend(Rc<Limiter>);

    impl std::ops::Deref for NotSend {
        type Target = Limiter;

        fn deref(&self) -> &Limiter {
            &self.0
        }
    }

    #[tokio::test]
    async fn a_future_is_send_although_placeholders_and_limiter_are_not_sync_or_send() {
        let call = || assert_send(not_sync(Cell::new(7), "x".into(), Source));
        assert_eq!(call().await.unwrap(), 7);
        assert_limited(call().await);
    }

    #[rate_limit(key = "{name}", rule(count = 1, per = "60s"))]
    async fn not_send(name: Rc<str>) -> Result<Rc<str>, Rejection> {
        tokio::task::yield_now().await;
        Ok(name)
    }

    #[tokio::test]
    async fn a_future_need_not_be_send() {
        assert_eq!(&*not_send("x".into()).await.unwrap(), "x");
        assert_limited(not_send("x".into()).await);
    }

    #[rate_limit(key = "{of}", rule(count = 1, per = "60s"))]
    async fn opaque(of: u8) -> Result<impl Iterator<Item = u8>, Box<dyn std::error::Error + Send + Sync>> {
        Ok((0..of).map(|n| n * 2))
    }

    #[rate_limit(rule(count = 1, per = "60s"))]
    async fn wholly_opaque() -> impl IntoText {
        Ok::<_, Rejection>("text")
    }

    trait IntoText {
        fn into_text(self) -> String;
    }

    impl IntoText for Result<&str, Rejection> {
        fn into_text(self) -> String {
            self.map_or_else(|rejection| rejection.to_string(), str::to_owned)
        }
    }

    #[tokio::test]
    async fn what_is_returned_may_be_opaque() {
        assert_eq!(opaque(3).await.unwrap().collect::<Vec<_>>(), [0, 2, 4]);
        assert!(opaque(3).await.err().unwrap().to_string().starts_with("too many requests"));
        assert_eq!(wholly_opaque().await.into_text(), "text");
        assert!(wholly_opaque().await.into_text().starts_with("too many requests"));
    }
}

mod hygiene {
    use super::*;

    #[allow(non_snake_case)]
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
}

mod bodies {
    use super::*;

    #[rate_limit(rule(count = 1, per = "60s"))]
    async fn with_items() -> Result<u8, Failure> {
        #![allow(unused_variables)]
        use std::convert::identity;
        const ONE: u8 = 1;
        fn two() -> u8 {
            2
        }
        let unused = 0;
        let value: Result<u8, Rejection> = Ok(identity(ONE) + two());
        Ok(value?)
    }

    #[tokio::test]
    async fn a_body_keeps_its_items_and_inner_attributes() {
        assert_eq!(with_items().await.unwrap(), 3);
        assert_limited(with_items().await);
    }

    #[rate_limit(key = "{n}", rule(count = 1, per = "60s"))]
    async fn recursive(n: u8) -> Result<u8, Rejection> {
        if n == 0 {
            return Ok(0);
        }
        Ok(Box::pin(recursive(n - 1)).await? + 1)
    }

    #[tokio::test]
    async fn a_body_may_call_its_own_function() {
        assert_eq!(recursive(3).await.unwrap(), 3);
        assert_limited(recursive(1).await);
    }

    #[rate_limit(rule(count = 1, per = "60s"))]
    async fn coerced() -> Result<Box<dyn Display>, Rejection> {
        Ok(Box::new("shown"))
    }

    #[tokio::test]
    async fn a_body_coerces_to_its_return_type() {
        assert_eq!(coerced().await.unwrap().to_string(), "shown");
        assert_limited(coerced().await);
    }

    static LOG: std::sync::Mutex<Vec<&'static str>> = std::sync::Mutex::new(Vec::new());

    fn ran() -> Result<(), Rejection> {
        LOG.lock().unwrap().push("body");
        Ok(())
    }

    /// Does something in its very first token, which looks like an item.
    #[rate_limit(rule(count = 1, per = "60s"))]
    async fn macro_first() -> Result<(), Rejection> {
        drop(vec![ran()]);
        ran()
    }

    macro_rules! run {
        () => {
            drop(ran())
        };
    }

    #[rate_limit(rule(count = 1, per = "60s"))]
    async fn call_first() -> Result<(), Rejection> {
        run!();
        ran()
    }

    #[tokio::test]
    async fn nothing_of_a_denied_body_runs() {
        macro_first().await.unwrap();
        call_first().await.unwrap();
        let before = LOG.lock().unwrap().len();
        assert_eq!(before, 4);
        assert_limited(macro_first().await);
        assert_limited(call_first().await);
        assert_eq!(LOG.lock().unwrap().len(), before);
    }
}
