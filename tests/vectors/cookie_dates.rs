//! Dates as http-state has them.

use super::*;
use crate::corpus::{self, Tally};

#[test]
fn http_state_dates() {
    let Some(file) = corpus::read("http_state_dates.json") else { return };
    let mut tally = Tally::new("http_state_dates (policy)");
    for case in file["cases"].as_array().unwrap() {
        let date = parse(case["input"].as_str().unwrap().as_bytes()).and_then(fixdate);
        tally.case(case["id"].as_str().unwrap(), date.as_deref() == case["expected_imf_fixdate"].as_str());
    }
    tally.finish(70);
}

#[test]
fn only_one_form_is_a_servers() {
    for (text, is_right) in [
        ("Tue, 01 Dec 2026 12:00:00 GMT", true),
        ("Tue, 1 Dec 2026 12:00:00 GMT", false),
        ("Mon, 01 Dec 2026 12:00:00 GMT", false),
        ("Tue, 01-Dec-2026 12:00:00 GMT", false),
        ("Tue Dec  1 12:00:00 2026", false),
        ("Tue, 01 Dec 2026 12:00:00 +0000", false),
    ] {
        let date = parse(text.as_bytes()).unwrap();
        assert_eq!(fixdate(date).as_deref(), Some("Tue, 01 Dec 2026 12:00:00 GMT"), "{text}");
        assert_eq!(is_fixdate(text.as_bytes(), date), is_right, "{text}");
    }
    for text in ["", "tomorrow", "Tue, 31 Feb 2026 12:00:00 GMT", "Tue, 01 Dec 1600 12:00:00 GMT"] {
        assert_eq!(parse(text.as_bytes()), None, "{text}");
    }
}
