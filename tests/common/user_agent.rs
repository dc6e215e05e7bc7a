//! A browser's cookie store, by the text of RFC 6265bis §5 and, in the layered profile, with the `__Http-` prefixes that
//! browsers add to it.
//!
//! It is what everything that the library emits is held against: a line must be stored, and a removal must remove.
//! `tests/user_agent` holds it against the expectations of web-platform-tests and http-state, to the case as the
//! reference implementation in the shared tools is.
#![allow(dead_code, reason = "each test uses some of it")]

use std::net::IpAddr;

use time::{Date, Month};

/// Where a cookie is set from or read at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) scheme: &'a str,
    pub(crate) host: &'a str,
    /// A query may follow.
    pub(crate) path: &'a str,
}

/// How a line came.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    /// By a script, not by HTTP.
    pub(crate) script: bool,
    /// In answer to a request of the site itself.
    pub(crate) same_site: bool,
    /// In answer to a navigation of the whole window.
    pub(crate) top_level: bool,
}

impl Way {
    /// In answer to an ordinary request.
    pub(crate) const HTTP: Self = Self { script: false, same_site: true, top_level: false };
}

/// Which rules hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// RFC 6265bis alone.
    Bis,
    /// With `__Http-` and `__Host-Http-`, as Chromium and Firefox have them.
    Layered,
}

/// A cookie as it is kept.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) name: Vec<u8>,
    pub(crate) value: Vec<u8>,
    domain: String,
    host_only: bool,
    path: Vec<u8>,
    secure: bool,
    http_only: bool,
    pub(crate) same_site: SameSite,
    /// Second of its end.
    expiry: Option<i64>,
    created: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SameSite {
    Strict,
    Lax,
    None,
    /// Unstated, or not understood.
    Default,
}

/// The store.
#[derive(Debug, Clone)]
pub(crate) struct UserAgent {
    cookies: Vec<Kept>,
    /// The second it is, since 1970.
    pub(crate) now: i64,
    profile: Profile,
    tick: u64,
}

/// The attributes of a line, as far as they count; of one stated twice the last counts.
#[derive(Debug, Default)]
struct Attributes {
    expires: Option<i64>,
    max_age: Option<i64>,
    domain: Option<Vec<u8>>,
    /// The path, if it began with a slash.
    path: Option<Option<Vec<u8>>>,
    secure: bool,
    http_only: bool,
    same_site: Option<SameSite>,
    partitioned: bool,
}

type Pair<'a> = (&'a [u8], &'a [u8]);

impl UserAgent {
    pub(crate) const fn new(now: i64, profile: Profile) -> Self {
        Self { cookies: Vec::new(), now, profile, tick: 0 }
    }

