//! See `tests/properties/device_endpoints.rs`.
#![no_main]
#![allow(dead_code, reason = "the shared files serve all targets")]

#[path = "../../tests/common/device.rs"]
mod device;
#[path = "../../tests/properties/edits.rs"]
mod edits;
#[path = "../../tests/common/forge.rs"]
mod forge;
#[path = "../../tests/properties/device_endpoints.rs"]
mod property;
#[path = "../../tests/properties/site.rs"]
mod site;

libfuzzer_sys::fuzz_target!(|data: &[u8]| property::check(data));
