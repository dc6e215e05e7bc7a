//! The one place that reads the time.
//!
//! Everything that judges takes a [`Timestamp`] as an argument; the layer reads its [`Clock`] once per request.

use std::{
    fmt,
    ops::Add,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// An instant: milliseconds since 1970-01-01T00:00:00Z.
///
/// Arithmetic saturates: an instant never wraps round, whatever a token or a record claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The largest instant: later than all others.
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `millis` milliseconds after the epoch.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// The instant `seconds` seconds after the epoch.
    #[must_use]
    pub const fn from_seconds(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Whole seconds since the epoch, rounded down.
    #[must_use]
    pub const fn as_seconds(self) -> u64 {
        self.0 / 1000
    }

    /// How long before `self` the instant `earlier` was; zero if it was not before.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// The instant `span` before this one.
    #[must_use]
    pub fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)))
    }

    /// This instant moved by `millis` milliseconds, which may be negative (a clock's offset).
    #[must_use]
    pub const fn offset_by(self, millis: i64) -> Self {
        Self(self.0.saturating_add_signed(millis))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)))
    }
}

/// A source of the current instant.
///
/// The default is [`SystemClock`]; tests use [`ManualClock`].
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The instant it is now. Called once per request by the layer, and by stores inside their atomic steps.
    fn now(&self) -> Timestamp;
}

/// The clock of the operating system.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "this is the one place that reads the time")]
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::default() + since_epoch
    }
}

/// A clock that stands still until it is moved, for tests.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// A clock that stands at `start`.
    #[must_use]
    pub const fn at(start: Timestamp) -> Self {
        Self(AtomicU64::new(start.0))
    }

    /// Moves the clock forward by `span`.
    pub fn advance(&self, span: Duration) {
        let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}
