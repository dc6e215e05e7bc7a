//! Who is let in, and the witnesses that checks leave behind.
//!
//! A check gives a value that the next step demands: a session can be attached only by an [`Admitted`], which only this
//! file makes. The bug this prevents is a path that forgets a check and compiles all the same.

use std::{sync::Arc, time::Duration};

use super::{
    binding::ContextSignal, context::ContextRelation, renewal_token::VerifiedRenewal, snapshot::Snapshot,
};
use crate::{clock::Timestamp, dbsc::KeyKind, id::StoredId};

/// Why a request with authentic credentials is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The session was revoked.
    Revoked,
    /// The session is over: idle or absolute timeout, or the store does not know it.
    Expired,
    /// Another client than the one the session is bound to, by a signal that the binding policy rejects.
    Context(ContextSignal),
    /// A renewal token that was used up.
    Reuse,
    /// The session has a newer id.
    Superseded,
    /// The two cookies belong to two sessions.
    Mismatch,
    /// The token before, within the grace, from another client.
    Echo,
    /// The session is bound to a key, whose proof did not come: a copied cookie, or a browser that has lost its key.
    Unproven,
    /// The session is bound to no device, though by now it should be.
    Unbound,
}

/// What the rules say to a request.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Nobody: no credentials, or none that count.
    Anonymous,
    /// The session cookie is fresh and nothing speaks against it.
    Admit(Admitted),
    /// The session cookie is fresh, and the store has newer claims.
    Confirm(Admitted),
    /// The session cookie is not fresh, and a good renewal token came with it.
    Renew(VerifiedRenewal),
    /// Authentic credentials of a session that only its key renews.
    Challenge(Challenged),
    /// Authentic credentials of this session that do not count; anonymous, with an event.
    Reject(StoredId, Reason),
    /// The store does not answer, and without it nothing can be said.
    Unavailable,
}

/// Whose key is to prove itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Challenged {
    pub(crate) session: StoredId,
    /// The session cookie that came, and does not count, if one came: who keeps the key, by its word. One of a session that
    /// the browser refreshes must be lost before it does.
    pub(crate) cookie: Option<KeyKind>,
}

/// A session cookie that opened: its seal holds. Whether it is fresh is not judged yet.
///
/// What the seal did not give is none:
///
/// ```compile_fail,E0423
/// # use portcullis::session::Opened;
/// fn opened() -> Opened {
///     Opened(Default::default())
/// }
/// ```
///
/// ```compile_fail,E0624
/// # use portcullis::session::Opened;
/// fn opened() -> Opened {
///     Opened::from_seal(Default::default())
/// }
/// ```
///
/// ```
/// # use portcullis::session::Opened;
/// fn opened(from_the_library: Opened) -> Opened {
///     from_the_library
/// }
/// ```
#[derive(Debug)]
pub struct Opened(Arc<Snapshot>);

impl Opened {
    /// `snapshot` must come out of a seal, or from this process itself.
    pub(crate) const fn from_seal(snapshot: Arc<Snapshot>) -> Self {
        Self(snapshot)
    }

    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.0
    }
}

/// Leave to attach a session to a request.
///
/// Only a judgement gives it:
///
/// ```compile_fail,E0423
/// # use portcullis::session::Admitted;
/// fn admitted() -> Admitted {
///     Admitted(Default::default())
/// }
/// ```
///
/// ```compile_fail,E0624
/// # use portcullis::session::Admitted;
/// fn admitted() -> Admitted {
///     Admitted::issued(Default::default())
/// }
/// ```
///
/// ```
/// # use portcullis::session::Admitted;
/// fn admitted(from_the_library: Admitted) -> Admitted {
///     from_the_library.clone()
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Admitted(Arc<Snapshot>);

impl Admitted {
    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.0
    }

    /// The same, shared.
    pub(crate) fn shared(&self) -> Arc<Snapshot> {
        Arc::clone(&self.0)
    }

    /// The session this process has just created or renewed in the store.
    pub(crate) const fn issued(snapshot: Arc<Snapshot>) -> Self {
        Self(snapshot)
    }
}

/// What the fresh path says to an opened cookie.
#[derive(Debug)]
pub(crate) enum Admission {
    /// Let in.
    Admitted(Admitted),
    /// Let in once the store has said what is new: the session is bound to a device, so nothing else can bring it.
    Outdated(Admitted),
    /// Not fresh: a token may renew it.
    Stale(Opened),
    /// Not this session, or not this client.
    Rejected(StoredId, Reason),
}

/// What the revocation set says of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nothing.
    Clear,
    /// Its claims are older than the store's: it must renew.
    Outdated,
    /// It ended.
    Revoked,
}

/// Judges an opened session cookie at `now`: not revoked, from a client that is tolerated, and fresh.
///
/// `fresh` is today's setting: where it was lowered, a cookie from before must not outlive what is remembered of
/// revocations.
pub(crate) fn admit(
    opened: Opened,
    now: Timestamp,
    fresh: Duration,
    relation: ContextRelation,
    standing: Standing,
) -> Admission {
    let fixed = opened.0.fixed();
    if standing == Standing::Revoked {
        return Admission::Rejected(*opened.0.stored_id(), Reason::Revoked);
    }
    if let ContextRelation::Rejected(signal) = relation {
        return Admission::Rejected(*opened.0.stored_id(), Reason::Context(signal));
    }
    let fresh_until = fixed.fresh_until.min(fixed.minted_at + fresh);
    if now >= fresh_until || now >= fixed.ends_at {
        return Admission::Stale(opened);
    }
    if standing == Standing::Outdated {
        let is_bound = fixed.bound_to().is_some();
        return if is_bound { Admission::Outdated(Admitted(opened.0)) } else { Admission::Stale(opened) };
    }
    Admission::Admitted(Admitted(opened.0))
}

/// Lets in, while the store is silent, an opened session cookie that is stale for less than `grace` by its own word and by
/// today's setting of `fresh`, and whose session is not past its end. That it is not revoked, and that its client is
/// tolerated, its caller has found before it found it stale.
pub(crate) fn admit_without_store(
    opened: Opened,
    now: Timestamp,
    fresh: Duration,
    grace: Duration,
) -> Option<Admitted> {
    let fixed = opened.0.fixed();
    let fresh_until = fixed.fresh_until.min(fixed.minted_at + fresh);
    let is_just_stale = now >= fresh_until && now < fresh_until + grace && now < fixed.ends_at;
    is_just_stale.then_some(Admitted(opened.0))
}

#[cfg(test)]
#[path = "../../tests/unit/verdict.rs"]
mod tests;
