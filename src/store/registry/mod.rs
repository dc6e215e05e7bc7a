//! What is done to the sessions of one origin. Knows the store and the keys, no HTTP.
//!
//! ```text
//! begin   a new session, and the credentials of any
//! renew   what a renewal token buys
//! device  what a device's key buys
//! upkeep  load, commit, claims, end, list
//! ```

mod begin;
mod device;
mod renew;
mod upkeep;

pub(crate) use begin::{Beginning, Continued, Issued, RegistryError, SetCookies, strength_of};
pub(crate) use device::Proven;
pub(crate) use renew::{Renewal, RenewalKind};

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{
    backlog::{Backlog, Owed},
    contract::{Store, StoreError},
    guard::Guarded,
    heard::Heard,
    outage::Outage,
    revocation::Revocation,
    revocations::RevocationSet,
    vault::Vault,
};
use crate::{
    clock::{Clock, Timestamp},
    cookie::SealedCookie,
    events::{EventSink, SessionEvent, StoreVerb},
    id::{SessionRef, StoredId},
    session::{
        Admission, Admitted, ContextRelation, Opened, RenewalTokens, Snapshot, Standing, Strength, Timeouts,
        admit,
    },
};

/// The sessions of one origin.
pub(crate) struct Registry {
    pub(in crate::store) store: Arc<Guarded>,
    pub(crate) outage: Outage,
    pub(in crate::store) backlog: Backlog,
    pub(in crate::store) paying: tokio::sync::Mutex<()>,
    pub(in crate::store) heard: Heard,
    pub(crate) vault: Vault,
    pub(crate) tokens: RenewalTokens,
    pub(crate) cookie: SealedCookie,
    pub(crate) timeouts: Timeouts,
    /// After how long a session that is bound to no device renews no more.
    device_after: Option<Duration>,
    pub(crate) revocations: RevocationSet,
    sink: Arc<dyn EventSink>,
    clock: Arc<dyn Clock>,
    /// Milliseconds by which the store's clock is ahead of this instance's.
    offset: AtomicI64,
    pub(in crate::store) watched: AtomicBool,
    pub(in crate::store) feed: FeedState,
}

/// How this instance stands with the revocation feed.
#[derive(Debug, Default)]
pub(in crate::store) struct FeedState {
    /// Milliseconds: when the whole window was last read.
    pub(in crate::store) read_at: AtomicU64,
    /// Whether the last attempt failed. What was heard does not age then: nobody tells what has come since.
    pub(in crate::store) failing: AtomicBool,
    /// Whether it was said that it is lost.
    pub(in crate::store) lost: AtomicBool,
}

