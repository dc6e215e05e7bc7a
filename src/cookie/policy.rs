//! The site's policy for every cookie that leaves the application, not only for the session's own.

use std::{borrow::Cow, fmt};

use super::{
    judge::{Outcome, Sending, judge},
    line::{Line, life},
    name::check_name,
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
/// With [`enforce`](Self::enforce), the default, what a browser would default, cut or ignore is written out, and a line that
/// browsers would refuse, or that could stand for another cookie, is dropped. An event names the cookie and the rule, never the
/// value, once in some minutes. With [`report`](Self::report) there is the event and nothing is touched: to see what a site
/// does before it is enforced.
///
/// | rule | |
/// |---|---|
/// | `Secure`, `HttpOnly`, `Path` | added; scripts no longer see a cookie that is not excepted |
/// | `SameSite` missing, unknown, or `None` | `Lax`, without `Partitioned` |
/// | `Domain` with a dot in front, in capitals, or empty | written as browsers take it |
/// | lifetime: above 400 days, negative, another form of date | cut, 0, rewritten; unreadable: left out |
/// | an attribute twice, or longer than 1024 bytes | the last, or none |
/// | name, value, control characters, prefix, `Domain` of others, a path that no URL has, 4096 bytes | dropped |
/// | a name twice in one response | the last |
/// | in the answer to another site's subresource | dropped: browsers do |
///
/// ```
/// use portcullis::cookie::{CookiePolicy, CookieRule};
///
/// let policy = CookiePolicy::enforce()
///     .except("theme", CookieRule::HttpOnly, "theme.js reads it before the first paint");
/// ```
///
/// A response without Set-Cookie costs one look at its headers; a line costs about 3,300 instructions, one that is mended
/// 6,300. A response that sets a cookie and says nothing of caches gets `Cache-Control: private, no-store`.
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
    /// An exception for what is no cookie name.
    Name(String),
    /// An exception without a reason, for those who read the configuration later.
    NoReason(String),
}

impl CookiePolicy {
    /// Mends or drops what breaks a rule, with an event.
    #[must_use]
    pub const fn enforce() -> Self {
        Self { mode: Mode::Enforce, exceptions: Vec::new() }
    }

    /// Tells of what breaks a rule, and touches nothing but lines under the session's own names, and cookies that are sealed.
    #[must_use]
    pub const fn report() -> Self {
        Self { mode: Mode::Report, exceptions: Vec::new() }
    }

    /// Looks at nothing but lines under the session's own names, and cookies that are sealed.
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
            if check_name(&exception.name).is_err() {
                Some(CookiePolicyError::Name(name))
            } else if !exception.rule.may_be_excepted() {
                Some(CookiePolicyError::NotExceptable(name, exception.rule))
            } else if exception.reason.trim().is_empty() {
                Some(CookiePolicyError::NoReason(name))
            } else {
                None
            }
        };
        self.exceptions.iter().filter_map(wrong).collect()
    }

    /// Every rule of a line's own that the Set-Cookie lines of one response break, as a site of `origin` answers a request for `path` at `now`.
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
        policy.apply(&lines, Sending { origin, path, cross_site: false, now }, &[], |_| false).1
    }

    /// What becomes of each line of one response, and every rule that was broken.
    pub(crate) fn apply<'a>(
        &self,
        lines: &[&'a [u8]],
        sending: Sending<'_>,
        reserved: &[&str],
        is_sealed: impl Fn(&[u8]) -> bool,
    ) -> (Vec<Kept<'a>>, Vec<CookieFinding>) {
        let mut findings = Vec::new();
        let read: Vec<Line<'_>> = lines.iter().map(|line| Line::parse(line)).collect();
        let excepted = |line: &Line<'_>, rule| {
            let name = line.name.unwrap_or_default();
            let names = |exception: &Exception| exception.rule == rule && exception.name.as_bytes() == name;
            // What is sealed before it leaves may hold anything.
            self.exceptions.iter().any(names) || (rule == CookieRule::Value && is_sealed(name))
        };
        let judged = lines.iter().zip(&read).map(|(bytes, line)| {
            if reserved.iter().any(|reserved| sets(line, reserved)) {
                Outcome::Drop(CookieRule::Reserved)
            } else if self.mode == Mode::Off {
                Outcome::Keep
            } else {
                judge(bytes, line, &sending, |rule| excepted(line, rule))
            }
        });
        let mut outcomes: Vec<Outcome> = judged.collect();
        if self.mode != Mode::Off {
            // Of those that are left: what is dropped itself takes no other's place.
            for at in (0..read.len()).rev() {
                let Some((line, rest)) = read.get(at..).and_then(<[Line<'_>]>::split_first) else { continue };
                let left = |(later, outcome): (&Line<'_>, &Outcome)| {
                    !matches!(outcome, Outcome::Drop(_)) && supersedes(later, line, sending.now)
                };
                let later = outcomes.get(at + 1..).unwrap_or_default();
                let is_repeated = rest.iter().zip(later).any(left) && !excepted(line, CookieRule::Repeated);
                if let Some(outcome) =
                    outcomes.get_mut(at).filter(|outcome| is_repeated && !matches!(outcome, Outcome::Drop(_)))
                {
                    *outcome = Outcome::Drop(CookieRule::Repeated);
                }
            }
        }
        let mut kept = Vec::with_capacity(lines.len());
        for ((bytes, line), outcome) in lines.iter().zip(&read).zip(outcomes) {
            let found =
                |rule, action| CookieFinding { name: shown(line.name.unwrap_or_default()), rule, action };
            // Ours are guarded whatever the mode: such a line would write over somebody's session.
            let enforced = self.mode == Mode::Enforce || outcome == Outcome::Drop(CookieRule::Reserved);
            let action = |action| if enforced { action } else { CookieAction::Reported };
            let unchanged = Some(Cow::Borrowed(*bytes));
            kept.push(match outcome {
                Outcome::Keep => unchanged,
                Outcome::Mend(mended, rules) => {
                    findings.extend(rules.into_iter().map(|rule| found(rule, action(CookieAction::Mended))));
                    if enforced { Some(Cow::Owned(mended)) } else { unchanged }
                }
                Outcome::Drop(rule) => {
                    findings.push(found(rule, action(CookieAction::Dropped)));
                    if enforced { None } else { unchanged }
                }
            });
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

/// Whether a line sets the cookie `name`, in whatever letters, or one without a name that arrives as it.
fn sets(line: &Line<'_>, name: &str) -> bool {
    let begins = |bytes: &[u8]| {
        bytes.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
    };
    match line.name {
        Some(stated) if !stated.is_empty() => stated.len() == name.len() && begins(stated),
        _ => begins(line.value) && matches!(line.value.get(name.len()), None | Some(b'=')),
    }
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
            Self::Name(_) => "write the cookie's name as it stands in its line, prefix included",
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
            Self::Name(name) => write!(f, "`{name}` is no cookie name"),
            Self::NoReason(name) => write!(f, "the exception for `{name}` states no reason"),
        }
    }
}

impl std::error::Error for CookiePolicyError {}

#[cfg(test)]
#[path = "../../tests/vectors/cookie_policy.rs"]
mod vectors;
