//! Connections over the streams of the process.

use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use ::redis::aio::{ConnectionLike, MultiplexedConnection};
use ::redis::{AsyncConnectionConfig, Client, Cmd, ConnectionAddr, Pipeline, RedisFuture, RedisResult, Value};
use tokio::task::AbortHandle;

use super::process::{Stream, current};
use super::tasks::spawn;

/// A connection to a server. It is closed when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct DrivenConnection {
    connection: MultiplexedConnection,
    _driver: Option<Arc<AbortOnDrop>>,
}

/// The task that reads and writes. The client library itself ends it only when every question has been answered.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(crate) async fn open(client: &Client, config: &AsyncConnectionConfig) -> RedisResult<DrivenConnection> {
    if current().is_none() {
        let connection = client.get_multiplexed_async_connection_with_config(config).await?;
        return Ok(DrivenConnection { connection, _driver: None });
    }
    let info = client.get_connection_info();
    let (ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. }) = info.addr() else {
        return Err(io::Error::from(io::ErrorKind::Unsupported).into());
    };
    let stream = TcpStream::connect((host, *port)).await?;
    let (connection, driver) =
        MultiplexedConnection::new_with_config(info.redis_settings(), stream, config.clone()).await?;
    let driver = AbortOnDrop(spawn(driver).abort_handle());
    Ok(DrivenConnection { connection, _driver: Some(Arc::new(driver)) })
}

/// Opens streams of the process.
pub(crate) struct TcpStream;

impl TcpStream {
    pub(crate) async fn connect((host, port): (&str, u16)) -> io::Result<Box<dyn Stream>> {
        match current() {
            Some(process) => process.connect(host, port).await,
            None => Ok(Box::new(tokio::net::TcpStream::connect((host, port)).await?)),
        }
    }
}

impl Deref for DrivenConnection {
    type Target = MultiplexedConnection;

    fn deref(&self) -> &MultiplexedConnection {
        &self.connection
    }
}

impl DerefMut for DrivenConnection {
    fn deref_mut(&mut self) -> &mut MultiplexedConnection {
        &mut self.connection
    }
}

impl ConnectionLike for DrivenConnection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        self.connection.req_packed_command(command)
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        self.connection.req_packed_commands(pipeline, offset, count)
    }

    fn get_db(&self) -> i64 {
        self.connection.get_db()
    }
}
