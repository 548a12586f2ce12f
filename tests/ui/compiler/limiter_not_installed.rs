#![deny(unused_must_use)]

use tallygate::{Error, Limiter};

async fn start() -> Result<(), Error> {
    Limiter::connect("redis://127.0.0.1/").await?;
    Ok(())
}

fn main() {
    let _ = start();
}
