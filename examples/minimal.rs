//! The smallest application: sign in, be greeted, be counted.

use axum::{
    Form, Router,
    response::Redirect,
    routing::{get, post},
};
use portcullis::{Auth, AuthError, Identity, KeyRing, Session, SessionError, SessionLayer, SqliteStore};
use serde::Deserialize;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let keys = KeyRing::from_env("SESSION_KEYS")?;
    let store = SqliteStore::open("sessions.db").await?;
    let sessions = SessionLayer::builder("https://app.example.com", keys, store).build()?;
    let app = Router::new().route("/", get(home)).route("/sign-in", post(sign_in)).layer(sessions);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    Ok(axum::serve(listener, app).await?)
}

#[derive(Deserialize)]
struct Credentials {
    user: String,
}

async fn sign_in(auth: Auth, Form(form): Form<Credentials>) -> Result<Redirect, AuthError> {
    // Here your application checks the password. Then:
    auth.login(form.user).claim("role", "reader")?.await?; // new id, new tokens, what was before is dropped
    Ok(Redirect::to("/"))
}

async fn home(identity: Option<Identity>, session: Session) -> Result<String, SessionHidden> {
    let visits = session.get::<u64>("visits").await?.unwrap_or(0) + 1;
    session.insert("visits", visits).await?;
    let name = identity.map_or_else(|| "stranger".into(), |identity| identity.subject().to_owned());
    Ok(format!("Hello {name}, visit {visits}."))
}

struct SessionHidden;

impl From<SessionError> for SessionHidden {
    fn from(_: SessionError) -> Self {
        Self
    }
}

impl axum::response::IntoResponse for SessionHidden {
    fn into_response(self) -> axum::response::Response {
        axum::http::StatusCode::SERVICE_UNAVAILABLE.into_response()
    }
}