    /// Takes a Set-Cookie line; the error says why it is not stored.
    pub(crate) fn store(&mut self, line: &[u8], place: Place<'_>, way: Way) -> Result<(), &'static str> {
        let ((name, value), stated) = parse(line, self.now)?;
        if name.is_empty() && value.is_empty() {
            return Err("empty");
        }
        let expiry = stated.max_age.or(stated.expires);
        let host = place.host.to_ascii_lowercase();
        let (domain, host_only) = domain(&stated, &host)?;
        let path_stated = stated.path.is_some();
        let given_path = stated.path.clone().flatten();
        let path = given_path.clone().unwrap_or_else(|| default_path(place.path).as_bytes().to_vec());
        let secure_connection = place.scheme == "https";
        if !secure_connection && stated.secure {
            return Err("secure-from-insecure");
        }
        if way.script && stated.http_only {
            return Err("httponly-from-script");
        }
        if !stated.secure && !secure_connection && self.overlays_secure(name, &domain, &path) {
            return Err("leave-secure-alone");
        }
        let same_site = stated.same_site.unwrap_or(SameSite::Default);
        if same_site != SameSite::None && !way.same_site && !way.top_level {
            return Err("samesite-cross-site");
        }
        if same_site == SameSite::None && !stated.secure {
            return Err("samesite-none-needs-secure");
        }
        let rooted = match self.profile {
            Profile::Bis => path_stated && path == b"/",
            Profile::Layered => given_path.as_deref() == Some(b"/"),
        };
        self.prefixes(name, value, &stated, stated.secure && host_only && rooted)?;
        if stated.partitioned && !stated.secure {
            return Err("partitioned-needs-secure");
        }
        self.tick += 1;
        let mut created = self.tick;
        let same = |kept: &Kept| {
            kept.name == name && kept.domain == domain && kept.host_only == host_only && kept.path == path
        };
        if let Some(at) = self.cookies.iter().position(same) {
            if way.script && self.cookies[at].http_only {
                return Err("httponly-overwrite");
            }
            created = self.cookies.remove(at).created;
        }
        let (name, value) = (name.to_vec(), value.to_vec());
        let (secure, http_only) = (stated.secure, stated.http_only);
        self.cookies.push(Kept {
            name,
            value,
            domain,
            host_only,
            path,
            secure,
            http_only,
            same_site,
            expiry,
            created,
        });
        if expiry.is_some_and(|end| end <= self.now) {
            self.forget_expired();
            return Err("expired");
        }
        Ok(())
    }

    /// What would be sent to `place`, in order. Those that ended are forgotten first.
    pub(crate) fn sent(&mut self, place: Place<'_>, script: bool) -> Vec<&Kept> {
        self.forget_expired();
        let host = place.host.to_ascii_lowercase();
        let goes = |kept: &&Kept| {
            let covered = if kept.host_only {
                kept.domain == host
            } else {
                domain_matches(&host, &kept.domain) && !is_public_suffix(&kept.domain)
            };
            covered
                && path_matches(place.path, &kept.path)
                && (!kept.secure || place.scheme == "https")
                && !(script && kept.http_only)
        };
        let mut sent: Vec<&Kept> = self.cookies.iter().filter(goes).collect();
        sent.sort_by_key(|kept| (std::cmp::Reverse(kept.path.len()), kept.created));
        sent
    }

    /// The Cookie field for `place`; empty where there is nothing to send.
    pub(crate) fn cookie_string(&mut self, place: Place<'_>, script: bool) -> Vec<u8> {
        let pair = |kept: &&Kept| {
            let equals: &[u8] = if kept.name.is_empty() { b"" } else { b"=" };
            [kept.name.as_slice(), equals, &kept.value].concat()
        };
        self.sent(place, script).iter().map(pair).collect::<Vec<_>>().join(&b"; "[..])
    }

    /// Whatever is kept under `name`, sent or not.
    pub(crate) fn kept(&self, name: &str) -> Option<&Kept> {
        self.cookies.iter().find(|kept| kept.name == name.as_bytes())
    }

    /// Everything that is kept.
    pub(crate) fn all(&self) -> &[Kept] {
        &self.cookies
    }

    /// Puts a cookie into the store by hand, instead of all that are kept under its name.
    pub(crate) fn plant(&mut self, name: &str, value: String, place: Place<'_>) {
        self.forget(name);
        self.tick += 1;
        self.cookies.push(Kept {
            name: name.into(),
            value: value.into_bytes(),
            domain: place.host.into(),
            host_only: true,
            path: b"/".to_vec(),
            secure: true,
            http_only: true,
            same_site: SameSite::Lax,
            expiry: None,
            created: self.tick,
        });
    }

    /// Forgets whatever is kept under `name`.
    pub(crate) fn forget(&mut self, name: &str) {
        self.cookies.retain(|kept| kept.name != name.as_bytes());
    }

    fn forget_expired(&mut self) {
        let now = self.now;
        self.cookies.retain(|kept| kept.expiry.is_none_or(|end| now < end));
    }

    fn overlays_secure(&self, name: &[u8], domain: &str, path: &[u8]) -> bool {
        self.cookies.iter().any(|kept| {
            kept.name == name
                && kept.secure
                && (domain_matches(&kept.domain, domain) || domain_matches(domain, &kept.domain))
                && path_matches(&String::from_utf8_lossy(path), &kept.path)
        })
    }

    fn prefixes(
        &self,
        name: &[u8],
        value: &[u8],
        stated: &Attributes,
        host: bool,
    ) -> Result<(), &'static str> {
        let layered = self.profile == Profile::Layered;
        let begins = |text: &[u8], prefix: &str| {
            text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
        };
        if begins(name, "__secure-") && !stated.secure {
            return Err("__secure-");
        }
        if begins(name, "__host-") && !host {
            return Err("__host-");
        }
        if layered && begins(name, "__http-") && !(stated.secure && stated.http_only) {
            return Err("__http-");
        }
        if layered && begins(name, "__host-http-") && !(host && stated.http_only) {
            return Err("__host-http-");
        }
        let hidden: &[&str] = if layered {
            &["__secure-", "__host-", "__http-", "__host-http-"]
        } else {
            &["__secure-", "__host-"]
        };
        if name.is_empty() && hidden.iter().any(|prefix| begins(value, prefix)) {
            return Err("nameless-prefix");
        }
        Ok(())
    }
}

