//! The command line.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use portcullis::{
    FeedLoss, KeyRing, Outage, Timeouts,
    clock::{Clock, ManualClock, SystemClock, Timestamp},
};

/// What to do.
pub(crate) enum Command {
    PrintNewKeys,
    Serve(Box<Flags>),
}

/// How to serve.
pub(crate) struct Flags {
    pub(crate) listen: SocketAddr,
    pub(crate) origin: String,
    pub(crate) store: StoreFlag,
    pub(crate) keys: KeyRing,
    pub(crate) timeouts: Timeouts,
    pub(crate) recent: Duration,
    pub(crate) outage: Outage,
    /// Keeps what several labs do in one Redis or PostgreSQL apart.
    pub(crate) prefix: String,
    pub(crate) manual_clock: Option<Arc<ManualClock>>,
    /// So much is this machine's clock ahead of the store's.
    pub(crate) ahead: i64,
}

/// The system's clock, set wrong.
#[derive(Debug)]
pub(crate) struct WrongClock(pub(crate) i64);

impl Clock for WrongClock {
    fn now(&self) -> Timestamp {
        SystemClock::default().now().offset_by(self.0)
    }
}

/// Where sessions are kept.
pub(crate) enum StoreFlag {
    Memory,
    Sqlite(PathBuf),
    /// A URL of one of these kinds.
    Redis(String),
    Postgres(String),
}

/// Reads the arguments; the error says which flag is wrong.
pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> Result<Command, String> {
    let mut flags = Flags {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        origin: "https://app.site.test".into(),
        store: StoreFlag::Memory,
        keys: KeyRing::generate().map_err(|error| error.to_string())?,
        timeouts: Timeouts::default(),
        recent: Duration::from_secs(300),
        outage: Outage::default(),
        prefix: "lab".into(),
        manual_clock: None,
        ahead: 0,
    };
    let mut arguments = arguments;
    while let Some(flag) = arguments.next() {
        if flag == "--print-new-keys" {
            return Ok(Command::PrintNewKeys);
        }
        let value = arguments.next().ok_or_else(|| format!("{flag} wants a value, or is no flag"))?;
        let wrong = || format!("{flag} {value}: not a value of this flag");
        let seconds = || value.parse().map(Duration::from_secs).map_err(|_| wrong());
        match flag.as_str() {
            "--listen" => flags.listen = value.parse().map_err(|_| wrong())?,
            "--origin" => flags.origin = value,
            "--store" => flags.store = store(&value).ok_or_else(wrong)?,
            "--keys" => {
                flags.keys = KeyRing::from_text(&value).map_err(|error| format!("--keys: {error}"))?
            }
            "--fresh" => flags.timeouts = flags.timeouts.fresh(seconds()?),
            "--idle" => flags.timeouts = flags.timeouts.idle(seconds()?),
            "--absolute" => flags.timeouts = flags.timeouts.absolute(seconds()?),
            "--grace" => flags.timeouts = flags.timeouts.grace(seconds()?),
            "--verb-timeout" => {
                let limit = value.parse().map(Duration::from_millis).map_err(|_| wrong())?;
                flags.outage = flags.outage.verb_timeout(limit);
            }
            "--outage" => flags.outage = outage(flags.outage, &value).ok_or_else(wrong)?,
            "--ahead" => flags.ahead = value.parse().map_err(|_| wrong())?,
            "--prefix" => flags.prefix = value,
            "--recent" => flags.recent = seconds()?,
            "--clock" => {
                let start = match value.strip_prefix("manual") {
                    Some("") => SystemClock::default().now(),
                    Some(at) => Timestamp::from_seconds(
                        at.strip_prefix('@').and_then(|at| at.parse().ok()).ok_or_else(wrong)?,
                    ),
                    None => return Err(wrong()),
                };
                flags.manual_clock = Some(Arc::new(ManualClock::at(start)));
            }
            _ => return Err(format!("{flag} is no flag of this program")),
        }
    }
    Ok(Command::Serve(Box::new(flags)))
}

fn store(value: &str) -> Option<StoreFlag> {
    match value.split_once(':') {
        None if value == "memory" => Some(StoreFlag::Memory),
        Some((scheme, _)) if scheme.starts_with("redis") => Some(StoreFlag::Redis(value.into())),
        Some(("postgres" | "postgresql", _)) => Some(StoreFlag::Postgres(value.into())),
        Some(("sqlite", path)) if !path.is_empty() => Some(StoreFlag::Sqlite(path.into())),
        _ => None,
    }
}

/// `grace=S`, `unsafe`, `feed=S`, `check`, `journal=PATH`, joined by commas.
fn outage(mut outage: Outage, value: &str) -> Option<Outage> {
    let (mut patience, mut then) = (Duration::from_secs(10), FeedLoss::Accept);
    for part in value.split(',') {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let seconds = || value.parse().ok().map(Duration::from_secs);
        match name {
            "grace" => outage = outage.grace(seconds()?),
            "unsafe" => outage = outage.grace_for_unsafe_methods(),
            "feed" => patience = seconds()?,
            "check" => then = FeedLoss::CheckStore,
            "journal" => outage = outage.journal(value),
            _ => return None,
        }
    }
    Some(outage.feed_loss(patience, then))
}
