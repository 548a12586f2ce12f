//! Limits in axum, asked over sockets by a client.

mod clients;
mod fields;
mod header_values;
mod limits;
mod own_context;
mod paths;
mod requests;
mod responses;
mod test_context;
mod twice;
