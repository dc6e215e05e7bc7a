//! The revocation feed as every store gives it: entries, and a place to go on from.

use std::{fmt, time::Duration};

use super::revocation::Revocation;
use crate::clock::Timestamp;

/// Where to read the revocation feed from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a store must treat every kind")]
pub enum FeedPosition {
    /// Everything of this last span of time.
    Window(Duration),
    /// What comes after this place, which an earlier batch gave.
    After(FeedMark),
}

/// A place in one store's feed. What the bytes mean only that store knows: a number, or one for each of its parts.
#[derive(Clone, PartialEq, Eq)]
pub struct FeedMark(Box<[u8]>);

impl FeedMark {
    /// Wraps what a store will understand when it is given back.
    #[must_use]
    pub fn new(bytes: impl Into<Box<[u8]>>) -> Self {
        Self(bytes.into())
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The mark of a feed whose entries are numbered.
    pub(super) fn of_number(number: u64) -> Self {
        Self::new(number.to_be_bytes())
    }

    /// The number; 0, from where everything is read again, if it is none.
    pub(super) fn number(&self) -> u64 {
        self.0.as_ref().try_into().map_or(0, u64::from_be_bytes)
    }
}

impl fmt::Debug for FeedMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FeedMark({} bytes)", self.0.len())
    }
}

/// Entries of the revocation feed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "stores of others build it")]
pub struct FeedBatch {
    /// The entries, and when each was made. In the order they were made, as far as one store's clock can tell.
    pub entries: Vec<(Revocation, Timestamp)>,
    /// Where to go on.
    pub position: FeedPosition,
    /// Since when the feed misses nothing: the birth of this store. What a cookie from before says, the store must confirm.
    pub complete_since: Timestamp,
}
