//! The Set-Cookie line. Secure, HttpOnly, SameSite and Path are always written out, and a combination that a browser
//! would refuse, ignore or weaken cannot be stated (RFC 6265bis §4.1, §5.7).

use std::{fmt, fmt::Write as _, time::Duration};

use super::name::{CookieName, NameError, Scope};

/// Which requests from other sites carry the cookie.
///
/// There is no "unset": browsers give a cookie without SameSite a window of two minutes in which cross-site POSTs carry
/// it (attack A33). `None` belongs to [`Scope::Embedded`], which states it with Secure and Partitioned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SameSite {
    /// No request from another site, links included.
    Strict,
    /// Links and other top-level navigations with safe methods.
    Lax,
}

/// A Set-Cookie line that every browser stores as it says.
#[derive(Clone, PartialEq, Eq)]
pub struct SetCookie {
    name: CookieName,
    scope: Scope,
    same_site: SameSite,
    value: String,
    max_age: Option<Duration>,
}

/// Why there is no such cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetCookieError {
    /// The name is none.
    Name(NameError),
    /// The value holds a byte that a cookie value may not hold (control, space, `"`, `,`, `;`, `\`, non-ASCII).
    Value,
    /// The path is none that a URL can have, so that browsers would never send the cookie: it does not begin with `/`, is
    /// longer than 1024 bytes, has a segment `.` or `..`, or holds a control character, a space, one of `"#;<>?\^{}`, a
    /// backtick, or what is not ASCII. What a URL escapes is written escaped here too (`%20`).
    Path,
    /// Max-Age is more than 400 days, which browsers cut.
    Lifetime,
    /// The whole line would be longer than 4095 bytes; some proxies drop such a line, or all cookies with it.
    Size,
}

impl SetCookie {
    /// A cookie called `base`, after the prefix of its scope.
    ///
    /// Without a lifetime it lasts as long as the browser's session; see [`max_age`](Self::max_age).
    ///
    /// # Errors
    /// If name, value or path could not stand in the line.
    pub fn new(base: &str, scope: Scope, same_site: SameSite, value: &str) -> Result<Self, SetCookieError> {
        let name = CookieName::new(base, &scope).map_err(SetCookieError::Name)?;
        if let Scope::Secure { path, .. } = &scope
            && !is_path(path)
        {
            return Err(SetCookieError::Path);
        }
        Self { name, scope, same_site, value: String::new(), max_age: None }.with_value(value)
    }

    /// The same cookie, kept for `max_age`, in whole seconds.
    ///
    /// # Errors
    /// If that is more than 400 days.
    pub fn max_age(mut self, max_age: Duration) -> Result<Self, SetCookieError> {
        if max_age > MAX_LIFETIME {
            return Err(SetCookieError::Lifetime);
        }
        self.max_age = Some(max_age);
        self.checked()
    }

    /// The same cookie with another value.
    ///
    /// # Errors
    /// If the value could not stand in the line.
    pub(crate) fn with_value(&self, value: &str) -> Result<Self, SetCookieError> {
        if !value.bytes().all(is_cookie_octet) {
            return Err(SetCookieError::Value);
        }
        Self { value: value.into(), ..self.clone() }.checked()
    }

    /// The line that removes this cookie: no value, `Max-Age=0`, and every other attribute again, without which a
    /// browser keeps the cookie (attack A30).
    #[must_use]
    pub fn removal(&self) -> Self {
        Self { value: String::new(), max_age: Some(Duration::ZERO), ..self.clone() }
    }

    /// The name, prefix included.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// The attributes as they stand in the line, without Max-Age: `Path=/; Secure; HttpOnly; SameSite=Lax`.
    pub(crate) fn attributes(&self) -> String {
        Attributes(self).to_string()
    }

    fn checked(self) -> Result<Self, SetCookieError> {
        if self.to_string().len() < MAX_LINE { Ok(self) } else { Err(SetCookieError::Size) }
    }
}

/// The value of the Set-Cookie field.
impl fmt::Display for SetCookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}; {}", self.name.as_str(), self.value, Attributes(self))?;
        match self.max_age {
            Some(max_age) => write!(f, "; Max-Age={}", max_age.as_secs()),
            None => Ok(()),
        }
    }
}

/// What is said of a cookie beside its value and its lifetime.
struct Attributes<'a>(&'a SetCookie);

impl fmt::Display for Attributes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SetCookie { scope, same_site, .. } = self.0;
        match scope {
            Scope::HostHttp | Scope::Host | Scope::Embedded | Scope::Localhost => f.write_str("Path=/")?,
            Scope::Secure { domain, path } => {
                write!(f, "Path={path}")?;
                if let Some(domain) = domain {
                    write!(f, "; Domain={}", domain.as_str())?;
                }
            }
        }
        if *scope != Scope::Localhost {
            f.write_str("; Secure")?;
        }
        f.write_str("; HttpOnly; SameSite=")?;
        f.write_str(match (scope, same_site) {
            (Scope::Embedded, _) => "None; Partitioned",
            (_, SameSite::Strict) => "Strict",
            (_, SameSite::Lax) => "Lax",
        })
    }
}

/// The value is left out: it may be a credential.
impl fmt::Debug for SetCookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = String::new();
        write!(shown, "{}", Self { value: "..".into(), ..self.clone() })?;
        f.debug_tuple("SetCookie").field(&shown).finish()
    }
}

impl fmt::Display for SetCookieError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => write!(f, "the cookie's name is refused: {error}"),
            Self::Value => f.write_str("the cookie's value holds a byte that no cookie value may hold"),
            Self::Path => f.write_str("the cookie's path is none that a URL can have"),
            Self::Lifetime => f.write_str("the cookie would live for more than 400 days"),
            Self::Size => f.write_str("the whole Set-Cookie line would be longer than 4095 bytes"),
        }
    }
}

impl std::error::Error for SetCookieError {}

pub(super) const fn is_cookie_octet(byte: u8) -> bool {
    matches!(byte, 0x21 | 0x23..=0x2B | 0x2D..=0x3A | 0x3C..=0x5B | 0x5D..=0x7E)
}

/// A path that a URL can have: a browser compares it with the path of its URLs, in which it has escaped some characters
/// and resolved `.` and `..` (WHATWG URL, path percent-encode set). A cookie under another path is stored and never sent.
pub(super) fn is_path(path: &str) -> bool {
    let stays = |byte: u8| byte.is_ascii_graphic() && !b"\"#;<>?\\^`{}".contains(&byte);
    let is_dots =
        |segment: &str| matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..");
    path.starts_with('/') && path.len() <= 1024 && path.bytes().all(stays) && !path.split('/').any(is_dots)
}

/// Browsers ignore a cookie whose name and value exceed 4096 bytes; some front ends count the attributes as well.
pub(super) const MAX_LINE: usize = 4096;

pub(super) const MAX_LIFETIME: Duration = Duration::from_secs(400 * 24 * 60 * 60);

#[cfg(test)]
#[path = "../../tests/vectors/server_emit.rs"]
mod vectors;
