//! The properties that the fuzz targets check, as a bounded run: some thousand inputs each, the kept corpora of the
//! fuzzers, and what they once found (`fuzz/corpus/`). `PROPERTY_CASES=100000 cargo test --test properties` runs more.
//!
//! Each property takes bytes, so that a fuzzer's finding is a file and a test at once.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::string_slice,
    unreachable_pub,
    reason = "a test fails by panicking; the fuzz targets share these files"
)]

mod app_cookies;
mod cookie_header;
#[path = "../common/device.rs"]
mod device;
mod device_endpoints;
mod edits;
#[path = "../common/forge.rs"]
mod forge;
mod key_ring;
mod renewal_token;
mod request_fields;
mod sealed_cookie;
mod set_cookie;
mod site;
#[path = "../common/user_agent.rs"]
mod user_agent;

use std::path::Path;

use proptest::{
    collection::vec,
    prelude::*,
    sample::select,
    test_runner::{Config, RngSeed, TestRunner},
};

/// Bytes at random, with words that lead somewhere among them.
fn inputs(words: &'static [&'static [u8]]) -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => select(words).prop_map(<[u8]>::to_vec),
        3 => vec(any::<u8>(), 1..4),
        2 => vec(b' '..=b'~', 1..20),
        1 => vec(any::<u8>(), 0..400),
    ];
    (any::<u8>(), vec(piece, 0..24)).prop_map(|(first, pieces)| {
        let mut bytes = vec![first];
        pieces.into_iter().for_each(|piece| bytes.extend(piece));
        bytes
    })
}

/// The same sequences each time, unless more are asked for: a suite that fails now and then is none.
fn seed() -> RngSeed {
    if std::env::var_os("PROPERTY_CASES").is_some() { RngSeed::Random } else { RngSeed::Fixed(1) }
}

fn hold(name: &str, words: &'static [&'static [u8]], check: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
    if !corpus.is_dir() {
        eprintln!("left out: fuzz/corpus/{name} (a published crate does not carry it)");
    }
    for entry in std::fs::read_dir(&corpus).into_iter().flatten().flatten() {
        check(&std::fs::read(entry.path()).unwrap());
    }
    let cases = std::env::var("PROPERTY_CASES").ok().and_then(|number| number.parse().ok()).unwrap_or(4000);
    // A finding is printed; what is kept of it is a file in the corpus, not a seed.
    let config = Config { cases, failure_persistence: None, rng_seed: seed(), ..Config::default() };
    TestRunner::new(config)
        .run(&inputs(words), |input| {
            check(&input);
            Ok(())
        })
        .unwrap();
}

#[test]
fn device_endpoints() {
    hold(
        "device_endpoints",
        &[
            b"{\"jti\":\"",
            b"\"}",
            b"dbsc+jwt",
            b"\"alg\":\"ES256\"",
            b"\"jwk\":{",
            b".",
            b"\0\0\xC0",
            b"\0\x10\xD0",
            b"\\",
        ],
        device_endpoints::check,
    );
}

#[test]
fn cookie_header() {
    hold(
        "cookie_header",
        &[
            b"\xFC",
            b"\xFD",
            b"; \xF8=",
            b"\xF8=\xF9",
            b"\xFA=\xFB",
            b"\xFE=\xF9",
            b"\xFF",
            b"\0",
            b"; ",
            b";",
            b"=",
            b" ",
            b"\t",
            b"\"",
            b",",
            b"\\",
            b"$Version=1; ",
            b"__host-http-session=",
            b"%",
            b"\x80",
            b"a=b",
        ],
        cookie_header::check,
    );
}

#[test]
fn sealed_cookie() {
    hold(
        "sealed_cookie",
        &[b"\x00\x00\xF0", b"\x00\x01\xC0", b"AQ", b"=", b"==", b"\x00", b"\xFF\xFF\xE0"],
        |input| {
            sealed_cookie::check(input);
        },
    );
}

