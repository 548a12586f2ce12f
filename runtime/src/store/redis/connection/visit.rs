//! Why a node is asked about a slot.

use std::iter;

use ::redis::aio::MultiplexedConnection;
use ::redis::{Cmd, ErrorKind, FromRedisValue, RedisError, RedisResult};

/// Why a node is asked about a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visit {
    /// It serves the slot, as far as this process knows.
    Owner,
    /// The owner says so: the slot is on its way to this node, and so are the keys that the owner does not have any more.
    Importer,
}

impl Visit {
    /// Sends commands in one round trip. Each has an answer of its own.
    pub(crate) async fn send<T: FromRedisValue>(
        self,
        connection: &mut MultiplexedConnection,
        commands: impl Iterator<Item = Cmd>,
    ) -> RedisResult<Vec<RedisResult<T>>> {
        let mut pipeline = ::redis::pipe();
        pipeline.ignore_errors();
        for command in commands {
            if self == Self::Importer {
                // It holds for one command.
                pipeline.cmd("ASKING").ignore();
            }
            pipeline.add_command(command);
        }
        pipeline.query_async(connection).await
    }

    /// Sends one command.
    pub(crate) async fn send_one<T: FromRedisValue>(
        self,
        connection: &mut MultiplexedConnection,
        command: &Cmd,
    ) -> RedisResult<T> {
        match self {
            Self::Owner => command.query_async(connection).await,
            Self::Importer => only(self.send(connection, iter::once(command.clone())).await?),
        }
    }
}

/// Returns the answer to the only command that was sent.
pub(crate) fn only<T>(mut answers: Vec<RedisResult<T>>) -> RedisResult<T> {
    let missing = || RedisError::from((ErrorKind::UnexpectedReturnType, "a command has no answer"));
    answers.pop().unwrap_or_else(|| Err(missing()))
}