/// The name, the value and the attributes of a line (RFC 6265bis §5.6).
fn parse(line: &[u8], now: i64) -> Result<(Pair<'_>, Attributes), &'static str> {
    if line.iter().any(|byte| matches!(byte, 0x00..=0x08 | 0x0a..=0x1f | 0x7f)) {
        return Err("ctl");
    }
    let mut parts = line.split(|byte| *byte == b';');
    let pair = parts.next().unwrap_or_default();
    let (name, value) = cut(pair).unwrap_or((b"", pair));
    let (name, value) = (stripped(name), stripped(value));
    if name.len() + value.len() > 4096 {
        return Err("size");
    }
    let mut stated = Attributes::default();
    for part in parts {
        let (key, value) = cut(part).unwrap_or((part, b""));
        let (key, value) = (stripped(key), stripped(value));
        if value.len() > 1024 {
            continue;
        }
        match key.to_ascii_lowercase().as_slice() {
            b"expires" => {
                if let Some(date) = parse_date(value) {
                    stated.expires = Some(date.min(now + LONGEST));
                }
            }
            b"max-age" => {
                if let Some(seconds) = seconds(value) {
                    stated.max_age = Some(if seconds <= 0 { i64::MIN } else { now + seconds });
                }
            }
            b"domain" => {
                stated.domain = Some(value.strip_prefix(b".").unwrap_or(value).to_ascii_lowercase());
            }
            b"path" => stated.path = Some(value.starts_with(b"/").then(|| value.to_vec())),
            b"secure" => stated.secure = true,
            b"httponly" => stated.http_only = true,
            b"samesite" => {
                stated.same_site = Some(match value.to_ascii_lowercase().as_slice() {
                    b"none" => SameSite::None,
                    b"strict" => SameSite::Strict,
                    b"lax" => SameSite::Lax,
                    _ => SameSite::Default,
                });
            }
            b"partitioned" => stated.partitioned = true,
            _ => {}
        }
    }
    Ok(((name, value), stated))
}

/// The domain a cookie belongs to, and whether it is the host alone.
fn domain(stated: &Attributes, host: &str) -> Result<(String, bool), &'static str> {
    let stated = stated.domain.clone().unwrap_or_default();
    if !stated.is_ascii() {
        return Err("domain-nonascii");
    }
    let domain = String::from_utf8(stated).map_err(|_| "domain-nonascii")?;
    if domain.is_empty() || (is_public_suffix(&domain) && domain == host) {
        return Ok((host.into(), true));
    }
    if is_public_suffix(&domain) {
        return Err("public-suffix");
    }
    if domain_matches(host, &domain) { Ok((domain, false)) } else { Err("domain-mismatch") }
}

