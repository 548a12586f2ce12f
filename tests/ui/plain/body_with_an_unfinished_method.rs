use tallygate::Rejection;

// As it is without the attribute.
async fn count(text: &str) -> Result<u32, Rejection> {
    text.
}

fn main() {}
