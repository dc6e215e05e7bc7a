//! What happens while the store is silent, as far as that can be chosen.

use std::{fmt, path::PathBuf, time::Duration};

/// What happens while the store is silent.
///
/// Always: a request without cookies costs no store call and is answered; one with a fresh session cookie is let in; one
/// that needs the store gets a 503 with `Retry-After`, keeps its cookies and is not signed out. What is revoked meanwhile
/// holds on this instance at once, and is written when the store is back.
///
/// ```
/// # use std::time::Duration;
/// # fn with(builder: portcullis::SessionLayerBuilder) -> portcullis::SessionLayerBuilder {
/// use portcullis::Outage;
///
/// builder.outage(Outage::default().grace(Duration::from_secs(5 * 60)).journal("/var/lib/shop/revocations"))
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    pub(crate) verb_timeout: Duration,
    pub(crate) grace: Duration,
    pub(crate) unsafe_methods: bool,
    pub(crate) feed_patience: Duration,
    pub(crate) feed_loss: FeedLoss,
    pub(crate) journal: Option<PathBuf>,
}

/// What becomes of fresh session cookies when this instance has not heard the revocation feed for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum FeedLoss {
    /// They are let in until they are stale: what was revoked meanwhile on another instance works here for `fresh` at most.
    #[default]
    Accept,
    /// From then on each asks the store. Until the patience has passed, what was revoked on another instance still works here;
    /// while the store is silent nobody is let in.
    CheckStore,
}

impl Default for Outage {
    fn default() -> Self {
        Self {
            verb_timeout: Duration::from_millis(250),
            grace: Duration::ZERO,
            unsafe_methods: false,
            feed_patience: Duration::from_secs(10),
            feed_loss: FeedLoss::Accept,
            journal: None,
        }
    }
}

impl Outage {
    /// How long a verb of the store, one call, may take: 250 ms. Longer makes an outage pile up requests; shorter takes a slow
    /// moment for an outage. With Redis and a replica stay above 150 ms: a revocation waits up to 100 ms for the replica.
    ///
    /// After three failures in a row one caller at a time may try, and the others get their 503 at once, until one succeeds.
    #[must_use]
    pub const fn verb_timeout(mut self, limit: Duration) -> Self {
        self.verb_timeout = limit;
        self
    }

    /// Lets in, while the store is silent, a session cookie that is stale for no longer than this (default: none at all).
    ///
    /// It must open, come with its renewal token, from its client, and not be past the session's end. It gets no new cookie,
    /// counts as no recent authentication, and reaches safe methods only. Each is an event, `admitted_without_store`.
    #[must_use]
    pub const fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Extends the [grace](Self::grace) to methods that change something.
    #[must_use]
    pub const fn grace_for_unsafe_methods(mut self) -> Self {
        self.unsafe_methods = true;
        self
    }

    /// How long the revocation feed may be unreadable (10 s, so that an ordinary failover is over before) before an event says
    /// so, and `then` holds. A feed that can be read and has no entries is not lost.
    #[must_use]
    pub const fn feed_loss(mut self, patience: Duration, then: FeedLoss) -> Self {
        self.feed_patience = patience;
        self.feed_loss = then;
        self
    }

    /// Keeps revocations that the store has not taken in this file as well, so that a restart does not forget them. It holds
    /// hashes only, and its owner alone may read it. Each instance wants a file of its own, in a folder that exists. If it cannot
    /// be written later, an error is logged and the revocation stays in memory, where all are kept without it.
    #[must_use]
    pub fn journal(mut self, path: impl Into<PathBuf>) -> Self {
        self.journal = Some(path.into());
        self
    }

    /// What is wrong, each with its remedy.
    pub(crate) fn check(&self) -> Vec<OutageError> {
        let mut errors = Vec::new();
        if !(SHORTEST_LIMIT..=LONGEST_LIMIT).contains(&self.verb_timeout) {
            errors.push(OutageError::VerbTimeout);
        }
        if self.grace > LONGEST_GRACE {
            errors.push(OutageError::Grace);
        }
        if self.unsafe_methods && self.grace.is_zero() {
            errors.push(OutageError::UnsafeMethods);
        }
        errors
    }
}

/// A setting of [`Outage`] that cannot be as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutageError {
    VerbTimeout,
    Grace,
    UnsafeMethods,
}

impl OutageError {
    pub(crate) const fn remedy(self) -> &'static str {
        match self {
            Self::VerbTimeout => "set it to between 10 ms and 30 s; the default is 250 ms",
            Self::Grace => "set it to an hour at most, or leave it out",
            Self::UnsafeMethods => "set a grace, or leave grace_for_unsafe_methods() out",
        }
    }
}

impl fmt::Display for OutageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::VerbTimeout => "the time limit of a verb serves nobody",
            Self::Grace => {
                "a grace of more than an hour would let copied cookies outlive their revocation by that"
            }
            Self::UnsafeMethods => "there is no grace that could be extended to unsafe methods",
        })
    }
}

const SHORTEST_LIMIT: Duration = Duration::from_millis(10);
const LONGEST_LIMIT: Duration = Duration::from_secs(30);
const LONGEST_GRACE: Duration = Duration::from_secs(3600);
