//! How the stores under test are made.

use std::sync::Arc;
#[cfg(feature = "sqlite")]
use std::{
    env, fs,
    path::PathBuf,
    process,
    sync::atomic::{AtomicU32, Ordering},
};

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
