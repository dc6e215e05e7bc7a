//! A small web application with sign-in, a list of one's sessions, and sign-out here, there and everywhere.
//!
//! ```text
//! cargo run --example quickstart
//! ```
//!
//! It prints where to open it. Three environment variables change what it does:
//!
//! | variable | default | |
//! |---|---|---|
//! | `PORT` | 3000 | where it listens on 127.0.0.1; 0 picks a free port |
//! | `PORTCULLIS_DB` | `quickstart.db` | the SQLite file that keeps the sessions |
//! | `SESSION_KEYS_FILE` | `quickstart.keys` | the key ring, made at the first start, readable by you alone |
//!
//! ```text
//! settings  what the environment says
//! users     who may sign in
//! routes    what each request does to the session
//! pages     the HTML of each page; html escapes values and builds the frame; words says times in words
//! ```

mod html;
mod pages;
mod routes;
mod settings;
mod users;
mod words;

use std::{
    error::Error,
    io::{ErrorKind, Write as _},
    process::ExitCode,
};

use portcullis::{KeyRing, SessionLayer, SqliteStore, Timeouts};
use tokio::net::TcpListener;

use settings::Settings;

#[tokio::main]
async fn main() -> ExitCode {
    // Portcullis tells what happens to sessions as tracing events: watch this terminal while you click.
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quickstart: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let settings = Settings::from_env()?;
    let listener = listen(settings.port).await?;
    // The port is known only now, and the origin is part of what a session is bound to.
    let origin = origin(listener.local_addr()?.port());
    let timeouts = Timeouts::default();
    let sessions = build_sessions(&settings, &origin, timeouts).await?;
    announce(&origin)?;
    axum::serve(listener, routes::router(sessions, timeouts)).await?;
    Ok(())
}

async fn build_sessions(
    settings: &Settings,
    origin: &str,
    timeouts: Timeouts,
) -> Result<SessionLayer, Box<dyn Error>> {
    let keys = KeyRing::from_file_or_generate(&settings.keys)
        .map_err(|error| format!("{error} (SESSION_KEYS_FILE names another one)"))?;
    let store = SqliteStore::open(&settings.database)
        .await
        .map_err(|error| format!("{error} (PORTCULLIS_DB names another one)"))?;
    let sessions = SessionLayer::builder(origin, keys, store)
        .timeouts(timeouts)
        .danger_localhost_development()
        .build()
        .map_err(|error| format!("{error}\n{}", settings.which_files()))?;
    sessions.ready().await?;
    Ok(sessions)
}

async fn listen(port: u16) -> Result<TcpListener, String> {
    TcpListener::bind(("127.0.0.1", port)).await.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => {
            format!("port {port} is taken: stop the program that listens there, or choose another port, as in PORT=0")
        }
        ErrorKind::PermissionDenied => {
            format!("port {port} is not for ordinary users: choose one above 1023, as in PORT=3000")
        }
        _ => format!("cannot listen on 127.0.0.1:{port} ({error}): choose another port, as in PORT=0"),
    })
}

/// The origin as browsers write it: without the port where it is the scheme's own.
fn origin(port: u16) -> String {
    if port == 80 { "http://localhost".into() } else { format!("http://localhost:{port}") }
}

fn announce(origin: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "Open {origin} and sign in as alice or bob, password {}.", users::PASSWORD)?;
    writeln!(out, "{RELAXED}")?;
    out.flush()
}

const RELAXED: &str = "\
This is the localhost development mode: cookies go without Secure and without a name prefix over plain HTTP, so other
servers on this machine can read and set them. A real site leaves danger_localhost_development() out and uses https.";
