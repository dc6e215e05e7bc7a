//! The smallest application: sign in, be greeted, be counted.
//!
//! It speaks plain HTTP to a proxy on the same machine, which speaks TLS to browsers as `https://app.example.com`.
//! `cargo run --example lab -- --print-new-keys` prints a value for `SESSION_KEYS`. For pages to click on, without a
//! proxy, see the example `quickstart`.

use axum::{
    Form, Router,
    response::Redirect,
    routing::{get, post},
};
use portcullis::{Auth, AuthError, Identity, KeyRing, Session, SessionLayer, SqliteStore};
use serde::Deserialize;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let keys = KeyRing::from_env("SESSION_KEYS")?;
    let store = SqliteStore::open("sessions.db").await?;
    let sessions = SessionLayer::builder("https://app.example.com", keys, store).build()?;
    let app = Router::new().route("/", get(home)).route("/login", post(sign_in)).layer(sessions);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    Ok(axum::serve(listener, app).await?)
}

#[derive(Deserialize)]
struct Credentials {
    user: String,
    password: String,
}

async fn sign_in(auth: Auth, Form(form): Form<Credentials>) -> Result<Redirect, AuthError> {
    // Your own check goes here: look the user up and verify a password hash.
    if (form.user.as_str(), form.password.as_str()) != ("alice", "portcullis") {
        return Err(AuthError::NotSignedIn);
    }
    auth.login(form.user).await?; // new id, new cookies; what the session held before is dropped
    Ok(Redirect::to("/"))
}

async fn home(identity: Option<Identity>, session: Session) -> Result<String, AuthError> {
    let visits = session.get::<u64>("visits").await?.unwrap_or(0) + 1;
    session.insert("visits", visits).await?;
    let name = identity.as_ref().map_or("stranger", Identity::subject);
    Ok(format!("Hello {name}, this is visit {visits}.\n"))
}
