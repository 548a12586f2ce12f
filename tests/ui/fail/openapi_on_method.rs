use tallygate::{Rejection, rate_limit};

struct Lottery;

impl Lottery {
    #[rate_limit(rule(count = 10, per = "60s"), openapi = DrawLimits)]
    async fn draw(&self) -> Result<(), Rejection> {
        Ok(())
    }
}

fn main() {}
