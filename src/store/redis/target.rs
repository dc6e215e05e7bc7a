//! Where the servers are: the URL, taken apart.

use std::time::Duration;

use redis::{
    Client, ConnectionInfo, IntoConnectionInfo, ProtocolVersion,
    io::tcp::TcpSettings,
    sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType},
};

use super::super::open_error::StoreOpenError;

/// How the servers are reached.
#[derive(Clone)]
pub(super) enum Target {
    /// One server.
    One(Box<ConnectionInfo>),
    /// The primary that these sentinels name.
    Sentinel { sentinels: Vec<ConnectionInfo>, service: String, database: i64 },
    /// A cluster, of which these nodes tell.
    Cluster(Vec<ConnectionInfo>),
}

impl Target {
    /// Takes a URL apart.
    pub(super) fn parse(url: &str) -> Result<Self, StoreOpenError> {
        let wrong = || {
            StoreOpenError::new(
                format!("`{}` is no URL of a Redis", without_password(url)),
                concat!(
                    "write redis://[USER:PASSWORD@]HOST:PORT[/DATABASE], redis+sentinel://HOST:PORT,HOST:PORT/SERVICE[/DATABASE] ",
                    "or redis+cluster://HOST:PORT,HOST:PORT; rediss:// in place of redis:// for TLS"
                ),
            )
        };
        let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
        let (tls, kind) = match scheme.split_once('+').unwrap_or((scheme, "")) {
            ("redis" | "valkey", kind) => ("redis", kind),
            ("rediss" | "valkeys", kind) => ("rediss", kind),
            _ => return Err(wrong()),
        };
        if tls == "rediss" {
            provide_tls();
        }
        let (user, rest) = rest.rsplit_once('@').map_or(("", rest), |(user, rest)| (user, rest));
        let user = if user.is_empty() { String::new() } else { format!("{user}@") };
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        let one = |host: &str, path: &str| {
            let info = format!("{tls}://{user}{host}/{path}").into_connection_info().map_err(|_| wrong())?;
            if host.is_empty() { Err(wrong()) } else { Ok(settled(info)) }
        };
        let each = |path: &str| hosts.split(',').map(|host| one(host, path)).collect::<Result<Vec<_>, _>>();
        match kind {
            "" => Ok(Self::One(Box::new(one(hosts, path)?))),
            "cluster" if path.is_empty() => Ok(Self::Cluster(each("")?)),
            "sentinel" => {
                let (service, database) = path.split_once('/').unwrap_or((path, "0"));
                if service.is_empty() {
                    return Err(wrong());
                }
                let database = database.parse().map_err(|_| wrong())?;
                Ok(Self::Sentinel { sentinels: each("")?, service: service.into(), database })
            }
            _ => Err(wrong()),
        }
    }
}

/// A client of one server.
pub(super) fn client(info: &ConnectionInfo) -> redis::RedisResult<Client> {
    Client::open(info.clone())
}

/// A client that asks sentinels. The user and password of the URL are those of the servers, not of the sentinels.
pub(super) fn sentinel_client(
    sentinels: &[ConnectionInfo],
    service: &str,
    database: i64,
) -> redis::RedisResult<SentinelClient> {
    let addresses: Vec<_> = sentinels.iter().map(|info| info.addr().clone()).collect();
    let tls = addresses.iter().any(|address| matches!(address, redis::ConnectionAddr::TcpTls { .. }));
    let mut builder = SentinelClientBuilder::new(addresses, service, SentinelServerType::Master)?
        .set_client_to_redis_db(database)
        .set_client_to_redis_protocol(ProtocolVersion::RESP3)
        .set_client_to_redis_tcp_settings(tcp())
        .set_client_to_sentinel_tcp_settings(tcp());
    if tls {
        builder = builder
            .set_client_to_redis_tls_mode(redis::TlsMode::Secure)
            .set_client_to_sentinel_tls_mode(redis::TlsMode::Secure);
    }
    let settings = sentinels.first().map(ConnectionInfo::redis_settings);
    if let Some(username) = settings.and_then(|settings| settings.username()) {
        builder = builder.set_client_to_redis_username(username);
    }
    if let Some(password) = settings.and_then(|settings| settings.password()) {
        builder = builder.set_client_to_redis_password(password);
    }
    builder.build()
}

/// RESP3, so that the feed's messages come over the same connection.
fn settled(info: ConnectionInfo) -> ConnectionInfo {
    let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    info.set_redis_settings(settings).set_tcp_settings(tcp())
}

fn tcp() -> TcpSettings {
    let settings = TcpSettings::default().set_nodelay(true);
    #[cfg(target_os = "linux")]
    let settings = settings.set_user_timeout(ANSWER);
    settings
}

/// The application may have chosen what does its TLS; where it has not, one is chosen here.
fn provide_tls() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // An error says that another thread was first, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

/// The URL as an error may show it.
pub(super) fn without_password(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    if scheme.is_empty() { host.to_owned() } else { format!("{scheme}://{host}") }
}

/// How long a connection may take to come about.
pub(super) const CONNECT: Duration = Duration::from_secs(2);

/// How long an answer may take before the connection counts as dead. A verb's own limit is far shorter.
pub(super) const ANSWER: Duration = Duration::from_secs(3);
