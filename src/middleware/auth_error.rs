//! Why something was not done to a session.

use std::fmt;

use http::StatusCode;
use tower_sessions_core::session::Error as SessionError;

/// Why something was not done to a session. Also what a `Session`'s own errors turn into with `?`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthError {
    /// Nobody is signed in, or the session ended meanwhile.
    NotSignedIn,
    /// The user has no such session.
    NoSuchSession,
    /// The subject is empty or longer than 255 bytes.
    Subject,
    /// The claims are longer than 1024 bytes as JSON, or a value is none.
    Claims,
    /// A method's name is empty, holds a space, or all are longer than 255 bytes.
    Methods,
    /// A session value is not of the type it was asked for as, or cannot be written as JSON.
    Data,
    /// The store did not answer. Nothing is known to have been saved, and no cookie was changed.
    Unavailable,
    /// The request did not come to this site: under another Host, or over plain HTTP. A cookie of its answer would go where
    /// it does not belong, so nobody is signed in or out.
    Misplaced,
    /// The browser asks on its own account (`Sec-Purpose: prefetch`), and nobody may ever look at the answer: nothing is
    /// changed. A browser that is told 503 asks again when the page is wanted.
    Speculative,
}

impl AuthError {
    /// The status of a response that reports it: 401, 404, 421, 503, or 500 for a value the application should not have
    /// given.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::NotSignedIn => StatusCode::UNAUTHORIZED,
            Self::NoSuchSession => StatusCode::NOT_FOUND,
            Self::Subject | Self::Claims | Self::Methods | Self::Data => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Misplaced => StatusCode::MISDIRECTED_REQUEST,
            Self::Unavailable | Self::Speculative => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotSignedIn => "nobody is signed in",
            Self::NoSuchSession => "there is no such session",
            Self::Subject => "the subject is empty or longer than 255 bytes",
            Self::Claims => "the claims are longer than 1024 bytes as JSON, or a value is none",
            Self::Methods => "a method's name is empty, holds a space, or all are longer than 255 bytes",
            Self::Data => "a session value is not of the type it was asked for as",
            Self::Misplaced => "the request did not come to the site that the sessions are for",
            Self::Speculative => "a browser that only fetches ahead changes nothing",
            Self::Unavailable => "the session store did not answer; nothing is known to have been saved",
        })
    }
}

impl std::error::Error for AuthError {}

/// So that `?` serves for a `Session` as for an `Auth`.
impl From<SessionError> for AuthError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::SerdeJson(_) => Self::Data,
            SessionError::Store(_) => Self::Unavailable,
        }
    }
}
