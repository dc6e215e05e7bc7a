//! What is looked at before anything is served: who answers there, and whether it is fit to keep sessions.

use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64},
    },
};

use redis::{ErrorKind, RedisError, RedisResult, ServerErrorKind};

use super::{
    super::open_error::StoreOpenError,
    RedisStore, Shared,
    feed::News,
    keys::{Keys, PARTITIONS},
    link::Listener,
    scripts::Scripts,
    servers::Servers,
    target::{Target, without_password},
};
use crate::{base64url, clock::Clock, crypto::random};

/// How a store in Redis is opened, where the URL does not say it all.
pub struct RedisOptions {
    url: String,
    prefix: String,
    clock: Option<Arc<dyn Clock>>,
}

impl RedisOptions {
    /// The options of [`RedisStore::open`].
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), prefix: "portcullis:".into(), clock: None }
    }

    /// Begins every key with `prefix` in place of `portcullis:`. Applications that share a Redis want one each. It must not
    /// hold a brace, which would decide in which slot of a cluster the keys lie.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Takes another clock in place of the server's, for tests. Give the layer the same one.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Opens the store.
    ///
    /// # Errors
    /// As [`RedisStore::open`].
    pub async fn open(self) -> Result<RedisStore, StoreOpenError> {
        let Self { url, prefix, clock } = self;
        if prefix.contains(['{', '}']) {
            return Err(StoreOpenError::new(
                format!("the key prefix `{prefix}` holds a brace"),
                "leave braces out: Redis Cluster would put all sessions into one slot",
            ));
        }
        let target = Target::parse(&url)?;
        let keys = Keys::new(prefix);
        let news = Arc::new(News::default());
        let listener: Listener = {
            let news = Arc::clone(&news);
            Arc::new(move |heard| news.hear(heard))
        };
        let refused = |error: &RedisError| refusal(&url, error);
        let channel = Some((keys.channel(), listener));
        let link = Servers::open(&target, channel).await.map_err(|error| refused(&error))?;
        let sure = Servers::open(&target, None).await.map_err(|error| refused(&error))?;
        let writer: [u8; 12] = random::bytes().map_err(|error| {
            StoreOpenError::new(
                error.to_string(),
                "let this process read random bytes from the operating system",
            )
        })?;
        let shared = Shared {
            keys,
            scripts: Scripts::new(),
            link,
            sure,
            replicas_answer: AtomicBool::new(false),
            clock,
            news,
            writer: base64url::encode(&writer),
            writes: AtomicU64::new(0),
            index: Mutex::default(),
            index_written: AtomicBool::new(false),
        };
        shared.check_server(&url).await?;
        let (version, index) = shared.claim(&[]).await.map_err(|error| refused(&error))?;
        if version != VERSION {
            return Err(StoreOpenError::new(
                format!(
                    "the sessions in {} were written by a later version of portcullis",
                    without_password(&url)
                ),
                "use that version, or another key prefix",
            ));
        }
        *shared.index.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = index;
        shared.index_written.store(index.is_some(), std::sync::atomic::Ordering::Release);
        // Each partition notes when it was made: what a cookie from before says, the store must confirm.
        let shared = Arc::new(shared);
        shared.window(std::time::Duration::ZERO).await.map_err(|error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            StoreOpenError::new(
                format!("not all of the {PARTITIONS} partitions in {} can be used ({cause})", without_password(&url)),
                "check that every slot of the cluster is served, and that the user may use all keys of the prefix",
            )
        })?;
        Ok(RedisStore(shared))
    }
}

impl Shared {
    /// Ties the store to an index secret; empty only asks. The version of what is kept, and whose it is.
    pub(super) async fn claim(&self, check: &[u8]) -> RedisResult<(String, Option<[u8; 16]>)> {
        let text = base64url::encode(check);
        let call = self.call(&self.scripts.claim, 0, [self.keys.meta(0)]).arg(text);
        let (version, index): (String, Option<Vec<u8>>) = call.run(&self.link).await?;
        Ok((version, index.and_then(|text| base64url::decode_array(&text))))
    }

    /// Whether the server is new enough; and a warning where it may throw sessions away.
    async fn check_server(&self, url: &str) -> Result<(), StoreOpenError> {
        let mut info = redis::cmd("INFO");
        info.arg("server").arg("memory");
        // Not everybody may ask; then the scripts will tell.
        let Ok(text) = self.link.send(0, &info).await else { return Ok(()) };
        let text: String = redis::from_redis_value(text).unwrap_or_default();
        let line = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
                .map(str::trim)
                .unwrap_or_default()
        };
        let mut version = line("redis_version").split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        let version = (version.next().unwrap_or(0), version.next().unwrap_or(0));
        if version != (0, 0) && version < OLDEST {
            return Err(StoreOpenError::new(
                format!("the Redis at {} is version {}", without_password(url), line("redis_version")),
                "use Redis 6.2 or later, or Valkey",
            ));
        }
        let policy = line("maxmemory_policy");
        if !matches!(line("maxmemory"), "" | "0") && !matches!(policy, "" | "noeviction") {
            tracing::warn!(
                target: "portcullis",
                policy,
                "this Redis evicts keys when its memory is full: people would be signed out, and revocations forgotten. \
                 Remedy: set maxmemory-policy to noeviction, and give sessions a Redis of their own."
            );
        }
        Ok(())
    }
}

/// Says why nobody could be talked to, and what to do about it.
fn refusal(url: &str, error: &RedisError) -> StoreOpenError {
    let place = without_password(url);
    let code = error.code().unwrap_or_default();
    match (code, error.kind()) {
        ("WRONGPASS" | "NOAUTH", _) | (_, ErrorKind::AuthenticationFailed) => StoreOpenError::new(
            format!("the Redis at {place} refuses the user or the password"),
            "put them into the URL: redis://USER:PASSWORD@HOST:PORT, or redis://:PASSWORD@HOST:PORT",
        ),
        ("NOPERM", _) | (_, ErrorKind::Server(ServerErrorKind::NoPerm)) => StoreOpenError::new(
            format!("the user of the Redis at {place} may not do what sessions need ({error})"),
            "allow it `~portcullis:* &portcullis:* +@all -@dangerous +info`, or what stands for your key prefix",
        ),
        _ => StoreOpenError::new(
            format!("the Redis at {place} cannot be used ({error})"),
            concat!(
                "check the address and that the server runs, and redis:// against rediss:// (TLS); redis+cluster:// if the error ",
                "says MOVED; the primary, or redis+sentinel://, if it says READONLY; the SERVICE in the URL if the sentinels do ",
                "not know the name"
            ),
        ),
    }
}

impl fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisOptions").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

const VERSION: &str = "1";

/// `XRANGE` from an exclusive start is the newest command that is used.
const OLDEST: (u32, u32) = (6, 2);
