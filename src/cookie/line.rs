//! A Set-Cookie line that somebody else wrote, taken apart as browsers do it (RFC 6265bis §5.6): split at `;`, at the first
//! `=`, spaces and tabs stripped; of an attribute stated twice the last counts.

use std::{borrow::Cow, time::Duration};

use time::OffsetDateTime;

use super::{date, parse::strip, set_cookie::MAX_LIFETIME};
use crate::clock::Timestamp;

/// A line and what its attributes say. An attribute that is not there is `None`; one without a value has an empty one.
#[derive(Debug, Clone)]
pub(super) struct Line<'a> {
    /// `None` where there is no `=`: browsers take the whole for the value of a cookie without a name.
    pub(super) name: Option<&'a [u8]>,
    pub(super) value: &'a [u8],
    pub(super) path: Option<Cow<'a, [u8]>>,
    pub(super) domain: Option<Cow<'a, [u8]>>,
    pub(super) max_age: Option<Cow<'a, [u8]>>,
    pub(super) expires: Option<Cow<'a, [u8]>>,
    pub(super) same_site: Option<Cow<'a, [u8]>>,
    pub(super) secure: bool,
    pub(super) http_only: bool,
    pub(super) partitioned: bool,
    /// What is no attribute of the standard, such as `Priority=High`, as it was written.
    pub(super) others: Vec<&'a [u8]>,
    /// Whether an attribute stands twice.
    pub(super) repeats: bool,
    /// Whether an attribute has more than 1024 bytes, so that browsers ignore it.
    pub(super) overlong: bool,
}

impl<'a> Line<'a> {
    /// Reads a line.
    pub(super) fn parse(line: &'a [u8]) -> Self {
        let mut parts = line.split(|byte| *byte == b';');
        let (name, value) = halves(parts.next().unwrap_or_default());
        let mut read = Self {
            name: value.map(|_| name),
            value: value.unwrap_or(name),
            path: None,
            domain: None,
            max_age: None,
            expires: None,
            same_site: None,
            secure: false,
            http_only: false,
            partitioned: false,
            others: Vec::new(),
            repeats: false,
            overlong: false,
        };
        for part in parts {
            read.attribute(part);
        }
        read
    }

    fn attribute(&mut self, part: &'a [u8]) {
        let (name, value) = halves(part);
        let value = value.unwrap_or_default();
        if value.len() > MOST_ATTRIBUTE {
            self.overlong = true;
            return;
        }
        let known = |wanted: &str| name.eq_ignore_ascii_case(wanted.as_bytes());
        let valued = if known("path") {
            &mut self.path
        } else if known("domain") {
            &mut self.domain
        } else if known("max-age") {
            &mut self.max_age
        } else if known("expires") {
            &mut self.expires
        } else if known("samesite") {
            &mut self.same_site
        } else {
            let flag = if known("secure") {
                &mut self.secure
            } else if known("httponly") {
                &mut self.http_only
            } else if known("partitioned") {
                &mut self.partitioned
            } else {
                if !name.is_empty() {
                    self.others.push(strip(part));
                }
                return;
            };
            self.repeats |= std::mem::replace(flag, true);
            return;
        };
        self.repeats |= valued.replace(Cow::Borrowed(value)).is_some();
    }

    /// The line that says this.
    pub(super) fn write(&self) -> Vec<u8> {
        let mut line = Vec::with_capacity(128);
        if let Some(name) = self.name {
            line.extend_from_slice(name);
            line.push(b'=');
        }
        line.extend_from_slice(self.value);
        let valued = [
            (&b"Path"[..], &self.path),
            (b"Domain", &self.domain),
            (b"Max-Age", &self.max_age),
            (b"Expires", &self.expires),
        ];
        for (name, value) in valued.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
            line.extend_from_slice(&[b"; ", name, b"=", value].concat());
        }
        let flags = [(&b"; Secure"[..], self.secure), (b"; HttpOnly", self.http_only)];
        flags.iter().filter(|(_, is_set)| *is_set).for_each(|(flag, _)| line.extend_from_slice(flag));
        if let Some(same_site) = &self.same_site {
            line.extend_from_slice(&[b"; SameSite=", same_site.as_ref()].concat());
        }
        if self.partitioned {
            line.extend_from_slice(b"; Partitioned");
        }
        for other in &self.others {
            line.extend_from_slice(&[b"; ", *other].concat());
        }
        line
    }
}

/// The seconds of a Max-Age as a browser reads it, between 0 and 400 days; `None` where it ignores it.
pub(super) fn seconds(text: &[u8]) -> Option<u64> {
    let (is_past, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() && !is_past || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = std::str::from_utf8(digits).ok()?.parse().unwrap_or(u64::MAX);
    Some(if is_past { 0 } else { number.min(MAX_LIFETIME.as_secs()) })
}

/// How long a cookie is to live from `now`; `None` where the line does not say, zero for a removal.
pub(super) fn life(line: &Line<'_>, now: Timestamp) -> Option<Duration> {
    if let Some(seconds) = line.max_age.as_deref().and_then(seconds) {
        return Some(Duration::from_secs(seconds));
    }
    let left = line.expires.as_deref().and_then(date::parse)? - instant(now)?;
    Some(Duration::try_from(left).unwrap_or(Duration::ZERO))
}

pub(super) fn instant(at: Timestamp) -> Option<OffsetDateTime> {
    OffsetDateTime::from_unix_timestamp(i64::try_from(at.as_seconds()).ok()?).ok()
}

/// A line as the sealing of cookies needs it.
#[derive(Debug)]
pub(crate) struct Parts<'a> {
    pub(crate) value: &'a [u8],
    /// Everything behind the value but the lifetime, as it stands in a line.
    pub(crate) attributes: Vec<u8>,
    /// The lifetime, if it is stated; zero for a removal.
    pub(crate) life: Option<Duration>,
}

/// The parts of a line that sets `name`; `None` for a line that sets another cookie.
pub(crate) fn parts<'a>(line: &'a [u8], name: &str, now: Timestamp) -> Option<Parts<'a>> {
    let line = Line::parse(line);
    if line.name != Some(name.as_bytes()) {
        return None;
    }
    let (value, life) = (line.value, life(&line, now));
    let rest = Line { name: None, value: b"", max_age: None, expires: None, ..line };
    Some(Parts { value, attributes: rest.write(), life })
}

/// What stands before and after the first `=`, stripped.
fn halves(part: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'=', part).and_then(|at| part.split_at_checked(at)) {
        Some((name, rest)) => (strip(name), rest.get(1..).map(strip)),
        None => (strip(part), None),
    }
}

/// Browsers ignore a longer attribute.
const MOST_ATTRIBUTE: usize = 1024;
