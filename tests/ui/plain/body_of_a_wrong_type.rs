use tallygate::Rejection;

// As it is without the attribute.
async fn count() -> Result<u32, Rejection> {
    let count: u32 = "one";
    Ok(count)
}

fn main() {}
