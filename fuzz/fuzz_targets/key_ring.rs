//! See `tests/properties/key_ring.rs`.
#![no_main]
#![allow(dead_code, reason = "the shared files serve all targets")]

#[path = "../../tests/properties/edits.rs"]
mod edits;
#[path = "../../tests/properties/key_ring.rs"]
mod property;

libfuzzer_sys::fuzz_target!(|data: &[u8]| property::check(data));
