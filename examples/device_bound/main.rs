//! Sessions bound to the browser's own key, over HTTPS with a certificate that is made at each start; in browsers that have none, to
//! one that a script keeps.
//!
//! ```text
//! cargo run --example device_bound
//! ```
//!
//! It prints how to start a Chromium that takes this certificate and, on Linux, keeps keys in software: behind a certificate
//! warning that was clicked away no browser binds a session. `PORT` says where it listens on 127.0.0.1 (8443; 0 picks a free
//! port). Sessions are kept in memory.
//!
//! ```text
//! certificate  a certificate for localhost, and the name by which a browser can be told to take it
//! pages        what one sees
//! ```

mod certificate;
mod pages;

use std::{
    error::Error,
    io::Write as _,
    net::{SocketAddr, TcpListener},
};

use axum::{
    Form, Router,
    response::{Html, Redirect},
    routing::{get, post},
};
use axum_server::tls_rustls::RustlsConfig;
use portcullis::{
    Auth, AuthError, DeviceBinding, Identity, KeyRing, MemoryStore, RequireDevice, SessionLayer,
};
use serde::Deserialize;

use certificate::Certificate;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Portcullis tells what happens to sessions as tracing events: watch this terminal while you click.
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let port = match std::env::var("PORT") {
        Ok(port) => port.parse().map_err(|_| format!("PORT={port} is no port"))?,
        Err(_) => 8443,
    };
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], port)))?;
    listener.set_nonblocking(true)?;
    let origin = format!("https://localhost:{}", listener.local_addr()?.port());
    let sessions = SessionLayer::builder(&origin, KeyRing::generate()?, MemoryStore::new())
        .device_binding(DeviceBinding::Offer)
        .software_keys()
        .build()?;
    let app = Router::new()
        .route("/", get(home))
        .route("/login", post(sign_in))
        .route("/logout", post(sign_out))
        .route("/pay", post(pay))
        .nest_service("/portcullis", sessions.device_endpoints())
        .layer(sessions);
    let certificate = Certificate::new()?;
    let tls = RustlsConfig::from_der(vec![certificate.der], certificate.key).await?;
    writeln!(
        std::io::stdout(),
        "open {origin} in a browser that was started like this:\n\n  chromium --user-data-dir=/tmp/device-bound \\\n    \
         --ignore-certificate-errors-spki-list={} \\\n    \
         --enable-features=DeviceBoundSessions,EnableBoundSessionCredentialsSoftwareKeysForManualTesting\n",
        certificate.name
    )?;
    axum_server::from_tcp_rustls(listener, tls)?.serve(app.into_make_service()).await?;
    Ok(())
}

async fn home(identity: Option<Identity>, auth: Auth) -> Result<Html<String>, AuthError> {
    let Some(identity) = identity else { return Ok(pages::login()) };
    let sessions = auth.sessions().await?;
    let current = sessions.iter().find(|session| session.current);
    Ok(pages::home(&identity, current.and_then(|session| session.device)))
}

#[derive(Deserialize)]
struct Credentials {
    user: String,
}

/// Checks no password: it is an example, on this machine alone.
async fn sign_in(auth: Auth, Form(form): Form<Credentials>) -> Result<Redirect, AuthError> {
    auth.login(form.user).await?;
    Ok(Redirect::to("/"))
}

async fn sign_out(auth: Auth) -> Result<Redirect, AuthError> {
    auth.logout().await?;
    Ok(Redirect::to("/"))
}

/// What a copied cookie must never do. A session that is bound to no device gets 403.
async fn pay(identity: RequireDevice) -> Html<String> {
    pages::paid(&identity)
}
