//! What each request does to the session.

use axum::{
    Form, Router,
    extract::{DefaultBodyLimit, Path, State},
    http::{StatusCode, header},
    middleware::map_response,
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use portcullis::{Auth, AuthError, Identity, Session, SessionError, SessionLayer, SessionRef, Timeouts};
use serde::Deserialize;

use crate::{
    pages::{self, Home, WrongAttempt},
    users,
};

/// All routes behind the session layer, and around it the page for answers that have none.
pub(crate) fn router(sessions: SessionLayer, timeouts: Timeouts) -> Router {
    Router::new()
        .route("/", get(home))
        .route("/login", post(sign_in))
        .route("/logout", post(sign_out))
        .route("/logout-everywhere", post(sign_out_everywhere))
        .route("/sessions/{handle}/revoke", post(sign_out_one))
        .with_state(timeouts)
        .layer(DefaultBodyLimit::max(4096))
        .layer(sessions)
        .layer(map_response(explain_unavailable))
}

async fn home(
    State(timeouts): State<Timeouts>,
    identity: Option<Identity>,
    auth: Auth,
    session: Session,
) -> Result<Response, Failure> {
    let Some(identity) = identity else { return Ok(pages::sign_in(None).into_response()) };
    let sessions = auth.sessions().await?;
    let visits = count_visit(&session).await?;
    Ok(pages::home(&Home { identity, visits, sessions, timeouts }).into_response())
}

async fn count_visit(session: &Session) -> Result<u64, SessionError> {
    let visits = session.get::<u64>("visits").await?.unwrap_or(0).saturating_add(1);
    session.insert("visits", visits).await?;
    Ok(visits)
}

#[derive(Deserialize)]
struct Credentials {
    #[serde(default)]
    user: String,
    #[serde(default)]
    password: String,
    /// A checkbox sends its value when it is ticked, and else nothing at all.
    remember: Option<String>,
}

async fn sign_in(auth: Auth, Form(form): Form<Credentials>) -> Result<Response, Failure> {
    let remember = form.remember.is_some();
    let Some(user) = users::verify(&form.user, &form.password) else {
        let wrong = WrongAttempt { user: &form.user, remember };
        return Ok((StatusCode::UNAUTHORIZED, pages::sign_in(Some(&wrong))).into_response());
    };
    // Saved when it is awaited: an error here is never followed by a redirect that looks like success.
    auth.login(user).method("pwd").remember(remember).await?;
    Ok(to_home())
}

async fn sign_out(auth: Auth) -> Result<Response, Failure> {
    auth.logout().await?;
    Ok(to_home())
}

async fn sign_out_everywhere(auth: Auth) -> Result<Response, Failure> {
    auth.logout_everywhere().await?;
    Ok(to_home())
}

async fn sign_out_one(auth: Auth, Path(handle): Path<String>) -> Result<Response, Failure> {
    let handle = SessionRef::parse(&handle).ok_or(AuthError::NoSuchSession)?;
    auth.revoke(handle).await?;
    Ok(to_home())
}

/// 303: the browser fetches the page with GET, so that a reload sends no form twice.
fn to_home() -> Response {
    Redirect::to("/").into_response()
}

/// Why a request was not done.
struct Failure(AuthError);

/// From what `Auth` says, and from what a `Session` does.
impl<E: Into<AuthError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        match self.0 {
            // It ended meanwhile, perhaps from another tab: the home page shows what is true now.
            AuthError::NotSignedIn | AuthError::NoSuchSession => to_home(),
            // 503 with Retry-After where the store is silent.
            other => other.into_response(),
        }
    }
}

/// Gives every 503 a page. Some come from the layer itself, which has none: when a cookie cannot be renewed, or what the
/// handler changed cannot be saved. All other headers stay: the answer may carry the only copy of new cookies.
async fn explain_unavailable(response: Response) -> Response {
    if response.status() != StatusCode::SERVICE_UNAVAILABLE {
        return response;
    }
    let (mut parts, _) = response.into_parts();
    let (page, body) = pages::unavailable().into_response().into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.extend(page.headers);
    Response::from_parts(parts, body)
}
