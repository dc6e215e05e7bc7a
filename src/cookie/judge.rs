//! A Set-Cookie line of the application, held against the rules, and mended where it can be (RFC 6265bis §4.1, §5.6, §5.7;
//! `__Http-` prefixes and CHIPS beside it).
//!
//! Mended is what a browser would ignore, cut or default anyway, so that the line says what happens to it; and what only
//! narrows who gets the cookie. What a browser would refuse, or what could stand for something else, is dropped.

use std::borrow::Cow;

use time::OffsetDateTime;

use super::{
    date,
    domain::CookieDomain,
    line::{Line, instant, life, seconds},
    name::is_token,
    near_miss::percent_decoded,
    origin::Origin,
    rule::CookieRule,
    set_cookie::{MAX_LIFETIME, MAX_LINE, is_cookie_octet, is_path},
};
use crate::clock::Timestamp;

/// Where and when a response is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sending<'a> {
    pub(crate) origin: &'a Origin,
    /// The path of the request, which a browser takes the default for Path from.
    pub(crate) path: &'a str,
    /// Whether another site's page asked for it as a part of itself.
    pub(crate) cross_site: bool,
    pub(crate) now: Timestamp,
}

/// What becomes of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It obeys.
    Keep,
    /// It obeys like this; so many rules were broken.
    Mend(Vec<u8>, Vec<CookieRule>),
    /// It cannot be mended.
    Drop(CookieRule),
}

/// Holds a line against the rules, but for those that `excepted` says do not count for it.
pub(super) fn judge(
    bytes: &[u8],
    line: &Line<'_>,
    sending: &Sending<'_>,
    excepted: impl Fn(CookieRule) -> bool,
) -> Outcome {
    let broken = Vec::new();
    let mut judging = Judging { line: line.clone(), sending, broken, excepted: &excepted };
    let dropped =
        [judging.spelling(bytes), judging.prefix(), judging.domain(), judging.reach(), judging.path()];
    if let Some(rule) = dropped.into_iter().flatten().find(|rule| !excepted(*rule)) {
        return Outcome::Drop(rule);
    }
    judging.lifetime();
    judging.note(CookieRule::Attribute, line.repeats);
    judging.note(CookieRule::Size, line.overlong);
    let mended = (!judging.broken.is_empty()).then(|| judging.line.write());
    let pair = line.name.unwrap_or_default().len() + line.value.len();
    if !excepted(CookieRule::Size) && (pair > 4096 || mended.as_deref().unwrap_or(bytes).len() >= MAX_LINE) {
        return Outcome::Drop(CookieRule::Size);
    }
    mended.map_or(Outcome::Keep, |line| Outcome::Mend(line, judging.broken))
}

struct Judging<'a, F> {
    line: Line<'a>,
    sending: &'a Sending<'a>,
    broken: Vec<CookieRule>,
    excepted: &'a F,
}

