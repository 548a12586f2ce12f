use tallygate::Rejection;

// As it is without the attribute.
async fn send_code(phone: &str) -> Result<(), Rejection> {
    let length: String = phone.len();
    drop(length);
    Ok(())
}

fn main() {}
