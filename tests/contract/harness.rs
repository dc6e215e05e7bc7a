//! How the stores under test are made.

#[cfg(any(feature = "redis", feature = "postgres"))]
use std::env;
use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use portcullis::{
    clock::ManualClock,
    store::{MemoryStore, Store},
};

#[cfg(feature = "sqlite")]
use crate::scratch::Scratch;
#[cfg(any(feature = "redis", feature = "postgres"))]
use crate::unique::unique;

/// A place where one store's data lies, empty at first and cleared away when dropped.
#[async_trait]
pub(crate) trait Harness: Send + Sync + 'static {
    /// A place of its own, whose stores read `clock`.
    fn new(clock: Arc<ManualClock>) -> Self
    where
        Self: Sized;

    /// Whether the server is there that the store needs. `tests/servers` starts one of each kind.
    fn is_there() -> bool
    where
        Self: Sized,
    {
        true
    }

    /// Whether the server removes by itself what is over, so that a purge counts none of it.
    fn expires_by_itself(&self) -> bool {
        false
    }

    /// Whether a server does what was sent although the caller went away.
    fn goes_on_alone(&self) -> bool {
        false
    }

    /// How long after its end a session may lie there before a purge takes it.
    fn purges_by(&self) -> Duration {
        Duration::ZERO
    }

    /// One more handle to the data, as another process would have; where that cannot be, a clone.
    async fn open(&self) -> Arc<dyn Store>;
}

/// Stores in memory: handles are clones.
pub(crate) struct Memory(MemoryStore);

#[async_trait]
impl Harness for Memory {
    fn new(clock: Arc<ManualClock>) -> Self {
        Self(MemoryStore::with_clock(clock))
    }

    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(self.0.clone())
    }
}

/// Stores in an SQLite file: each handle has connections of its own.
#[cfg(feature = "sqlite")]
pub(crate) struct Sqlite {
    clock: Arc<ManualClock>,
    scratch: Scratch,
}

#[cfg(feature = "sqlite")]
#[async_trait]
impl Harness for Sqlite {
    fn new(clock: Arc<ManualClock>) -> Self {
        Self { clock, scratch: Scratch::new() }
    }

    async fn open(&self) -> Arc<dyn Store> {
        let clock = Arc::clone(&self.clock) as _;
        Arc::new(
            portcullis::SqliteStore::open_with_clock(self.scratch.file("sessions.db"), clock).await.unwrap(),
        )
    }
}

/// Stores in Redis: each test has a key prefix of its own. `URL` is the name of the variable that says where.
#[cfg(feature = "redis")]
pub(crate) struct Redis<URL: Place> {
    clock: Arc<ManualClock>,
    prefix: String,
    place: std::marker::PhantomData<URL>,
}

/// Which servers.
#[cfg(feature = "redis")]
pub(crate) trait Place: Send + Sync + 'static {
    /// The variable that says where they are.
    const VARIABLE: &str;

    /// Where they are, if they are there.
    fn url() -> Option<String> {
        env::var(Self::VARIABLE).ok()
    }
}

/// One server.
#[cfg(feature = "redis")]
pub(crate) struct Alone;

/// The primary that a sentinel names.
#[cfg(feature = "redis")]
pub(crate) struct Sentinel;

/// Three nodes.
#[cfg(feature = "redis")]
pub(crate) struct Cluster;

#[cfg(feature = "redis")]
impl Place for Alone {
    const VARIABLE: &str = "PORTCULLIS_TEST_REDIS";
}

#[cfg(feature = "redis")]
impl Place for Sentinel {
    const VARIABLE: &str = "PORTCULLIS_TEST_SENTINEL";
}

#[cfg(feature = "redis")]
impl Place for Cluster {
    const VARIABLE: &str = "PORTCULLIS_TEST_CLUSTER";
}

#[cfg(feature = "postgres")]
fn database() -> Option<String> {
    env::var("PORTCULLIS_TEST_POSTGRES").ok()
}

/// Stores in PostgreSQL: each test has a schema of its own.
#[cfg(feature = "postgres")]
pub(crate) struct Postgres {
    clock: Arc<ManualClock>,
    schema: String,
}

#[cfg(feature = "postgres")]
#[async_trait]
impl Harness for Postgres {
    fn new(clock: Arc<ManualClock>) -> Self {
        Self { clock, schema: unique("contract_schema") }
    }

    fn is_there() -> bool {
        database().is_some()
    }

    fn purges_by(&self) -> Duration {
        Duration::from_secs(3600)
    }

    fn goes_on_alone(&self) -> bool {
        true
    }

    async fn open(&self) -> Arc<dyn Store> {
        let options = portcullis::PostgresOptions::new(database().unwrap());
        let options = options.schema(&self.schema).connections(4).clock(Arc::clone(&self.clock) as _);
        Arc::new(options.open().await.unwrap())
    }
}

#[cfg(feature = "redis")]
#[async_trait]
impl<URL: Place> Harness for Redis<URL> {
    fn new(clock: Arc<ManualClock>) -> Self {
        let prefix = format!("{}:", unique("contract_prefix"));
        Self { clock, prefix, place: std::marker::PhantomData }
    }

    fn is_there() -> bool {
        URL::url().is_some()
    }

    fn expires_by_itself(&self) -> bool {
        true
    }

    fn goes_on_alone(&self) -> bool {
        true
    }

    async fn open(&self) -> Arc<dyn Store> {
        let options = portcullis::RedisOptions::new(URL::url().unwrap()).prefix(&self.prefix);
        Arc::new(options.clock(Arc::clone(&self.clock) as _).open().await.unwrap())
    }
}
