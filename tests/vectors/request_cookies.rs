//! The request parser and the near-miss detector against the corpus.

use super::*;
use crate::{
    cookie::{NearMiss, near_miss},
    corpus::{self, Tally, hex},
};

#[test]
fn request_cookies() {
    let Some(file) = corpus::read("request_cookies.json") else { return };
    let mut tally = Tally::new("request_cookies");
    for case in file["cases"].as_array().unwrap() {
        let fields: Vec<Vec<u8>> = case["cookie_headers_hex"].as_array().unwrap().iter().map(hex).collect();
        let fields = || fields.iter().map(Vec::as_slice);
        let name = case["protected_name"].as_str().unwrap();
        let [found] = find(fields(), [name]);
        let values: Vec<&str> = case["byte_exact_values"]
            .as_array()
            .unwrap()
            .iter()
            .map(|value| value.as_str().unwrap())
            .collect();
        let expected = match values.as_slice() {
            [] => Found::Nothing,
            [value] => Found::One(value.as_bytes()),
            _ => Found::Several,
        };
        let mut right = found == expected;
        // A value that a length or an alphabet keeps from being ours is handed on and refused where it is opened.
        if case["verdict"] == "use" {
            right &= matches!(found, Found::One(_));
        }
        let signals: Vec<&str> =
            case["signals"].as_array().unwrap().iter().map(|signal| signal.as_str().unwrap()).collect();
        let seen = near_miss(fields(), name).map(|miss| match miss {
            NearMiss::Case => "near-miss-case",
            NearMiss::Percent => "near-miss-percent",
            NearMiss::WhiteSpace => "near-miss-whitespace",
            NearMiss::Punctuation => "near-miss-punct",
            NearMiss::Nameless => "nameless",
            NearMiss::LegacyDollar => "legacy-dollar",
        });
        let must =
            signals.iter().find(|signal| signal.starts_with("near-miss") || **signal == "legacy-dollar");
        right &= seen.is_none_or(|seen| signals.contains(&seen)) && must.is_none_or(|_| seen.is_some());
        tally.case(case["id"].as_str().unwrap(), right);
    }
    tally.finish(44);
}

#[test]
fn two_names_are_found_in_one_pass_over_several_fields() {
    let fields = [&b"a=1; s=one;r=two"[..], b"\t s2=x; r =no;s"];
    assert_eq!(find(fields, ["s", "r"]), [Found::One(b"one"), Found::One(b"two")]);
    assert_eq!(find([&b"s=1"[..], b"s=1"], ["s", "r"]), [Found::Several, Found::Nothing]);
    assert_eq!(find([&b"s="[..]], ["s"]), [Found::One(b"")]);
    assert_eq!(find([&b""[..], b";;;", b"  "], ["s"]), [Found::Nothing]);
    let all: Vec<&[u8]> = all_of(fields.into_iter().chain([&b"s=three"[..]]), "s").collect();
    assert_eq!(all, [&b"one"[..], b"three"]);
}

/// How far a name is looked into, and what is none although it is close.
#[test]
fn near_misses_have_bounds() {
    const NAME: &str = "__Host-Http-session";
    let seen = |name: &str| near_miss([format!("{name}=x").as_bytes()], NAME);
    let encoded: String = NAME.bytes().map(|byte| format!("%{byte:02x}")).collect();
    assert_eq!(seen(&encoded), Some(NearMiss::Percent), "every character of it");
    assert_eq!(seen("..Host-Http-session"), Some(NearMiss::Punctuation));
    for none in
        ["xxHost-Http-session", "__Host.Http.session", "__Host-Http-sessions", "%5F_Host-Http-session0"]
    {
        assert_eq!(seen(none), None, "{none}");
    }
    let padded = |spaces: usize| format!("{}{NAME}", "\u{2000}".repeat(spaces));
    assert_eq!(seen(&padded(90)), Some(NearMiss::WhiteSpace));
    assert_eq!(seen(&padded(100)), None, "a name of sixteen times the length is not looked into");
}
