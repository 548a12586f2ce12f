use tallygate::{Rejection, rate_limit};

trait Sender {
    #[rate_limit(rule(count = 10, per = "60s"))]
    async fn send_code(&self, phone: &str) -> Result<(), Rejection>;
}

fn main() {}
