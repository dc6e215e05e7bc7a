//! How the stores under test are made.

#[cfg(any(feature = "sqlite", feature = "redis", feature = "postgres"))]
use std::{
    env, process,
    sync::atomic::{AtomicU32, Ordering},
};
#[cfg(feature = "sqlite")]
use std::{fs, path::PathBuf};
use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use portcullis::{
    clock::ManualClock,
    store::{MemoryStore, Store},
};

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
    folder: Folder,
}

#[cfg(feature = "sqlite")]
#[async_trait]
impl Harness for Sqlite {
    fn new(clock: Arc<ManualClock>) -> Self {
        Self { clock, folder: Folder::new() }
    }

    async fn open(&self) -> Arc<dyn Store> {
        let clock = Arc::clone(&self.clock) as _;
        Arc::new(portcullis::SqliteStore::open_with_clock(self.folder.file(), clock).await.unwrap())
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

/// A name that no other test of any process uses.
#[cfg(any(feature = "redis", feature = "postgres"))]
fn unique(kind: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("contract_{kind}_{}_{number}", process::id())
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
        Self { clock, schema: unique("schema") }
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
        let prefix = format!("{}:", unique("prefix"));
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

/// A folder of one test, so that the files SQLite puts beside its own go with it.
#[cfg(feature = "sqlite")]
pub(crate) struct Folder(PathBuf);

#[cfg(feature = "sqlite")]
impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("portcullis-contract-{}-{number}", process::id()));
        // A process of the same number may have died here.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    /// The path of the database, which is not there yet.
    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("sessions.db")
    }
}

#[cfg(feature = "sqlite")]
impl Drop for Folder {
    fn drop(&mut self) {
        // A connection that is still closing may put a file back; what then stays in the temporary folder does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}
