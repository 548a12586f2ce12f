//! A function may name who decides.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use tallygate::{Limiter, Rejection, rate_limit};

use crate::assert_limited;

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
    drop(cell.replace(Limiter::in_memory()));
    Ok(())
}

/// Borrows from a guard, which is a temporary of the expression.
#[rate_limit(rule(count = 1, per = "60s"), limiter = state.lock().unwrap().as_ref().unwrap())]
async fn locked(state: &Mutex<Option<Limiter>>) -> Result<(), Rejection> {
    *state.lock().unwrap() = None;
    Ok(())
}

#[tokio::test]
async fn a_limiter_may_be_borrowed_from_a_temporary_of_its_expression() {
    let limiter = Limiter::in_memory();
    let state = Mutex::new(Some(limiter.clone()));
    locked(&state).await.unwrap();
    *state.lock().unwrap() = Some(limiter);
    assert_limited(locked(&state).await);
}

#[tokio::test]
async fn anything_that_derefs_to_a_limiter_will_do() {
    let limiter = Limiter::in_memory();
    drop(owned(limiter.clone()).await.unwrap());
    assert_limited(owned(limiter.clone()).await);
    borrowed(&limiter).await.unwrap();
    assert_limited(borrowed(&limiter).await);
    let shared = Arc::new(limiter.clone());
    temporary((shared.clone(), 0)).await.unwrap();
    assert_limited(temporary((shared, 0)).await);
    guarded(Rc::new(RefCell::new(limiter.clone()))).await.unwrap();
    assert_limited(guarded(Rc::new(RefCell::new(limiter))).await);
}
