//! The site's policy for every cookie that leaves the application, not only for the session's own.

use std::{borrow::Cow, fmt};

use super::{
    judge::{Outcome, Sending, judge},
    line::{Line, life},
    origin::Origin,
    rule::CookieRule,
};
use crate::clock::Timestamp;

/// What is done with a cookie of the application that breaks a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Enforce,
    Report,
    Off,
}

/// The policy for every Set-Cookie that passes the layer, whichever handler or inner middleware wrote it.
///
/// With [`enforce`](Self::enforce), the default, what a browser would default, cut or ignore is written out (`Secure`,
/// `HttpOnly`, `SameSite=Lax`, `Path`, a lifetime of at most 400 days), and a line that browsers would refuse, or that could
/// stand for another cookie, is dropped. Each time an event names the cookie and the rule, never the value. With
/// [`report`](Self::report) there is the event and nothing is touched: to see what a site does before it is enforced.
///
/// ```
/// use portcullis::cookie::{CookiePolicy, CookieRule};
///
/// let policy = CookiePolicy::enforce()
///     .except("theme", CookieRule::HttpOnly, "theme.js reads it before the first paint");
/// ```
///
/// A response without Set-Cookie costs one look at its headers; a line costs about 3,000 instructions.
#[derive(Debug, Clone)]
pub struct CookiePolicy {
    mode: Mode,
    exceptions: Vec<Exception>,
}

#[derive(Debug, Clone)]
struct Exception {
    name: String,
    rule: CookieRule,
    reason: String,
}

/// A line as it is sent; none is left out.
pub(crate) type Kept<'a> = Option<Cow<'a, [u8]>>;

/// What was done about a rule that was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CookieAction {
    /// The line was changed until it obeyed.
    Mended,
    /// The line was left out.
    Dropped,
    /// Nothing.
    Reported,
}

/// A rule that a cookie broke.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CookieFinding {
    /// The cookie's name, at most 64 characters of it, with what is not printable escaped. Never its value.
    pub name: String,
    /// The rule.
    pub rule: CookieRule,
    /// What was done.
    pub action: CookieAction,
}

/// Why a policy cannot stand.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CookiePolicyError {
    /// An exception from a rule without which the cookie would be refused by browsers, or pass for another one.
    NotExceptable(String, CookieRule),
    /// An exception without a reason, for those who read the configuration later.
    NoReason(String),
}

impl CookiePolicy {
    /// Mends or drops what breaks a rule, with an event.
    #[must_use]
    pub const fn enforce() -> Self {
        Self { mode: Mode::Enforce, exceptions: Vec::new() }
    }

    /// Tells of what breaks a rule, and touches nothing but lines under the session's own names.
    #[must_use]
    pub const fn report() -> Self {
        Self { mode: Mode::Report, exceptions: Vec::new() }
    }

    /// Looks at nothing but lines under the session's own names.
    #[must_use]
    pub const fn off() -> Self {
        Self { mode: Mode::Off, exceptions: Vec::new() }
    }

    /// Excepts the cookie called `name` from `rule`, for `reason`.
    ///
    /// `CookieRule::SameSite` is what a cookie of an embedded page needs (`SameSite=None; Secure; Partitioned`).
    #[must_use]
    pub fn except(mut self, name: impl Into<String>, rule: CookieRule, reason: impl Into<String>) -> Self {
        self.exceptions.push(Exception { name: name.into(), rule, reason: reason.into() });
        self
    }

    /// What is wrong with the policy itself; `build()` reports it.
    pub(crate) fn check(&self) -> Vec<CookiePolicyError> {
        let wrong = |exception: &Exception| {
            let name = exception.name.escape_debug().to_string();
            if !exception.rule.may_be_excepted() {
                Some(CookiePolicyError::NotExceptable(name, exception.rule))
            } else if exception.reason.trim().is_empty() {
                Some(CookiePolicyError::NoReason(name))
            } else {
                None
            }
        };
        self.exceptions.iter().filter_map(wrong).collect()
    }

    /// Every rule that the Set-Cookie lines of one response break, as a site of `origin` answers a request for `path` at `now`.
    ///
    /// ```
    /// use portcullis::{clock::Timestamp, cookie::{CookiePolicy, Origin}};
    ///
    /// let origin = Origin::parse("https://app.example.com")?;
    /// let now = Timestamp::from_seconds(1_800_000_000);
    /// let found = CookiePolicy::enforce().lint(&origin, "/login", ["theme=dark; Path=/; Secure"], now);
    /// let rules: Vec<_> = found.iter().map(|finding| finding.rule.to_string()).collect();
    /// assert_eq!(rules, ["HttpOnly", "SameSite"]);
    /// # Ok::<(), portcullis::cookie::OriginError>(())
    /// ```
    pub fn lint<L: AsRef<[u8]>>(
        &self,
        origin: &Origin,
        path: &str,
        lines: impl IntoIterator<Item = L>,
        now: Timestamp,
    ) -> Vec<CookieFinding> {
        let lines: Vec<L> = lines.into_iter().collect();
        let lines: Vec<&[u8]> = lines.iter().map(AsRef::as_ref).collect();
        let policy = Self { mode: Mode::Report, ..self.clone() };
        policy.apply(&lines, Sending { origin, path, cross_site: false, now }, &[]).1
    }

