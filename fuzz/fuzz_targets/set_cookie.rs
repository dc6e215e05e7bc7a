//! See `tests/properties/set_cookie.rs`.
#![no_main]
#![allow(dead_code, reason = "the shared files serve all targets")]

#[path = "../../tests/properties/set_cookie.rs"]
mod property;
#[path = "../../tests/common/user_agent.rs"]
mod user_agent;

libfuzzer_sys::fuzz_target!(|data: &[u8]| property::check(data));
