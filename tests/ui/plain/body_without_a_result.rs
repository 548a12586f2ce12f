use tallygate::Rejection;

// As it is without the attribute.
async fn count(number: u32) -> Result<u32, Rejection> {
    drop(number);
}

fn main() {}
