//! Sessions in Redis or Valkey: one server, the primary that sentinels name, or a cluster.
//!
//! ```text
//! target    the URL            link      a connection that comes back      cluster   one for each node
//! keys      names, partitions  scripts   the atomic steps, in Lua
//! sessions  one session        subjects  the sessions of a user
//! create    a new session     feed      the streams        open      what is looked at before anything is served
//! ```
//!
//! Each step is one script over the keys of one partition, so the same store works on a cluster. What concerns two
//! partitions (a session and its user, an old id and its newer one) is done in an order that leaves nothing alive that should
//! be dead, whoever dies in between: a session is entered into its user's index before it is written and the epoch is read
//! again after; a newer id is written before the older one is taken from, and nobody knows it until then.

mod cluster;
mod create;
mod feed;
mod keys;
mod link;
mod open;
mod scripts;
mod servers;
mod sessions;
mod subjects;
mod target;

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use redis::FromRedisValue;

use super::{
    contract::{
        CommitRequest, CreateError, IndexMismatch, NewSession, RotateAnswer, RotateRequest, Store, StoreError,
    },
    feed::{FeedBatch, FeedPosition},
    optimistic,
    revocation::Revocation,
    row::{FieldTag, Row},
};
use crate::{
    clock::{Clock, Timestamp},
    id::{StoredId, SubjectKey},
};
use keys::{Keys, PARTITIONS, partition};
pub use open::RedisOptions;
use scripts::{Call, Lua, Millis, Scripts};
use servers::Servers;

/// A store in Redis 6.2 or later, or Valkey. Clones share it, and its two connections to the server, or to each node of a
/// cluster. At rest an instance sends about 64 small commands a second, and reads all 64 streams of the feed every 5 s.
///
/// A session is one hash that Redis removes by itself a minute after its end. `maxmemory-policy` must be `noeviction`: a
/// Redis that evicts signs people out, and forgets revocations. What Redis loses in a crash is lost: with `appendonly yes`
/// and `appendfsync everysec` that is the last second, of which instances that are still running write the revocations
/// again. Where there is a replica, and the user may ask `INFO`, a revocation also waits up to 100 ms until it has it; if none
/// confirms, it counts as done nevertheless.
///
/// Whoever signs a user out everywhere and dies in the middle leaves sessions that renew nothing any more, and that a
/// `load` still finds until their time is over or the user is signed out again: a user and a session lie in two partitions.
///
/// Round trips: a read one; a write one; a renewal two (what is there, what takes its place), and the user's epoch beside
/// the second; a login three to five.
#[derive(Clone)]
pub struct RedisStore(Arc<Shared>);

struct Shared {
    keys: Keys,
    scripts: Scripts,
    link: Servers,
    /// For what must be kept: it waits for replicas, which holds up whatever else goes over the same connection.
    sure: Servers,
    /// Whether there is a replica to be waited for, and it answered when it was last waited for.
    replicas_answer: AtomicBool,
    /// A test's clock, in place of the server's.
    clock: Option<Arc<dyn Clock>>,
    news: Arc<feed::News>,
    /// A name that no other handle has, and how often it wrote: together the name of one write.
    writer: String,
    writes: AtomicU64,
    index: Mutex<Option<[u8; 16]>>,
    index_written: AtomicBool,
}

impl RedisStore {
    /// Connects, and looks at what must be right before anything is served.
    ///
    /// `redis://[USER:PASSWORD@]HOST:PORT[/DATABASE]`,
    /// `redis+sentinel://[USER:PASSWORD@]HOST:PORT,HOST:PORT/SERVICE[/DATABASE]` or
    /// `redis+cluster://[USER:PASSWORD@]HOST:PORT,HOST:PORT`. `rediss://`, `rediss+sentinel://` and `rediss+cluster://` use TLS,
    /// to the sentinels as well, against the certificates that the system trusts; `valkey` and `valkeys` mean the same. User
    /// and password are the data servers'; sentinels that want a password of their own are not supported.
    ///
    /// ```no_run
    /// # async fn open() -> Result<(), Box<dyn std::error::Error>> {
    /// use portcullis::{KeyRing, RedisStore, SessionLayer};
    ///
    /// let store = RedisStore::open("redis+sentinel://10.0.0.1:26379,10.0.0.2:26379/main").await?;
    /// let sessions = SessionLayer::builder("https://app.example.com", KeyRing::from_env("SESSION_KEYS")?, store).build()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the URL is none, nobody answers there, the password or the user's rights are wrong, the server is too old, or
    /// its sessions were written by a later version.
    pub async fn open(url: &str) -> Result<Self, super::open_error::StoreOpenError> {
        RedisOptions::new(url).open().await
    }
}