    /// What becomes of each line of one response, and every rule that was broken.
    pub(crate) fn apply<'a>(
        &self,
        lines: &[&'a [u8]],
        sending: Sending<'_>,
        reserved: &[&str],
    ) -> (Vec<Kept<'a>>, Vec<CookieFinding>) {
        let mut findings = Vec::new();
        let read: Vec<Line<'_>> = lines.iter().map(|line| Line::parse(line)).collect();
        let mut kept = Vec::with_capacity(lines.len());
        for (at, (bytes, line)) in lines.iter().zip(&read).enumerate() {
            let name = line.name.unwrap_or_default();
            let found = |rule, action| CookieFinding { name: shown(name), rule, action };
            if reserved.iter().any(|reserved| name.eq_ignore_ascii_case(reserved.as_bytes())) {
                // Whatever the mode: it would write over somebody's session.
                findings.push(found(CookieRule::Reserved, CookieAction::Dropped));
                kept.push(None);
                continue;
            }
            let unchanged = Some(Cow::Borrowed(*bytes));
            if self.mode == Mode::Off {
                kept.push(unchanged);
                continue;
            }
            let excepted = |rule| {
                let names =
                    |exception: &Exception| exception.rule == rule && exception.name.as_bytes() == name;
                self.exceptions.iter().any(names)
            };
            let is_repeated = || read.iter().skip(at + 1).any(|later| supersedes(later, line, sending.now));
            let outcome = match judge(bytes, line, &sending, excepted) {
                Outcome::Drop(rule) => Outcome::Drop(rule),
                _ if !excepted(CookieRule::Repeated) && is_repeated() => Outcome::Drop(CookieRule::Repeated),
                other => other,
            };
            let enforced = self.mode == Mode::Enforce;
            let action = |action| if enforced { action } else { CookieAction::Reported };
            let result = match outcome {
                Outcome::Keep => unchanged,
                Outcome::Mend(mended, rules) => {
                    findings.extend(rules.into_iter().map(|rule| found(rule, action(CookieAction::Mended))));
                    if enforced { Some(Cow::Owned(mended)) } else { unchanged }
                }
                Outcome::Drop(rule) => {
                    findings.push(found(rule, action(CookieAction::Dropped)));
                    if enforced { None } else { unchanged }
                }
            };
            kept.push(result);
        }
        (kept, findings)
    }
}

/// Enforced: the mission of a session layer that is put in front of a whole application.
impl Default for CookiePolicy {
    fn default() -> Self {
        Self::enforce()
    }
}

/// Whether `later` makes `line` pointless, or leaves a browser with two cookies of one name. What removes an older cookie
/// under another path or domain may stand beside what sets it.
fn supersedes(later: &Line<'_>, line: &Line<'_>, now: Timestamp) -> bool {
    let is_removal = |line: &Line<'_>| life(line, now).is_some_and(|life| life.is_zero());
    let is_same_place = later.path == line.path && later.domain == line.domain;
    later.name == line.name && (is_same_place || !(is_removal(later) || is_removal(line)))
}

/// The beginning of a name, printable.
fn shown(name: &[u8]) -> String {
    name.escape_ascii().take(64).map(char::from).collect()
}

impl fmt::Display for CookieFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = match self.action {
            CookieAction::Mended => "mended",
            CookieAction::Dropped => "dropped",
            CookieAction::Reported => "left as it is",
        };
        write!(f, "cookie `{}`: {}, {done}. Remedy: {}", self.name, self.rule, self.rule.remedy())
    }
}

impl CookiePolicyError {
    /// What to do about it.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::NotExceptable(..) => "leave the exception out and give the cookie another name",
            Self::NoReason(_) => "say why, for those who read the configuration after you",
        }
    }
}

impl fmt::Display for CookiePolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotExceptable(name, rule) => {
                write!(f, "no cookie can be excepted from the rule `{rule}`, and `{name}` is")
            }
            Self::NoReason(name) => write!(f, "the exception for `{name}` states no reason"),
        }
    }
}

impl std::error::Error for CookiePolicyError {}

#[cfg(test)]
#[path = "../../tests/vectors/cookie_policy.rs"]
mod vectors;
