//! Real faults: servers that are killed, hang and fail over, proxies that delay, drop and reset, instances that stop in the
//! middle. Over HTTP, against the example `lab`, on servers of each test's own.
//!
//! Where `redis-server` or PostgreSQL is not installed, the tests that want it are left out; `left_out` says so.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking, also in the helpers that clippy does not know to be tests"
)]

#[path = "../common/jar.rs"]
mod jar;
#[path = "../common/lab.rs"]
mod lab;
#[path = "../common/proxy.rs"]
mod proxy;
#[path = "../common/scratch.rs"]
mod scratch;
#[path = "../common/servers.rs"]
mod servers;
#[path = "../common/unique.rs"]
mod unique;
#[path = "../common/user_agent.rs"]
mod user_agent;

mod database;
mod failover;
mod full;
mod instances;
mod opening;
mod outage;
mod repeated;
mod stage;

/// Says what is left out, past the capture of the test harness.
#[test]
fn left_out() {
    use std::io::Write as _;
    for (is_there, what) in [
        (servers::is_there("redis-server"), "Redis (redis-server is not installed)"),
        (servers::postgres_programs().is_some(), "PostgreSQL (it is not installed)"),
    ] {
        if !is_there {
            let _ = writeln!(std::io::stderr(), "left out: faults of {what}");
        }
    }
}
