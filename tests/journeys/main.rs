//! Journeys: what a browser and an application live through together, in process, promise by promise.
//!
//! A real axum router runs behind the layer; time is moved by hand; a spy counts what the store is asked; every answer
//! is held against the rules for cookies and caches before a test looks at it. Each test says in its own handlers what
//! the application does, so that nothing but the layer stands between the test and its promise.
//!
//! ```text
//! stage     a site: clock, spied store, events, layer
//! browser   one browser of it: jar, User-Agent, address
//! device    a browser's key, for device-bound sessions
//! gate      a handler that stops in the middle until it is let go
//! handlers  what applications do again and again
//! spy       the store that counts, and fails when told to
//! ```
#![cfg(feature = "axum")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test fails by panicking, also in the helpers that clippy does not know to be tests"
)]

/// Makes of each promise two tests: one over a store in memory, one over a file.
macro_rules! on_every_store {
    ($($promise:ident),* $(,)?) => {
        mod on_memory {
            $(#[tokio::test]
            async fn $promise() {
                super::$promise(crate::stage::Stage::memory().await).await;
            })*
        }
        #[cfg(feature = "sqlite")]
        mod on_sqlite {
            $(#[tokio::test]
            async fn $promise() {
                super::$promise(crate::stage::Stage::sqlite().await).await;
            })*
        }
    };
}

mod browser;
#[path = "../common/device.rs"]
mod device;
mod gate;
mod handlers;
#[path = "../common/jar.rs"]
mod jar;
#[path = "../common/scratch.rs"]
mod scratch;
mod spy;
mod stage;
#[path = "../common/user_agent.rs"]
mod user_agent;

mod account;
mod anonymous;
mod binding;
mod bound;
mod builder;
mod claims;
mod client;
mod cookie_policy;
mod costs;
mod cross_site;
mod diagnosis;
mod duplicates;
mod forged;
mod forms;
mod keys;
mod login;
mod logout;
mod manners;
mod model;
mod outage;
mod place;
mod reauthentication;
mod recent_proof;
mod renewal;
mod rotation;
mod sealed_cookies;
mod secrets;
mod software_key;
mod special_requests;
mod staying_in;
mod tower_sessions;
mod writes;
