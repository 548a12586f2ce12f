use tallygate::Rejection;

// As it is without the attribute.
async fn count(text: String) -> Result<usize, Rejection> {
    drop(text);
    Ok(text.len())
}

fn main() {}
