//! The handlers. Each answers 200 if all is as it should be, and 409 if not: the loop looks at the status alone.
//!
//! `Session` is one and the same type for both libraries, so both run the very same handlers over the very same data:
//! one value.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderName, StatusCode, header};
use portcullis::{Auth, Identity, Session, SessionError};

/// Asks nothing.
pub(crate) async fn untouched() -> Answer {
    answer(true)
}

/// Asks who is signed in.
pub(crate) async fn identity(identity: Identity) -> Answer {
    answer(identity.subject() == SUBJECT)
}

/// Sets a cookie of the application that says everything.
pub(crate) async fn set_cookie() -> [(HeaderName, &'static str); 1] {
    [(header::SET_COOKIE, "theme=dark; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=3600")]
}

/// Sets one that leaves something out.
pub(crate) async fn set_loose_cookie() -> [(HeaderName, &'static str); 1] {
    [(header::SET_COOKIE, "theme=dark; Path=/; Secure; Max-Age=3600")]
}

/// Nobody must be signed in.
pub(crate) async fn nobody(identity: Option<Identity>) -> Answer {
    answer(identity.is_none())
}

/// Reads the value.
pub(crate) async fn read(session: Session) -> Answer {
    answer(matches!(session.get::<String>(NAME).await, Ok(Some(text)) if text.starts_with("basket-")))
}

/// Writes the value, another one each time.
pub(crate) async fn write(session: Session) -> Answer {
    WRITTEN.fetch_add(1, Ordering::Relaxed);
    answer(put(&session).await.is_ok())
}

/// Whether the session holds what was written last.
pub(crate) async fn written(session: Session) -> Answer {
    answer(matches!(session.get::<String>(NAME).await, Ok(Some(text)) if text == value()))
}

/// Begins a session without a user.
pub(crate) async fn begin(session: Session) -> Answer {
    answer(put(&session).await.is_ok())
}

/// Signs a user in and begins their session.
pub(crate) async fn sign_in(auth: Auth, session: Session) -> Answer {
    let Ok(login) = auth.login(SUBJECT).method("pwd").method("otp").claim("role", "editor") else {
        return answer(false);
    };
    answer(login.await.is_ok() && put(&session).await.is_ok())
}

async fn put(session: &Session) -> Result<(), SessionError> {
    session.insert(NAME, value()).await
}

fn value() -> String {
    format!("basket-{:012}", WRITTEN.load(Ordering::Relaxed))
}

const fn answer(as_it_should_be: bool) -> Answer {
    if as_it_should_be { Ok("as it should be") } else { Err(StatusCode::CONFLICT) }
}

/// A body and its content type, as most answers have: so a layer that adds a header does not pay for the map of them.
type Answer = Result<&'static str, StatusCode>;

static WRITTEN: AtomicU64 = AtomicU64::new(0);

const NAME: &str = "basket";
const SUBJECT: &str = "3f1c9a52-7d3e-4b57-9a0e-5c1f0a7b6d21";
