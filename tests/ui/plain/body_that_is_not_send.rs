use tallygate::Rejection;

// As it is without the attribute.
async fn count(text: std::rc::Rc<str>) -> Result<usize, Rejection> {
    std::future::ready(()).await;
    Ok(text.len())
}

fn send<T: Send>(_: T) {}

fn main() {
    send(count("one".into()));
}
