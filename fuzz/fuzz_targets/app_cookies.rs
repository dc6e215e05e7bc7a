//! See `tests/properties/app_cookies.rs`.
#![no_main]
#![allow(dead_code, reason = "the shared files serve all targets")]

#[path = "../../tests/common/forge.rs"]
mod forge;
#[path = "../../tests/properties/app_cookies.rs"]
mod property;
#[path = "../../tests/properties/site.rs"]
mod site;
#[path = "../../tests/common/user_agent.rs"]
mod user_agent;

libfuzzer_sys::fuzz_target!(|data: &[u8]| property::check(data));
