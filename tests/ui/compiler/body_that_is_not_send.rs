use tallygate::{Rejection, rate_limit};

#[rate_limit(rule(count = 10, per = "60s"))]
async fn count(text: std::rc::Rc<str>) -> Result<usize, Rejection> {
    std::future::ready(()).await;
    Ok(text.len())
}

fn send<T: Send>(_: T) {}

fn main() {
    send(count("one".into()));
}
