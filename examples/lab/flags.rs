//! The command line.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use portcullis::{
    KeyRing, Timeouts,
    clock::{Clock as _, ManualClock, SystemClock},
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
    pub(crate) manual_clock: Option<Arc<ManualClock>>,
}

/// Where sessions are kept.
pub(crate) enum StoreFlag {
    Memory,
    Sqlite(PathBuf),
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
        manual_clock: None,
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
            "--recent" => flags.recent = seconds()?,
            "--clock" if value == "manual" => {
                flags.manual_clock = Some(Arc::new(ManualClock::at(SystemClock::default().now())));
            }
            "--clock" => return Err(wrong()),
            _ => return Err(format!("{flag} is no flag of this program")),
        }
    }
    Ok(Command::Serve(Box::new(flags)))
}

fn store(value: &str) -> Option<StoreFlag> {
    match value.split_once(':') {
        None if value == "memory" => Some(StoreFlag::Memory),
        Some(("sqlite", path)) if !path.is_empty() => Some(StoreFlag::Sqlite(path.into())),
        _ => None,
    }
}
