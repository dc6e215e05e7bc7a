//! Where sessions are kept: the promises of a store, the stores that keep them, and what stands between a store and a
//! handler's `Session`.
//!
//! ```text
//! contract      the Store trait: its verbs and what each promises
//! presented     what renews a session: a token, a device's proof, a device, an authentication
//! feed          the revocation feed's entries and places in it
//! row           what a store keeps of a session
//! steps         the verbs' rules over rows, for stores that run Rust inside their atomic step
//! memory        in this process; sqlite: in a file, shared by the processes of one machine
//! optimistic    rotation and commit for servers that hold no lock for us: redis, postgres
//! row_bytes     a row as bytes, for those
//! revocation    an entry of the revocation feed
//! revocations   what must not be admitted although its cookie is fresh, and the feed that fills it
//! vault         sealing at rest
//! guard         a time limit and a breaker in front of any store; outage: what is chosen for when it is silent
//! backlog       revocations that the store has not taken yet; heard: those that it must not lose
//! registry      what is done to the sessions of one origin: create, renew, end, list
//! uniform       hashing of keys that are hashes already
//! watcher       the task that reads the feed and purges
//! session_data  the bridge to tower-sessions' `Session`
//! ```
//!
//! A store sees hashed ids and sealed bytes only. Neither a dump of the database nor a dump with the key ring opens a
//! user's data: their keys are derived from the session id, which only the browser's credentials hold.

mod asking;
mod backlog;
mod breaker;
mod contract;
mod feed;
mod guard;
mod heard;
mod memory;
#[cfg(any(feature = "sqlite", feature = "redis", feature = "postgres"))]
mod open_error;
#[cfg(any(feature = "redis", feature = "postgres"))]
mod optimistic;
mod outage;
#[cfg(feature = "postgres")]
mod postgres;
mod presented;
#[cfg(feature = "redis")]
mod redis;
mod registry;
mod revocation;
mod revocations;
mod row;
#[cfg(any(feature = "redis", feature = "postgres"))]
mod row_bytes;
mod session_data;
#[cfg(feature = "sqlite")]
mod sqlite;
mod steps;
mod uniform;
mod vault;
mod watcher;

pub(crate) use asking::{Asking, Extras, Fields};
pub use contract::{
    CommitRequest, CreateError, IndexMismatch, NewSession, Presented, Replacement, RotateAnswer,
    RotateRequest, Seen, Store, StoreError,
};
pub use feed::{FeedBatch, FeedMark, FeedPosition};
pub use memory::MemoryStore;
#[cfg(any(feature = "sqlite", feature = "redis", feature = "postgres"))]
pub use open_error::StoreOpenError;
pub use outage::{FeedLoss, Outage};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresOptions, PostgresStore};
#[cfg(feature = "redis")]
pub use redis::{RedisOptions, RedisStore};
pub(crate) use registry::{
    Issued, Proven, Registry, RegistryError, RegistryParts, Renewal, RenewalKind, SetCookies, strength_of,
};
pub use revocation::Revocation;
pub use row::{FieldTag, Row, RowKeeper};
pub(crate) use session_data::{CookieChange, Intent, SessionData, date};
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;
pub use steps::{
    RotateStep, RowChange, commit_row, is_as_seen, is_live, may_move, rotate_row, supersede_row,
};
pub(crate) use vault::Vault;