impl Shared {
    fn call<'a, const N: usize>(&self, script: &'a Lua, partition: u8, keys: [String; N]) -> Call<'a> {
        Call::new(script, partition, keys, self.clock.as_deref())
    }

    /// Where a partition's news are told, as the scripts want it.
    fn place(&self, partition: u8) -> String {
        format!("{} {partition}", self.keys.channel())
    }

    /// Runs a script that may publish something; then waits until a replica has it, where there is one.
    async fn publishing<T: FromRedisValue>(
        &self,
        partition: u8,
        publishes: bool,
        call: &Call<'_>,
    ) -> Result<T, StoreError> {
        if !publishes {
            return call.run(&self.link).await.map_err(StoreError::new);
        }
        let done = call.run(&self.sure).await.map_err(StoreError::new)?;
        if self.replicas_answer.load(Ordering::Relaxed) {
            let mut wait = redis::cmd("WAIT");
            wait.arg(1).arg(REPLICA_WAIT);
            // The write is done, whatever the replicas do; a lost one is written again by the instances that saw it.
            let answered =
                self.sure.send(partition, &wait).await.and_then(|count| Ok(u64::from_redis_value(count)?));
            // Where there is none, or it hangs, only one revocation waits in vain until the window is read again.
            self.replicas_answer.store(matches!(answered, Ok(1..)), Ordering::Relaxed);
        }
        Ok(done)
    }

    /// Looks whether the server has a replica.
    async fn look_for_replicas(&self) {
        let mut info = redis::cmd("INFO");
        info.arg("replication");
        if let Ok(text) = self.link.send(0, &info).await {
            let text = String::from_redis_value(text).unwrap_or_default();
            let count = text.lines().find_map(|line| line.strip_prefix("connected_slaves:"));
            self.replicas_answer.store(count.is_some_and(|count| count.trim() != "0"), Ordering::Relaxed);
        }
    }

    async fn publish_one(&self, partition: u8, revocation: &Revocation) -> Result<(), StoreError> {
        let key = self.keys.feed(partition);
        let call = self.call(&self.scripts.publish, partition, [key]).arg(self.place(partition));
        let _: u8 = self.publishing(partition, true, &feed::entry(call, revocation)).await?;
        Ok(())
    }

    /// Writes the check value of the index secret with the first session, and finds out who else wrote one.
    async fn write_index(&self) -> Result<(), StoreError> {
        let claimed = *self.index.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(check) = claimed
            && !self.index_written.load(Ordering::Acquire)
        {
            if self.claim(&check).await.map_err(StoreError::new)?.1.is_some_and(|index| index != check) {
                return Err(IndexMismatch::new().into());
            }
            self.index_written.store(true, Ordering::Release);
        }
        Ok(())
    }
}

#[async_trait]
impl Store for RedisStore {
    async fn create(&self, new: NewSession<'_>) -> Result<Row, CreateError> {
        self.0.create(&new).await
    }

    async fn load(&self, id: &StoredId) -> Result<Option<(Row, Vec<(FieldTag, Vec<u8>)>)>, StoreError> {
        Ok(self.0.read(id, true).await?.map(|read| (read.row, read.fields)))
    }

    async fn commit(&self, request: CommitRequest<'_>) -> Result<Option<Row>, StoreError> {
        if request.edit || request.deadline.is_some() {
            return optimistic::commit(&*self.0, &request).await;
        }
        let put = self.0.put(&request.id, &request.fields).await?;
        Ok(optimistic::taken(&request, put))
    }

    async fn rotate(&self, request: RotateRequest<'_>) -> Result<RotateAnswer, StoreError> {
        optimistic::rotate(&*self.0, &request).await
    }

    async fn revoke(&self, id: &StoredId) -> Result<bool, StoreError> {
        self.0.end(id).await
    }

    async fn revoke_subject(&self, subject: &SubjectKey) -> Result<u64, StoreError> {
        self.0.end_all(subject, None).await
    }

    async fn revoke_before(&self, moment: Timestamp) -> Result<(), StoreError> {
        self.0.end_before(moment).await
    }

    async fn list_subject(&self, subject: &SubjectKey) -> Result<Vec<(StoredId, Row)>, StoreError> {
        self.0.list(subject).await
    }

    /// Redis removes sessions by itself; only the feed is tidied here, and none is counted.
    async fn purge(&self, window: Duration) -> Result<u64, StoreError> {
        let shared = &self.0;
        for partition in 0..PARTITIONS {
            loop {
                let keys = [shared.keys.meta(partition), shared.keys.feed(partition)];
                let call = shared.call(&shared.scripts.purge, partition, keys);
                let window = u64::try_from(window.as_millis()).unwrap_or(u64::MAX);
                let more: u8 = call.arg(window).run(&shared.link).await.map_err(StoreError::new)?;
                if more == 0 {
                    break;
                }
            }
        }
        Ok(0)
    }

    async fn subscribe(&self, from: FeedPosition) -> Result<FeedBatch, StoreError> {
        match from {
            FeedPosition::Window(window) => self.0.window(window).await,
            FeedPosition::After(mark) => self.0.after(&mark).await,
        }
    }

    async fn restore(&self, lost: &[Revocation]) -> Result<(), StoreError> {
        for revocation in lost {
            match revocation {
                Revocation::Session(id) => {
                    self.0.end(id).await?;
                }
                Revocation::Subject(subject, epoch) => {
                    self.0.end_all(subject, Some(*epoch)).await?;
                }
                Revocation::Before(moment) => self.0.end_before(*moment).await?,
                Revocation::Claims(id, _) | Revocation::Superseded(id) => {
                    self.0.publish_one(partition(id.as_bytes()), revocation).await?;
                }
            }
        }
        Ok(())
    }

    async fn ping(&self) -> Result<Timestamp, StoreError> {
        self.0.now().await.map_err(StoreError::new)
    }

    fn claim_index(&self, check: [u8; 16]) -> Result<(), IndexMismatch> {
        let mut index = self.0.index.lock().unwrap_or_else(PoisonError::into_inner);
        if *index.get_or_insert(check) == check { Ok(()) } else { Err(IndexMismatch::new()) }
    }
}

impl Shared {
    /// The instant of the clock that counts.
    async fn now(&self) -> redis::RedisResult<Timestamp> {
        let call = self.call(&self.scripts.read, 0, [self.keys.meta(0), self.keys.meta(0)]).arg(0);
        let (Millis(now), _, _): (Millis, redis::Value, redis::Value) = call.run(&self.link).await?;
        Ok(now)
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RedisStore")
    }
}

/// Milliseconds that a revocation waits for a replica.
const REPLICA_WAIT: u64 = 100;