#[test]
fn renewal_token() {
    hold(
        "renewal_token",
        &[
            b".",
            b"eyJhbGciOiJub25lIn0",
            b"{\"iss\":",
            b"\"https://app.example.com\"",
            b",\"aud\":",
            b",\"gen\":1",
            b",\"iat\":18446744073709551615",
            b",\"exp\":",
            b",\"ctx\":{",
            b"[[[[[[[[",
            b"\\u0000",
            b"}",
            b"\"sid\":\"\"",
            b"1e999",
            b"-1",
            b",\"ses\":\"AQ\"",
            b"null",
        ],
        renewal_token::check,
    );
}

#[test]
fn key_ring() {
    hold(
        "key_ring",
        &[
            b"5f3a9c05 active 2026-11-30T12:00:00Z ",
            b"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE",
            b"\n",
            b";",
            b"index BQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQU",
            b"#",
            b" retired ",
            b" pending ",
            b" revoked ",
            b"\r",
        ],
        key_ring::check,
    );
}

#[test]
fn set_cookie() {
    hold(
        "set_cookie",
        &[
            b"\n",
            b"/",
            b"example.com",
            b"com",
            b"a",
            b"session",
            b"__Host-",
            b"=",
            b"; ",
            b"Max-Age=",
            b"60",
            b"0",
            b"34560000",
            b"34560001",
            b"Path=/",
            b"Domain=.",
            b"Secure",
            b"HttpOnly",
            b"SameSite=None",
            b"Expires=",
            b"Fri, 07 Aug 2007 08:04:19 GMT",
            b"\t",
            b"\"",
            b"%",
            b"$",
        ],
        set_cookie::check,
    );
}

/// The checks above would hold of a site that refuses everybody, and of a forger who makes rubbish.
#[test]
fn the_honest_are_let_in_and_the_forger_makes_what_the_library_makes() {
    site::with(|site| {
        let claims = forge::Forger::claims_of(&site.token);
        assert_eq!(site.forger.token(&claims), site.token, "ES256 is deterministic here");
        let plaintext = site.forger.opened(&site.session);
        for (name, value) in [
            (site::SESSION, site.session.clone()),
            (site::SESSION, site.forger.session_cookie(&plaintext)),
            (site::RENEWAL, site.token.clone()),
        ] {
            assert!(site.ask_with(name, value.as_bytes()).unwrap().is_alice(), "{name}={value}");
        }
        assert!(site.ask([]).unwrap().is_nobody());
    });
}

#[test]
fn app_cookies() {
    hold(
        "app_cookies",
        &[
            b"\n",
            b"a=b",
            b"prefs=x",
            b"; ",
            b";",
            b"=",
            b"Path=/",
            b"Path=",
            b"Domain=example.com",
            b"Domain=.Example.com",
            b"Domain=",
            b"Secure",
            b"HttpOnly",
            b"SameSite=None",
            b"SameSite=Lax",
            b"SameSite=",
            b"Partitioned",
            b"Max-Age=0",
            b"Max-Age=-1",
            b"Max-Age=99999999999",
            b"Expires=Thu, 01-Jan-1970 00:00:01 GMT",
            b"Expires=Tue, 01 Dec 2099 12:00:00 GMT",
            b"__Host-a=b",
            b"__host-a",
            b"__Secure-a=b",
            b"__Http-a=b",
            b"__Host-Http-a=b",
            b"__Host-Http-session=x",
            b"%5F%5FHost-a",
            b"$a",
            b" ",
            b"\t",
            b"\"",
            b"\x80",
        ],
        app_cookies::check,
    );
}

#[test]
fn request_fields() {
    hold(
        "request_fields",
        &[
            b"\n\x00app.example.com",
            b"\n\x00app.example.com:443",
            b"\n\x00evil.example",
            b"\n\x01https://app.example.com",
            b"\n\x01https://evil.example",
            b"\n\x01null",
            b"\n\x02same-origin",
            b"\n\x02cross-site",
            b"\n\x02none",
            b"\n\x03navigate",
            b"\n\x04iframe",
            b"\n\x05websocket",
            b"\n\x0610.0.0.7, 203.0.113.9",
            b"\n\x07app.example.com",
            b"\n\x07evil.example",
            b"\n\x08http",
            b"\n\x08https",
            b"\n\x09for=\"[::1]:1\"",
            b"\n\x16prefs=x",
            b"\n\x0b\"Chromium\"",
            b",",
            b" ",
            b":",
            b"%",
        ],
        request_fields::check,
    );
}
