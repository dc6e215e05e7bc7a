//! The names under which things lie. Braces hold what Redis Cluster hashes: all keys of one partition share a slot.
//!
//! ```text
//! PREFIX{NN}:s:ID        a session, a hash:  row, u(ntil), s(uperseded), p(redecessor), r(ow's and) v(alue's count), w(riter), fTAG…
//! PREFIX{NN}:e:SUBJECT   the epoch of a user        PREFIX{NN}:i:SUBJECT   the sessions of a user, scored by their end
//! PREFIX{NN}:feed        the revocations of this partition, a stream
//! PREFIX{NN}:meta        born, window, index, version
//! PREFIXfeed             the channel that says where something new is
//! ```

use crate::{
    base64url,
    id::{StoredId, SubjectKey},
};

/// So many partitions a store has. A cluster spreads them over its nodes.
pub(super) const PARTITIONS: u8 = 64;

/// Makes keys.
#[derive(Debug)]
pub(super) struct Keys {
    prefix: String,
}

impl Keys {
    pub(super) const fn new(prefix: String) -> Self {
        Self { prefix }
    }

    pub(super) fn session(&self, id: &StoredId) -> String {
        self.of(partition(id.as_bytes()), "s:", &base64url::encode(id.as_bytes()))
    }

    pub(super) fn epoch(&self, subject: &SubjectKey) -> String {
        self.of(partition(subject.as_bytes()), "e:", &base64url::encode(subject.as_bytes()))
    }

    pub(super) fn index(&self, subject: &SubjectKey) -> String {
        self.of(partition(subject.as_bytes()), "i:", &base64url::encode(subject.as_bytes()))
    }

    pub(super) fn feed(&self, partition: u8) -> String {
        self.of(partition, "feed", "")
    }

    pub(super) fn meta(&self, partition: u8) -> String {
        self.of(partition, "meta", "")
    }

    pub(super) fn channel(&self) -> String {
        format!("{}feed", self.prefix)
    }

    fn of(&self, partition: u8, kind: &str, name: &str) -> String {
        format!("{}{}:{kind}{name}", self.prefix, tag(partition))
    }
}

/// The partition of a session or a user, whose names are hashes.
pub(super) fn partition(name: &[u8]) -> u8 {
    name.first().map_or(0, |first| first % PARTITIONS)
}

/// What a cluster hashes of a key.
pub(super) fn tag(partition: u8) -> String {
    format!("{{{partition:02}}}")
}
