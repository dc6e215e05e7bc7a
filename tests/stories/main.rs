//! Stories over real HTTP, against the example `lab` as a process of its own: races, lost answers, thieves, restarts.
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

#[path = "../common/jar.rs"]
mod jar;
#[path = "../common/lab.rs"]
mod lab;
#[path = "../common/scratch.rs"]
mod scratch;
#[path = "../common/user_agent.rs"]
mod user_agent;

mod lost_answers;
mod processes;
mod routes;
mod sockets;
mod tabs;
mod thieves;

/// Makes of each story two tests: one over a store in memory, one over a file.
macro_rules! on_every_store {
    ($($story:ident),* $(,)?) => {
        mod on_memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                super::$story(crate::lab::Lab::start(&crate::lab::Flags::memory())).await;
            })*
        }
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                let scratch = crate::scratch::Scratch::new();
                let flags = crate::lab::Flags::sqlite(&scratch.file("sessions.db"));
                super::$story(crate::lab::Lab::start(&flags)).await;
            })*
        }
    };
}
use on_every_store;
