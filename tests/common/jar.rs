//! A browser's cookie jar, as far as our cookies need one, and the rules that every answer of ours must obey.
//!
//! What an answer sets is read into [`Lines`] first, and only then taken by a [`Jar`]: so a test can deliver answers in
//! any order, or lose one. A cloned jar is a thief's copy.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::collections::BTreeMap;

use http::{HeaderMap, header};

/// The name of the session cookie.
pub(crate) const SESSION: &str = "__Host-Http-session";
/// The name of the renewal token's cookie.
pub(crate) const RENEWAL: &str = "__Host-Http-renewal";

/// The Set-Cookie lines of one answer, each held against the rules.
#[derive(Clone, Default)]
pub(crate) struct Lines(Vec<Line>);

#[derive(Clone)]
struct Line {
    text: String,
    name: String,
    value: String,
    max_age: u64,
}

impl Lines {
    /// Reads an answer's lines, and fails the test where a browser or a cache could be misled by them.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let lines: Vec<Line> = headers
            .get_all(header::SET_COOKIE)
            .iter()
            .map(|line| Line::checked(line.to_str().expect("a Set-Cookie line is ASCII")))
            .collect();
        let mut names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), lines.len(), "one answer sets one cookie twice");
        if !lines.is_empty() {
            assert!(words(headers, header::CACHE_CONTROL).contains(&"no-store".into()), "{headers:?}");
            assert!(words(headers, header::VARY).contains(&"cookie".into()), "{headers:?}");
        }
        Self(lines)
    }

    /// Whether the answer leaves the jar as it is.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value that the answer sets `name` to; `None` where it leaves or removes it.
    pub(crate) fn sets(&self, name: &str) -> Option<&str> {
        self.line(name).map(|line| line.value.as_str()).filter(|value| !value.is_empty())
    }

    /// Whether the answer removes `name`.
    pub(crate) fn removes(&self, name: &str) -> bool {
        self.line(name).is_some_and(|line| line.max_age == 0)
    }

    /// For how many seconds the answer sets `name`.
    pub(crate) fn max_age(&self, name: &str) -> Option<u64> {
        self.line(name).map(|line| line.max_age)
    }

    /// The whole line for `name`.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.line(name).map(|line| line.text.as_str())
    }

    fn line(&self, name: &str) -> Option<&Line> {
        self.0.iter().find(|line| line.name == name)
    }
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|line| (&line.name, line.max_age))).finish()
    }
}

impl Line {
    fn checked(text: &str) -> Self {
        assert!(text.len() < 4096, "a line of {} bytes", text.len());
        let mut parts = text.split("; ");
        let (name, value) = parts.next().and_then(|pair| pair.split_once('=')).expect("name=value");
        let mut attributes = BTreeMap::new();
        for part in parts {
            let (attribute, value) = part.split_once('=').unwrap_or((part, ""));
            assert!(
                attributes.insert(attribute, value).is_none(),
                "{attribute} stands twice in {name}'s line"
            );
        }
        assert_eq!(attributes.remove("Path"), Some("/"), "{name}");
        assert_eq!(attributes.remove("Secure"), Some(""), "{name}");
        assert_eq!(attributes.remove("HttpOnly"), Some(""), "{name}");
        assert!(matches!(attributes.remove("SameSite"), Some("Lax" | "Strict")), "{name}");
        let max_age: u64 = attributes.remove("Max-Age").and_then(|text| text.parse().ok()).expect("Max-Age");
        assert!(max_age <= 400 * 24 * 3600, "{name}: browsers cut {max_age} s");
        if name.starts_with("__Secure-") {
            attributes.remove("Domain");
        }
        assert!(attributes.is_empty(), "{name}: {attributes:?}");
        assert!(!value.is_empty() || max_age == 0, "{name} is set to nothing");
        Self { text: text.into(), name: name.into(), value: value.into(), max_age }
    }
}

/// A jar. All it keeps is for one origin, over https.
#[derive(Clone, Default)]
pub(crate) struct Jar(BTreeMap<String, Kept>);

#[derive(Clone)]
struct Kept {
    value: String,
    /// The second of the test's clock from which on the browser has forgotten it.
    until: u64,
}

impl Jar {
    /// Does what an answer's lines say, at the second `now` of the test's clock.
    pub(crate) fn take(&mut self, lines: &Lines, now: u64) {
        for line in &lines.0 {
            if line.max_age == 0 {
                self.0.remove(&line.name);
            } else {
                let kept = Kept { value: line.value.clone(), until: now + line.max_age };
                self.0.insert(line.name.clone(), kept);
            }
        }
    }

    /// The Cookie field at the second `now`, over https; `None` where there is nothing to send.
    pub(crate) fn field(&self, now: u64) -> Option<String> {
        let live = self.0.iter().filter(|(_, kept)| now < kept.until);
        let pairs: Vec<String> = live.map(|(name, kept)| format!("{name}={}", kept.value)).collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }

    /// The value under `name`, expired or not.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|kept| kept.value.as_str())
    }

    /// Puts a value under `name` by hand.
    pub(crate) fn put(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.into(), Kept { value: value.into(), until: u64::MAX });
    }

    /// The same jar without `name`.
    pub(crate) fn without(&self, name: &str) -> Self {
        let mut jar = self.clone();
        jar.0.remove(name);
        jar
    }
}

fn words(headers: &HeaderMap, name: header::HeaderName) -> Vec<String> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(|word| word.trim().to_ascii_lowercase()).collect()
}
