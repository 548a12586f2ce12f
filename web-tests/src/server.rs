//! Servers on free ports of 127.0.0.1.

use std::net::SocketAddr;

use axum::Router;
use tokio::net::TcpListener;

/// Serves a router that knows the addresses of its clients, until the test ends.
pub async fn serve(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    address
}
