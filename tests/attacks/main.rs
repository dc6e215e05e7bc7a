//! The attacks that the library must defeat, black-box over real HTTP against the example `lab`, each named after its id
//! in the project's list. `SECURITY.md` has a row for each; `tests/attacks/prove` takes each defence out and sees its
//! tests fail.
//!
//! Run alone, they want `cargo build --example lab` before: only a whole `cargo test` builds examples by itself.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking, also in the helpers that clippy does not know to be tests"
)]

#[path = "../common/device.rs"]
mod device;
#[path = "../common/every_store.rs"]
mod every_store;
#[path = "../common/forge.rs"]
mod forge;
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

mod application_cookies;
mod cross_site;
mod database;
mod devices;
mod forgery;
mod guessing;
mod http2;
mod lifecycle;
mod lost_answers;
mod manners;
mod parsers;
mod races;
mod replay;
mod software_keys;
mod thieves;
mod tools;

use every_store::on_every_store;
