//! The shared test data, where it is at hand: a published crate does not carry it, and then a test says so.
#![allow(dead_code, reason = "each test file uses some of it")]
#![allow(clippy::print_stdout, reason = "the counts are what a reader of the output looks for")]

use std::path::Path;

use serde_json::Value;

/// A file of the corpus; `None`, with a word on standard error, where there is no corpus.
pub(crate) fn read(name: &str) -> Option<Value> {
    let text = read_text(name)?;
    Some(serde_json::from_str(&text).expect("the corpus is JSON"))
}

/// The same, as text.
pub(crate) fn read_text(name: &str) -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus").join(name);
    match std::fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(_) => {
            eprintln!("left out: {name} (no corpus beside this checkout)");
            None
        }
    }
}

/// Every test of a Wycheproof file, with the members of its group laid under its own.
pub(crate) fn wycheproof(file: &Value) -> Vec<Value> {
    let mut tests = Vec::new();
    for group in file["testGroups"].as_array().unwrap() {
        for test in group["tests"].as_array().unwrap() {
            let mut test = test.clone();
            for (key, value) in group.as_object().unwrap() {
                if key != "tests" && test.get(key).is_none() {
                    test[key] = value.clone();
                }
            }
            tests.push(test);
        }
    }
    tests
}

/// The bytes of a hexadecimal string.
pub(crate) fn hex(value: &Value) -> Vec<u8> {
    hex_text(value.as_str().unwrap())
}

/// The same, of a text.
pub(crate) fn hex_text(text: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap();
    text.as_bytes()
        .chunks(2)
        .map(|pair| u8::try_from(digit(pair[0]) << 4 | digit(pair[1])).unwrap())
        .collect()
}

/// Counts cases, and fails with the names of those that failed.
pub(crate) struct Tally {
    name: &'static str,
    passed: usize,
    failed: Vec<String>,
}

impl Tally {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, passed: 0, failed: Vec::new() }
    }

    pub(crate) fn case(&mut self, id: &str, passed: bool) {
        if passed {
            self.passed += 1;
        } else {
            self.failed.push(id.to_owned());
        }
    }

    /// `at_least` guards against a corpus that shrank, or a filter that dropped what it should not.
    pub(crate) fn finish(self, at_least: usize) {
        println!("CORPUS {}: {} passed, {} failed", self.name, self.passed, self.failed.len());
        assert!(self.failed.is_empty(), "{}: failed {:?}", self.name, self.failed);
        assert!(
            self.passed >= at_least,
            "{}: only {} of {at_least} cases were there",
            self.name,
            self.passed
        );
    }
}
