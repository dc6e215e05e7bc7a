//! The command line.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use http::Method;
use portcullis::{
    BindingPolicy, ClearSiteData, CookiePolicy, CrossSite, DeviceBinding, FeedLoss, KeyRing, Outage,
    Timeouts,
    clock::{Clock, ManualClock, SystemClock, Timestamp},
    cookie::{CookieRule, SameSite},
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
    pub(crate) policy: CookiePolicy,
    pub(crate) cross_site: CrossSite,
    pub(crate) binding: BindingPolicy,
    pub(crate) cookie_domain: Option<String>,
    pub(crate) trusted_proxies: Vec<String>,
    pub(crate) client_ip_header: Option<String>,
    pub(crate) context_header: Option<String>,
    pub(crate) sealed: Vec<String>,
    pub(crate) clear: Vec<ClearSiteData>,
    pub(crate) no_store: bool,
    pub(crate) form_tokens: bool,
    pub(crate) polling: Vec<String>,
    pub(crate) device_binding: DeviceBinding,
    pub(crate) software_keys: bool,
    pub(crate) include_site: bool,
    pub(crate) same_site: SameSite,
    pub(crate) first_party_links: bool,
    pub(crate) initiators: Vec<String>,
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
        policy: CookiePolicy::default(),
        cross_site: CrossSite::default(),
        binding: BindingPolicy::default(),
        cookie_domain: None,
        trusted_proxies: Vec::new(),
        client_ip_header: None,
        context_header: None,
        sealed: Vec::new(),
        clear: Vec::new(),
        no_store: false,
        form_tokens: false,
        polling: Vec::new(),
        device_binding: DeviceBinding::Off,
        software_keys: false,
        include_site: false,
        same_site: SameSite::Lax,
        first_party_links: false,
        initiators: Vec::new(),
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
            _ => rules(&mut flags, &flag, &value)?,
        }
    }
    Ok(Command::Serve(Box::new(flags)))
}

/// The flags for cookies and requests.
fn rules(flags: &mut Flags, flag: &str, value: &str) -> Result<(), String> {
    let wrong = || format!("{flag} {value}: not a value of this flag");
    match flag {
        "--policy" => {
            flags.policy = match value {
                "enforce" => CookiePolicy::enforce(),
                "report" => CookiePolicy::report(),
                "off" => CookiePolicy::off(),
                _ => return Err(wrong()),
            }
        }
        "--script-cookie" => {
            flags.policy = flags.policy.clone().except(value, CookieRule::HttpOnly, "a script reads it");
        }
        "--binding" => {
            flags.binding = match value {
                "off" => BindingPolicy::off(),
                "default" => BindingPolicy::default(),
                "strict" => BindingPolicy::strict(),
                _ => return Err(wrong()),
            }
        }
        "--cross-site" if value == "report" => flags.cross_site = CrossSite::report(),
        "--trust-origin" => flags.cross_site = flags.cross_site.clone().trust_origin(value),
        "--bypass" => flags.cross_site = flags.cross_site.clone().bypass(Method::POST, value),
        "--cookie-domain" => flags.cookie_domain = Some(value.into()),
        "--trusted-proxy" => flags.trusted_proxies.push(value.into()),
        "--client-ip-header" => flags.client_ip_header = Some(value.into()),
        "--context-header" => flags.context_header = Some(value.into()),
        "--seal-cookie" => flags.sealed.push(value.into()),
        "--clear-site-data" => flags.clear.push(match value {
            "cookies" => ClearSiteData::Cookies,
            "storage" => ClearSiteData::Storage,
            _ => return Err(wrong()),
        }),
        "--polling-route" => flags.polling.push(value.into()),
        "--device-binding" => {
            flags.device_binding = match (value, value.strip_prefix("require=")) {
                ("offer", _) => DeviceBinding::Offer,
                (_, Some(after)) => {
                    DeviceBinding::Require(after.parse().map(Duration::from_secs).map_err(|_| wrong())?)
                }
                _ => return Err(wrong()),
            }
        }
        "--same-site" => {
            flags.same_site = match value {
                "strict" => SameSite::Strict,
                "lax" => SameSite::Lax,
                _ => return Err(wrong()),
            }
        }
        "--first-party-links" => flags.first_party_links = value == "on",
        "--include-site" => flags.include_site = value == "on",
        "--software-keys" => flags.software_keys = value == "on",
        "--refresh-initiator" => flags.initiators.push(value.into()),
        "--no-store" => flags.no_store = value == "on",
        "--form-tokens" => flags.form_tokens = value == "on",
        _ => return Err(format!("{flag} is no flag of this program")),
    }
    Ok(())
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
