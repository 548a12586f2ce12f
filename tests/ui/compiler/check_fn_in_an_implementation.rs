use tallygate::{Rejection, rate_limit};

trait SendCodes {
    async fn send_code(&self) -> Result<(), Rejection>;
}

struct Sms;

impl SendCodes for Sms {
    #[rate_limit(rule(count = 10, per = "60s"), check_fn = send_code_limit)]
    async fn send_code(&self) -> Result<(), Rejection> {
        Ok(())
    }
}

fn main() {}
