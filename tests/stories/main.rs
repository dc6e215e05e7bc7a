//! Stories over real HTTP, against the example `lab` as a process of its own: its routes, restarts, sockets. What an
//! attacker does is in `tests/attacks`.
//!
//! What the journeys prove in process is proven here of the whole: sockets, processes, files. Time is moved by
//! `POST /lab/clock`; nothing sleeps but bounded polling. Each story that a store could change runs on every store.
//!
//! Run alone, they want `cargo build --example lab` before: only a whole `cargo test` builds examples by itself.
#![cfg(all(feature = "axum", feature = "sqlite"))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, also in the helpers that clippy does not know to be tests"
)]

#[path = "../common/every_store.rs"]
mod every_store;
#[path = "../common/jar.rs"]
mod jar;
#[path = "../common/lab.rs"]
mod lab;
#[path = "../common/left_out.rs"]
mod left_out;
#[path = "../common/proxy.rs"]
mod proxy;
#[path = "../common/scratch.rs"]
mod scratch;
#[path = "../common/unique.rs"]
mod unique;
#[path = "../common/user_agent.rs"]
mod user_agent;

mod processes;
mod routes;
mod sockets;

use every_store::on_every_store;
