use tallygate::Rejection;

// As it is without the attribute.
async fn send_code(phone: &str) -> Result<(), Rejection> {
    if phone.is_empty() {
        return Ok(1);
    }
    Ok(())
}

fn main() {}
