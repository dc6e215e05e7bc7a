//! The library as a bare server, for tests, load and faults. It checks no password: never put it on a network.
//!
//! ```text
//! cargo run --example lab -- [--listen 127.0.0.1:0] [--origin https://app.site.test] [--store STORE]
//!     [--prefix NAME] [--verb-timeout MS] [--outage grace=S,unsafe,feed=S,check,journal=PATH]
//!     [--keys TEXT] [--print-new-keys] [--fresh S] [--idle S] [--absolute S] [--grace S] [--recent S] [--clock manual[@SECOND]]
//!     [--ahead MS] [--policy enforce|report|off] [--binding off|default|strict] [--cookie-domain DOMAIN]
//!     [--trusted-proxy CIDR]... [--client-ip-header NAME] [--context-header NAME] [--seal-cookie NAME]...
//!     [--cross-site report] [--trust-origin ORIGIN]... [--bypass PATH]... [--script-cookie NAME]... [--form-tokens on]
//!     [--clear-site-data cookies|storage]... [--no-store on] [--polling-route PATH]...
//!     [--device-binding offer|require=S] [--refresh-initiator HOST]... [--software-keys on] [--include-site on]
//!     [--same-site strict|lax] [--first-party-links on]
//! ```
//!
//! STORE is `memory`, `sqlite:PATH`, `redis://…`, `redis+sentinel://…`, `redis+cluster://…` or `postgres://…`; those of
//! Redis want the feature `redis`, the last wants `postgres`. NAME is the key prefix or the schema there. S are seconds, MS
//! milliseconds. Several labs over one store want the same --keys.
//!
//! It speaks plain HTTP, as if a proxy in front of it spoke TLS; an origin of `http://localhost…` is served in development
//! mode. The first line on standard output is
//! `listening on 127.0.0.1:PORT`.

#![allow(clippy::print_stdout, reason = "what it says on standard output is how a test finds it")]

mod counted;
mod flags;
mod routes;
mod rules;

use std::{error::Error, io::Write as _, net::SocketAddr, process::ExitCode, sync::Arc};

use axum::extract::ConnectInfo;
use portcullis::{MemoryStore, SessionLayer, SqliteStore, clock::Clock, store::Store};

use counted::Counted;
use flags::{Command, Flags, StoreFlag};

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let done = match flags::parse(std::env::args().skip(1)) {
        Ok(Command::PrintNewKeys) => print_new_keys(),
        Ok(Command::Serve(flags)) => serve(*flags).await,
        Err(error) => Err(error.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lab: {error}");
            ExitCode::from(2)
        }
    }
}

fn print_new_keys() -> Result<(), Box<dyn Error>> {
    let keys = portcullis::KeyRing::generate()?;
    println!("{}", keys.to_text().trim_end().replace('\n', ";"));
    Ok(())
}

async fn serve(flags: Flags) -> Result<(), Box<dyn Error>> {
    let clock: Arc<dyn Clock> = match &flags.manual_clock {
        Some(clock) => Arc::clone(clock) as _,
        None => Arc::new(flags::WrongClock(flags.ahead)),
    };
    let store = open(&flags, &clock).await?;
    let (store, counters) = Counted::new(store);
    let mut sessions = SessionLayer::builder(&flags.origin, flags.keys, store)
        .timeouts(flags.timeouts)
        .recent(flags.recent)
        .outage(flags.outage)
        .clock(clock)
        .cookie_policy(flags.policy)
        .cross_site(flags.cross_site)
        .binding(flags.binding)
        .trusted_proxies(flags.trusted_proxies)
        .clear_site_data(flags.clear)
        .device_binding(flags.device_binding)
        .same_site(flags.same_site)
        .refresh_initiators(flags.initiators)
        .peer_address(|extensions| {
            extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip())
        });
    if flags.first_party_links {
        sessions = sessions.first_party_links();
    }
    if flags.include_site {
        sessions = sessions.include_site();
    }
    if flags.software_keys {
        sessions = sessions.software_keys();
    }
    if let Some(domain) = flags.cookie_domain {
        sessions = sessions.cookie_domain(domain);
    }
    if let Some(name) = flags.client_ip_header {
        sessions = sessions.client_ip_header(name);
    }
    if let Some(name) = flags.context_header {
        sessions = sessions.context_header(name);
    }
    for name in flags.sealed {
        sessions = sessions.seal_cookie(name);
    }
    for path in flags.polling {
        sessions = sessions.polling_route(path);
    }
    if flags.no_store {
        sessions = sessions.no_store_when_signed_in();
    }
    if flags.origin.starts_with("http://") {
        sessions = sessions.danger_localhost_development();
    }
    let sessions = sessions.build()?;
    sessions.ready().await?;
    let app = routes::router(&sessions, flags.manual_clock, counters, flags.form_tokens)
        .into_make_service_with_connect_info::<SocketAddr>();
    let listener = tokio::net::TcpListener::bind(flags.listen).await?;
    println!("listening on {}", listener.local_addr()?);
    std::io::stdout().flush()?;
    axum::serve(listener, app).await?;
    Ok(())
}

async fn open(flags: &Flags, clock: &Arc<dyn Clock>) -> Result<Arc<dyn Store>, Box<dyn Error>> {
    Ok(match &flags.store {
        StoreFlag::Memory => Arc::new(MemoryStore::with_clock(Arc::clone(clock))),
        StoreFlag::Sqlite(path) => Arc::new(SqliteStore::open_with_clock(path, Arc::clone(clock)).await?),
        #[cfg(feature = "redis")]
        StoreFlag::Redis(url) => {
            let mut options = portcullis::RedisOptions::new(url).prefix(format!("{}:", flags.prefix));
            if flags.manual_clock.is_some() {
                options = options.clock(Arc::clone(clock));
            }
            Arc::new(options.open().await?)
        }
        #[cfg(feature = "postgres")]
        StoreFlag::Postgres(url) => {
            let mut options = portcullis::PostgresOptions::new(url).schema(&flags.prefix);
            if flags.manual_clock.is_some() {
                options = options.clock(Arc::clone(clock));
            }
            Arc::new(options.open().await?)
        }
        #[allow(unreachable_patterns, reason = "with both features nothing is left")]
        StoreFlag::Redis(url) | StoreFlag::Postgres(url) => {
            return Err(format!("{url}: build lab with the feature redis or postgres").into());
        }
    })
}