/// What a registry is made of.
pub(crate) struct RegistryParts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) outage: Outage,
    pub(crate) vault: Vault,
    pub(crate) tokens: RenewalTokens,
    pub(crate) cookie: SealedCookie,
    pub(crate) timeouts: Timeouts,
    pub(crate) device_after: Option<Duration>,
    pub(crate) sink: Arc<dyn EventSink>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Registry {
    /// # Errors
    /// If the journal of revocations cannot be read and written.
    pub(crate) fn new(parts: RegistryParts) -> std::io::Result<Self> {
        let RegistryParts { store, outage, vault, tokens, cookie, timeouts, device_after, sink, clock } =
            parts;
        let feed = FeedState { read_at: AtomicU64::new(clock.now().as_millis()), ..FeedState::default() };
        let registry = Self {
            store: Arc::new(Guarded::new(store, outage.verb_timeout)),
            backlog: Backlog::open(outage.journal.clone())?,
            paying: tokio::sync::Mutex::default(),
            heard: Heard::default(),
            outage,
            vault,
            tokens,
            cookie,
            timeouts,
            device_after,
            sink,
            clock,
            revocations: RevocationSet::new(),
            offset: AtomicI64::new(0),
            watched: AtomicBool::new(false),
            feed,
        };
        // What an earlier life of this instance has left unsaid holds here before the store is told.
        let until = registry.now() + registry.window();
        for owed in registry.backlog.all() {
            match owed {
                Owed::Session(id) => registry.revocations.insert(Revocation::Session(id), until),
                Owed::Subject(subject, epoch) => registry.revocations.owe_subject(&subject, epoch, until),
                Owed::Before(moment) => registry.revocations.insert(Revocation::Before(moment), until),
            }
        }
        Ok(registry)
    }

    /// The instant of the store's clock, as far as this instance knows it.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now().offset_by(self.offset.load(Ordering::Relaxed))
    }

    /// Measures how far the store's clock is ahead. Within the time the question took, the two count as the same.
    pub(in crate::store) async fn measure_offset(&self) -> Result<(), StoreError> {
        let before = self.clock.now();
        let theirs = self.store.ping().await?;
        let after = self.clock.now();
        let signed = |at: Timestamp| i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
        let offset = if theirs < before {
            signed(theirs) - signed(before)
        } else {
            (signed(theirs) - signed(after)).max(0)
        };
        if offset.unsigned_abs() > CLOCK_TOLERANCE
            && self.offset.load(Ordering::Relaxed).unsigned_abs() <= CLOCK_TOLERANCE
        {
            tracing::warn!(
                target: "portcullis",
                milliseconds = offset,
                "the store's clock is this far ahead of this machine's. Sessions go by the store's, so nobody is signed out; \
                 but logs and certificates do not. Remedy: let NTP set both clocks."
            );
        }
        self.offset.store(offset, Ordering::Relaxed);
        Ok(())
    }

    #[allow(clippy::needless_pass_by_value, reason = "an event is made to be given away")]
    pub(crate) fn event(&self, event: SessionEvent) {
        self.sink.record(&event);
    }

    /// Says that the store did not do what was asked, and in the log what it said: a locked file, a full disk.
    pub(in crate::store) fn store_failed(&self, verb: StoreVerb, error: &StoreError) {
        self.event(SessionEvent::StoreUnavailable(verb));
        let cause = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
        tracing::warn!(target: "portcullis", verb = verb.name(), cause, "the session store failed");
    }

    pub(crate) fn session_ref(&self, id: &StoredId) -> SessionRef {
        self.vault.session_ref(id)
    }

    /// How long an entry of the revocation feed can matter: to the freshest cookie, with grace, leeway, what an outage adds, and
    /// a margin.
    pub(crate) fn window(&self) -> Duration {
        self.timeouts.fresh + self.timeouts.grace + self.outage.grace + MARGIN
    }

    /// Whether a session whose cookie opened is revoked, or its claims are outdated. No store call, no shared lock.
    pub(crate) fn standing(&self, snapshot: &Snapshot) -> Standing {
        let fixed = snapshot.fixed();
        if self.revocations.is_before(fixed.authenticated_at) {
            return Standing::Revoked;
        }
        let standing = self.revocations.standing(snapshot.stored_id(), fixed.claims_version);
        if standing != Standing::Revoked
            && self.revocations.knows_subjects()
            && let Some(subject) = snapshot.subject()
            && self.revocations.is_subject_revoked(&self.vault.subject_key(subject), fixed.epoch)
        {
            return Standing::Revoked;
        }
        standing
    }

    /// Judges an opened session cookie of a client that stands in `relation` to the session's. No store call.
    pub(crate) fn admission(&self, opened: Opened, now: Timestamp, relation: ContextRelation) -> Admission {
        let snapshot = opened.snapshot();
        let standing = self.standing(snapshot);
        let fresh = self.timeouts.fresh_of(snapshot.fixed().strength == Strength::Device);
        admit(opened, now, fresh, relation, standing)
    }

    /// Whether the revocation set can tell whether a session has ended.
    pub(crate) fn covers(&self, admitted: &Admitted) -> bool {
        self.revocations.covers(admitted.snapshot().fixed().minted_at)
    }

    /// Takes a revocation into this instance's own set at once; the others hear of it through the feed.
    fn revoked_here(&self, revocation: Revocation) {
        self.revocations.insert(revocation, self.now() + self.window());
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("store", &self.store).finish_non_exhaustive()
    }
}

/// Clocks and deliveries are not exact; an entry outlives its cookies by this much.
const MARGIN: Duration = Duration::from_secs(65);

/// Milliseconds by which two clocks may differ before that is worth a warning.
const CLOCK_TOLERANCE: u64 = 5_000;