/// The second that a date stands for (RFC 6265bis §5.1.1).
pub(crate) fn parse_date(text: &[u8]) -> Option<i64> {
    let is_delimiter =
        |byte: &u8| matches!(byte, 0x09 | 0x20..=0x2f | 0x3b..=0x40 | 0x5b..=0x60 | 0x7b..=0x7e);
    let (mut clock, mut day, mut month, mut year) = (None, None, None, None);
    for token in text.split(is_delimiter).filter(|token| !token.is_empty()) {
        if clock.is_none() {
            clock = clock_of(token);
            if clock.is_some() {
                continue;
            }
        }
        if day.is_none() {
            day = number(token, 1, 2);
            if day.is_some() {
                continue;
            }
        }
        if month.is_none() {
            month = month_of(token);
            if month.is_some() {
                continue;
            }
        }
        if year.is_none() {
            year = number(token, 2, 4);
        }
    }
    let ((hour, minute, second), day, month, year) = (clock?, day?, month?, year?);
    let year = match year {
        70..=99 => year + 1900,
        0..=69 => year + 2000,
        other => other,
    };
    if year < 1601 {
        return None;
    }
    let date = Date::from_calendar_date(
        i32::try_from(year).ok()?,
        Month::try_from(month).ok()?,
        u8::try_from(day).ok()?,
    );
    let narrow = |number: u32| u8::try_from(number).ok();
    let at = date.ok()?.with_hms(narrow(hour)?, narrow(minute)?, narrow(second)?).ok()?;
    Some(at.assume_utc().unix_timestamp())
}

fn clock_of(token: &[u8]) -> Option<(u32, u32, u32)> {
    let mut parts = token.splitn(3, |byte| *byte == b':');
    let whole = |part: &[u8]| if part.iter().all(u8::is_ascii_digit) { number(part, 1, 2) } else { None };
    Some((whole(parts.next()?)?, whole(parts.next()?)?, number(parts.next()?, 1, 2)?))
}

/// A number of `least` to `most` digits at the start of `token`, before its end or something that is no digit.
fn number(token: &[u8], least: usize, most: usize) -> Option<u32> {
    let digits = token.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits < least || digits > most {
        return None;
    }
    std::str::from_utf8(&token[..digits]).ok()?.parse().ok()
}

fn month_of(token: &[u8]) -> Option<u8> {
    let start = token.get(..3)?.to_ascii_lowercase();
    let months = b"janfebmaraprmayjunjulaugsepoctnovdec";
    let at = months.chunks(3).position(|month| month == start)?;
    u8::try_from(at + 1).ok()
}

/// The seconds of a Max-Age, cut to the longest life.
fn seconds(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: i64 = std::str::from_utf8(digits).ok()?.parse().unwrap_or(LONGEST);
    Some(if text.starts_with(b"-") { -number } else { number.min(LONGEST) })
}

fn domain_matches(host: &str, domain: &str) -> bool {
    let below = || host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
    host == domain || (below() && host.trim_matches(['[', ']']).parse::<IpAddr>().is_err())
}

fn default_path(path: &str) -> &str {
    let path = before_query(path);
    match path.rfind('/') {
        Some(last) if path.starts_with('/') && last > 0 => path.get(..last).unwrap_or_default(),
        _ => "/",
    }
}

fn path_matches(path: &str, kept: &[u8]) -> bool {
    let path = before_query(path).as_bytes();
    match path.strip_prefix(kept) {
        Some([]) => true,
        Some([next, ..]) => kept.ends_with(b"/") || *next == b'/',
        None => false,
    }
}

fn before_query(path: &str) -> &str {
    path.split('?').next().unwrap_or_default()
}

/// By the list that is compiled into the crate `psl`; an address is none.
fn is_public_suffix(domain: &str) -> bool {
    domain.parse::<IpAddr>().is_err() && psl::suffix_str(domain) == Some(domain)
}

fn cut(bytes: &[u8]) -> Option<Pair<'_>> {
    let at = bytes.iter().position(|byte| *byte == b'=')?;
    Some((&bytes[..at], &bytes[at + 1..]))
}

fn stripped(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// 400 days.
const LONGEST: i64 = 34_560_000;
