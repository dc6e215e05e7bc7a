//! The reference user agent against web-platform-tests and http-state: it must agree with them exactly where the
//! reference implementation does, and keep or refuse each line for the same reason.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "../common/corpus.rs"]
mod corpus;
#[path = "../common/user_agent.rs"]
mod user_agent;

use corpus::Tally;
use serde_json::Value;
use time::{OffsetDateTime, format_description::well_known::Rfc2822};
use user_agent::{Place, Profile, UserAgent, Way, parse_date};

/// 2026-11-30 12:00, the clock of the web-platform-tests file.
const WPT_CLOCK: i64 = 1_796_040_000;

/// 2018-01-01, the clock of the http-state file.
const HTTP_STATE_CLOCK: i64 = 1_514_764_800;

fn place<'a>(case: &'a Value, member: &str) -> Place<'a> {
    let text = |name: &str| case[member][name].as_str().unwrap();
    Place { scheme: text("scheme"), host: text("host"), path: text("path") }
}

/// Plays a case: what becomes of each line, and what is sent afterwards.
fn play(case: &Value, clock: i64, profile: Profile) -> (Vec<&'static str>, String) {
    let mut agent = UserAgent::new(clock, profile);
    let is_script = |way: &Value| matches!(way.as_str(), Some("script" | "dom"));
    let way = Way {
        script: is_script(&case["via"]),
        same_site: case["same_site_request"].as_bool().unwrap_or(true),
        top_level: false,
    };
    let lines = case["set_cookie"].as_array().unwrap();
    let store = |line: &Value| {
        let stored = agent.store(line.as_str().unwrap().as_bytes(), place(case, "set_from"), way);
        stored.err().unwrap_or("stored")
    };
    let stored = lines.iter().map(store).collect();
    let script = is_script(&case["read_at"]["api"]);
    let sent = agent.cookie_string(place(case, "read_at"), script);
    (stored, String::from_utf8(sent).unwrap())
}

fn expected(case: &Value) -> Vec<&str> {
    case["reference_store_result"].as_array().unwrap().iter().map(|result| result.as_str().unwrap()).collect()
}

#[test]
fn web_platform_tests() {
    let Some(file) = corpus::read("wpt_cookies.json") else { return };
    let mut tally = Tally::new("wpt_cookies");
    let mut mismatches = 0;
    for case in file["cases"].as_array().unwrap() {
        let (stored, sent) = play(case, WPT_CLOCK, Profile::Layered);
        let mut right = stored == expected(case);
        if case["reference_mismatch"].is_null() {
            right &= case["expect_cookie_string"] == sent;
        } else {
            // The browsers' tests expect otherwise than the text says; the reference goes by the text.
            mismatches += 1;
            right &= case["expect_cookie_string"] != sent;
        }
        tally.case(case["id"].as_str().unwrap(), right);
    }
    assert_eq!(mismatches, 3);
    tally.finish(930);
}

#[test]
fn http_state() {
    let Some(file) = corpus::read("http_state_parser.json") else { return };
    let mut tally = Tally::new("http_state_parser");
    let mut differences = 0;
    for case in file["cases"].as_array().unwrap() {
        let (stored, sent) = play(case, HTTP_STATE_CLOCK, Profile::Bis);
        let agrees = case["expect_cookie_string"] == sent;
        differences += u32::from(!agrees);
        let right = stored == expected(case)
            && case["rfc6265bis_reference"] == sent
            && agrees == case["reference_differs"].is_null();
        tally.case(case["id"].as_str().unwrap(), right);
    }
    assert_eq!(differences, 14, "nameless cookies are kept, controls refused");
    tally.finish(222);
}

#[test]
fn http_state_dates() {
    let Some(file) = corpus::read("http_state_dates.json") else { return };
    let mut tally = Tally::new("http_state_dates");
    for case in file["cases"].as_array().unwrap() {
        let expected = case["expected_imf_fixdate"].as_str().map(|text| {
            let text = text.replace("GMT", "+0000");
            OffsetDateTime::parse(&text, &Rfc2822).unwrap().unix_timestamp()
        });
        let read = parse_date(case["input"].as_str().unwrap().as_bytes());
        tally.case(case["id"].as_str().unwrap(), read == expected);
    }
    tally.finish(70);
}
