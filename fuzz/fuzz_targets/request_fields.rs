//! See `tests/properties/request_fields.rs`.
#![no_main]
#![allow(dead_code, reason = "the shared files serve all targets")]

#[path = "../../tests/common/forge.rs"]
mod forge;
#[path = "../../tests/properties/request_fields.rs"]
mod property;
#[path = "../../tests/properties/site.rs"]
mod site;

libfuzzer_sys::fuzz_target!(|data: &[u8]| property::check(data));
