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
}