impl<F: Fn(CookieRule) -> bool> Judging<'_, F> {
    /// Notes that a rule was broken, if it was and counts; then the caller mends.
    fn note(&mut self, rule: CookieRule, is_broken: bool) -> bool {
        let counts = is_broken && !(self.excepted)(rule);
        if counts && !self.broken.contains(&rule) {
            self.broken.push(rule);
        }
        counts
    }

    fn spelling(&self, bytes: &[u8]) -> Option<CookieRule> {
        if bytes.iter().any(|byte| matches!(byte, 0..=8 | 10..=31 | 127)) {
            return Some(CookieRule::Control);
        }
        let name = self.line.name.unwrap_or_default();
        let decoded = percent_decoded(name);
        let is_look_alike = decoded != name && prefix_of(&decoded).is_some();
        if name.is_empty() || !name.iter().copied().all(is_token) || name.starts_with(b"$") || is_look_alike {
            return Some(CookieRule::Name);
        }
        (!self.line.value.iter().copied().all(is_cookie_octet)).then_some(CookieRule::Value)
    }

    /// What a name's prefix promises: stated where it was left out, refused where it is contradicted.
    fn prefix(&mut self) -> Option<CookieRule> {
        let name = self.line.name.unwrap_or_default();
        let Some(prefix) = prefix_of(name) else {
            // A spelling that one version of one browser had for a while.
            let misspelt = name.get(..11).is_some_and(|start| start.eq_ignore_ascii_case(b"__HostHttp-"));
            return misspelt.then_some(CookieRule::Prefix);
        };
        if !name.starts_with(prefix.as_bytes()) {
            return Some(CookieRule::Prefix);
        }
        if !self.line.secure && !self.sending.origin.is_secure() {
            return Some(CookieRule::Prefix);
        }
        let lacks_secure = !self.line.secure;
        self.line.secure |= self.note(CookieRule::Prefix, lacks_secure);
        let lacks_http_only = prefix.ends_with("Http-") && !self.line.http_only;
        self.line.http_only |= self.note(CookieRule::Prefix, lacks_http_only);
        if prefix.starts_with("__Host-") {
            match self.line.domain.as_deref() {
                Some([]) => {
                    self.note(CookieRule::Prefix, true);
                    self.line.domain = None;
                }
                Some(_) => return Some(CookieRule::Prefix),
                None => {}
            }
            match self.line.path.as_deref() {
                Some(b"/") => {}
                None => {
                    self.note(CookieRule::Prefix, true);
                    self.line.path = Some(Cow::Borrowed(b"/"));
                }
                Some(_) => return Some(CookieRule::Prefix),
            }
        }
        None
    }

    fn domain(&mut self) -> Option<CookieRule> {
        let stated = self.line.domain.clone()?;
        let written = stated.strip_prefix(b".").unwrap_or(&stated).to_ascii_lowercase();
        let named =
            std::str::from_utf8(&written).ok().map(|name| CookieDomain::new(name, self.sending.origin));
        match named {
            // Empty: the host alone, for a browser.
            _ if stated.is_empty() => self.line.domain = None,
            Some(Ok(_)) if *stated == *written => return None,
            Some(Ok(_)) => self.line.domain = Some(Cow::Owned(written)),
            _ => return Some(CookieRule::Domain),
        }
        self.note(CookieRule::Domain, true);
        None
    }

    /// Who gets the cookie: Secure, HttpOnly, SameSite, Partitioned.
    fn reach(&mut self) -> Option<CookieRule> {
        let lacks_secure = self.sending.origin.is_secure() && !self.line.secure;
        self.line.secure |= self.note(CookieRule::Secure, lacks_secure);
        let lacks_http_only = !self.line.http_only;
        self.line.http_only |= self.note(CookieRule::HttpOnly, lacks_http_only);
        let same_site = self.line.same_site.clone().unwrap_or_default();
        let says = |word: &str| same_site.eq_ignore_ascii_case(word.as_bytes());
        // An exception permits `None`; unstated it is in no case. What removes a cookie must name it as it was set.
        let is_removal = life(&self.line, self.sending.now).is_some_and(|life| life.is_zero());
        let may_be_none = is_removal || (self.excepted)(CookieRule::SameSite);
        let is_none = may_be_none && (says("None") || (same_site.is_empty() && self.line.partitioned));
        if is_none && same_site.is_empty() {
            self.broken.push(CookieRule::SameSite);
            self.line.same_site = Some(Cow::Borrowed(b"None"));
        }
        if !(says("Strict") || says("Lax") || is_none) {
            if !self.broken.contains(&CookieRule::SameSite) {
                self.broken.push(CookieRule::SameSite);
            }
            self.line.same_site = Some(Cow::Borrowed(b"Lax"));
            self.line.partitioned = false;
        } else if self.line.partitioned {
            let is_wrong = !is_none || self.line.domain.is_some();
            if self.note(CookieRule::Partitioned, is_wrong) {
                self.line.domain = None;
                self.line.partitioned = is_none;
            }
        }
        (self.sending.cross_site && !is_none).then_some(CookieRule::CrossSite)
    }

    fn path(&mut self) -> Option<CookieRule> {
        match self.line.path.as_deref() {
            Some(path @ [b'/', ..]) => {
                let is_good = std::str::from_utf8(path).is_ok_and(is_path);
                (!is_good).then_some(CookieRule::Path)
            }
            _ => {
                // A client chooses the path of its request, and one with a `;` would be attributes here. Left out it is what
                // the browser makes of it.
                let default = default_path(self.sending.path);
                self.line.path = None;
                if is_path(default) && self.note(CookieRule::Path, true) {
                    self.line.path = Some(Cow::Owned(default.as_bytes().to_vec()));
                }
                None
            }
        }
    }

    fn lifetime(&mut self) {
        let max_age = self.line.max_age.clone().map(|text| (seconds(&text), text));
        match max_age {
            Some((Some(seconds), text))
                if seconds.to_string().as_bytes() != &*text && self.note(CookieRule::Lifetime, true) =>
            {
                self.line.max_age = Some(Cow::Owned(seconds.to_string().into_bytes()));
            }
            Some((None, _)) if self.note(CookieRule::Lifetime, true) => self.line.max_age = None,
            _ => {}
        }
        let Some(text) = self.line.expires.clone() else { return };
        let latest = instant(self.sending.now + MAX_LIFETIME);
        let date = date::parse(&text);
        // Before 1970 is as gone as before 1900, which no date of a server can say.
        let kept =
            date.map(|date| latest.map_or(date, |latest| date.min(latest)).max(OffsetDateTime::UNIX_EPOCH));
        if !kept.is_some_and(|kept| date::is_fixdate(&text, kept)) && self.note(CookieRule::Lifetime, true) {
            self.line.expires = kept.and_then(date::fixdate).map(|date| Cow::Owned(date.into_bytes()));
        }
    }
}

/// The prefix that a browser sees in `name`, in whatever letters.
fn prefix_of(name: &[u8]) -> Option<&'static str> {
    let begins = |prefix: &&str| {
        name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
    };
    ["__Host-Http-", "__Host-", "__Secure-", "__Http-"].into_iter().find(begins)
}

/// Where a browser takes a cookie without Path to belong: up to the last slash of the request's path.
fn default_path(path: &str) -> &str {
    match path.rfind('/') {
        Some(1..) if path.starts_with('/') => path.rsplit_once('/').map_or("/", |(before, _)| before),
        _ => "/",
    }
}
