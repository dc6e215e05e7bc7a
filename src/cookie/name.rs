//! Cookie names. The scope of a cookie demands its prefix, so the two are stated together and cannot disagree.

use std::fmt;

use super::domain::CookieDomain;

/// Where a cookie is valid. It decides the prefix of its name and the attributes that the prefix demands
/// (RFC 6265bis §4.1.3, and the `__Http-` prefixes of its successor).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// `__Host-Http-`: this host only, all paths, never a script. The default: browsers that do not know the prefix
    /// still enforce `__Host-`.
    HostHttp,
    /// `__Host-`: this host only, all paths.
    Host,
    /// `__Secure-`: below `path`, and on every host of `domain` where one is given.
    Secure {
        /// The domain that shares the cookie; none is this host only.
        domain: Option<CookieDomain>,
        /// The path below which it is sent; it is no security boundary.
        path: String,
    },
    /// `__Host-`, with `SameSite=None; Partitioned`: for a site embedded in others (CHIPS).
    Embedded,
    /// No prefix and no `Secure`: for `http://localhost` during development, nowhere else.
    Localhost,
}

impl Scope {
    /// The prefix of a name in this scope.
    #[must_use]
    pub const fn prefix(&self) -> &'static str {
        match self {
            Self::HostHttp => "__Host-Http-",
            Self::Host | Self::Embedded => "__Host-",
            Self::Secure { .. } => "__Secure-",
            Self::Localhost => "",
        }
    }
}

/// Why a text is no cookie name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// Empty, or with a character outside RFC 9110's `token`.
    NotAToken,
    /// It begins with `$`, which switches old servers into other parsing rules.
    Dollar,
    /// It holds `%`, which some servers decode into another name.
    Percent,
    /// It begins with a prefix of its own; the scope gives the prefix.
    Prefix,
}

/// A cookie name with its prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CookieName(String);

impl CookieName {
    /// The name `base` in `scope`.
    pub(crate) fn new(base: &str, scope: &Scope) -> Result<Self, NameError> {
        if base.is_empty() || !base.bytes().all(is_token) {
            return Err(NameError::NotAToken);
        }
        if base.starts_with('$') {
            return Err(NameError::Dollar);
        }
        if base.contains('%') {
            return Err(NameError::Percent);
        }
        // Two underscores are how every prefix begins, those of the future and the misspelt ones too.
        if base.starts_with("__") {
            return Err(NameError::Prefix);
        }
        Ok(Self(format!("{}{base}", scope.prefix())))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether `name`, prefix included, is one that a cookie of the application may have.
pub(crate) fn check_name(name: &str) -> Result<(), NameError> {
    let base = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    CookieName::new(base, &Scope::Localhost).map(|_| ())
}

/// What a name may begin with, the longest first.
const PREFIXES: [&str; 4] = ["__Host-Http-", "__Host-", "__Secure-", "__Http-"];

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAToken => "it is empty or holds a character that no cookie name may hold",
            Self::Dollar => "it begins with $",
            Self::Percent => "it holds %",
            Self::Prefix => "it begins with a prefix; the scope gives the prefix",
        })
    }
}

impl std::error::Error for NameError {}

pub(super) const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~')
}
