//! A browser's cookie jar, which is the reference user agent, and the rules that every answer of ours must obey.
//!
//! Every line is held against the user agent as it is read: it must be stored, and a removal must remove.
//! What an answer sets is read into [`Lines`] first, and only then taken by a [`Jar`]: so a test can deliver answers in
//! any order, or lose one. A cloned jar is a thief's copy.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::collections::BTreeMap;

use http::{HeaderMap, header};

use crate::user_agent::{Place, Profile, UserAgent, Way};

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
            .map(|line| line.to_str().expect("a Set-Cookie line is ASCII"))
            .filter(|line| is_ours(line))
            .map(Line::checked)
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

/// Whether a line sets the session cookie or the renewal token, under whatever prefix. The application's own are not judged
/// here.
fn is_ours(line: &str) -> bool {
    let name = line.split('=').next().unwrap_or_default();
    let base = ["__Host-Http-", "__Host-", "__Secure-"].iter().find_map(|prefix| name.strip_prefix(prefix));
    matches!(base.unwrap_or(name), "session" | "renewal")
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
        let line = Self { text: text.into(), name: name.into(), value: value.into(), max_age };
        line.check_against_browser();
        line
    }

    /// A browser that was never here does what the line says.
    fn check_against_browser(&self) {
        let mut browser = UserAgent::new(0, Profile::Layered);
        if self.max_age == 0 {
            // The same cookie, set: what a removal must find and remove.
            let set = self.text.replacen("=;", "=x;", 1).replace("Max-Age=0", "Max-Age=60");
            assert_eq!(browser.store(set.as_bytes(), SITE, Way::HTTP), Ok(()), "{set}");
            assert_eq!(browser.sent(SITE, false).len(), 1, "{set}");
        }
        self.is_taken_by(&mut browser);
        let sent = browser.cookie_string(SITE, false);
        if self.max_age == 0 {
            assert!(browser.all().is_empty(), "{} removes nothing", self.text);
        } else {
            assert_eq!(sent, format!("{}={}", self.name, self.value).into_bytes());
        }
        assert!(browser.sent(SITE, true).is_empty(), "a script sees {}", self.name);
    }

    fn is_taken_by(&self, browser: &mut UserAgent) {
        let stored = browser.store(self.text.as_bytes(), SITE, Way::HTTP);
        let expected = if self.max_age == 0 { Err("expired") } else { Ok(()) };
        assert_eq!(stored, expected, "{}", self.text);
    }
}

/// What a browser keeps of one site, over https.
#[derive(Clone)]
pub(crate) struct Jar(UserAgent);

impl Default for Jar {
    fn default() -> Self {
        Self(UserAgent::new(0, Profile::Layered))
    }
}

impl Jar {
    /// Does what an answer's lines say, at the second `now` of the test's clock.
    pub(crate) fn take(&mut self, lines: &Lines, now: u64) {
        self.0.now = second(now);
        for line in &lines.0 {
            line.is_taken_by(&mut self.0);
        }
    }

    /// The Cookie field at the second `now`; `None` where there is nothing to send.
    pub(crate) fn field(&self, now: u64) -> Option<String> {
        let mut agent = self.0.clone();
        agent.now = second(now);
        let field = String::from_utf8(agent.cookie_string(SITE, false)).expect("ASCII");
        (!field.is_empty()).then_some(field)
    }

    /// The value under `name`, expired or not.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let kept = self.0.kept(name)?;
        std::str::from_utf8(&kept.value).ok()
    }

    /// Puts a value under `name` by hand.
    pub(crate) fn put(&mut self, name: &str, value: impl Into<String>) {
        self.0.plant(name, value.into(), SITE);
    }

    /// The same jar without `name`.
    pub(crate) fn without(&self, name: &str) -> Self {
        let mut jar = self.clone();
        jar.0.forget(name);
        jar
    }
}

fn second(now: u64) -> i64 {
    i64::try_from(now).expect("the test's clock is of this age")
}

/// Where every answer here comes from: a host name stands for itself, and none is told apart by its cookies.
const SITE: Place<'_> = Place { scheme: "https", host: "app.example.com", path: "/some/page?with=query" };

fn words(headers: &HeaderMap, name: header::HeaderName) -> Vec<String> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(|word| word.trim().to_ascii_lowercase()).collect()
}
