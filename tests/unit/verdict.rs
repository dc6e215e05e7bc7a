//! Who is let in with an opened cookie: every condition alone, at its edge.

use super::*;
use crate::{
    cookie::SealedCookie,
    crypto::KeyRing,
    id::SessionId,
    session::{
        ContextDigest, Strength,
        binding::ContextSignal,
        snapshot::{Fixed, SnapshotParts},
    },
};

const MINTED: u64 = 1000;

/// A cookie minted at 1000 s, fresh until `fresh_until`, of a session that ends at `ends_at`.
fn opened(fresh_until: u64, ends_at: u64) -> Opened {
    let at = Timestamp::from_seconds;
    let fixed = Fixed {
        strength: Strength::Context,
        remembered: false,
        context_changed: false,
        polled: false,
        keyed: false,
        epoch: 0,
        claims_version: 0,
        authenticated_at: at(MINTED),
        minted_at: at(MINTED),
        fresh_until: at(fresh_until),
        ends_at: at(ends_at),
        context: ContextDigest::default(),
    };
    let id = SessionId([1; 32]);
    let stored_id = StoredId::from_bytes([2; 32]);
    let parts = SnapshotParts { id: &id, stored_id, fixed, subject: Some("alice"), methods: "", claims: "" };
    let cookie = SealedCookie::session(&KeyRing::generate().unwrap(), "session", "https://app.example.com");
    let (_, unsealed) = cookie.seal(parts.encode()).unwrap();
    Opened::from_seal(Snapshot::parse(unsealed).unwrap())
}

fn judge(opened: Opened, now: u64, relation: ContextRelation, standing: Standing) -> &'static str {
    let fresh = Duration::from_secs(300);
    match admit(opened, Timestamp::from_seconds(now), fresh, relation, standing) {
        Admission::Admitted(_) => "admitted",
        Admission::Stale(_) => "stale",
        Admission::Outdated(_) => "outdated",
        Admission::Rejected(_, Reason::Revoked) => "revoked",
        Admission::Rejected(_, Reason::Context(_)) => "context",
        Admission::Rejected(..) => "rejected",
    }
}

#[test]
fn every_condition_counts_alone() {
    use ContextRelation::{Changed, Drift, Same};
    let rejected = ContextRelation::Rejected(ContextSignal::Family);
    use Standing::{Clear, Outdated, Revoked};
    let changed = Changed(ContextSignal::Address);
    for (fresh_until, ends_at, now, relation, standing, expected) in [
        (1300, 9000, 1299, Same, Clear, "admitted"),
        (1300, 9000, 1299, Drift, Clear, "admitted"),
        (1300, 9000, 1299, changed, Clear, "admitted"),
        (1300, 9000, 1300, Same, Clear, "stale"),
        (1200, 9000, 1199, Same, Clear, "admitted"),
        (1200, 9000, 1200, Same, Clear, "stale"),
        // `fresh` was lowered since it was minted.
        (2000, 9000, 1299, Same, Clear, "admitted"),
        (2000, 9000, 1300, Same, Clear, "stale"),
        // The session ends before the cookie does.
        (1300, 1250, 1249, Same, Clear, "admitted"),
        (1300, 1250, 1250, Same, Clear, "stale"),
        (1300, 9000, 1299, Same, Outdated, "stale"),
        (1300, 9000, 1299, Same, Revoked, "revoked"),
        (1300, 9000, 1400, Same, Revoked, "revoked"),
        (1300, 9000, 1299, rejected, Clear, "context"),
        (1300, 9000, 1400, rejected, Clear, "context"),
        (1300, 9000, 1299, rejected, Revoked, "revoked"),
    ] {
        let judged = judge(opened(fresh_until, ends_at), now, relation, standing);
        assert_eq!(judged, expected, "{fresh_until} {ends_at} {now} {relation:?} {standing:?}");
    }
    assert!(!format!("{:?}", opened(1300, 9000)).contains("alice"));
}
