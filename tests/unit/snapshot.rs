//! Snapshot and private part from inside: they round-trip, and no truncation or foreign version makes them panic.

use super::*;
use crate::{cookie::SealedCookie, crypto::KeyRing, dbsc::KeyKind, session::Private};

fn fixed() -> Fixed {
    Fixed {
        strength: Strength::Context,
        remembered: true,
        context_changed: true,
        polled: false,
        keyed: false,
        epoch: 3,
        claims_version: 4,
        authenticated_at: Timestamp::from_millis(5),
        minted_at: Timestamp::from_millis(6),
        fresh_until: Timestamp::from_millis(7),
        ends_at: Timestamp::from_millis(8),
        context: ContextDigest { family: Some(9), ..ContextDigest::default() },
    }
}

#[test]
fn snapshots_round_trip() {
    let cookie = SealedCookie::session(&KeyRing::generate().unwrap(), "session", "https://app.example.com");
    let parse = |bytes: &[u8]| Snapshot::parse(cookie.seal(Zeroizing::new(bytes.to_vec())).unwrap().1);
    let id = SessionId([1; 32]);
    for (subject, methods, claims) in
        [(Some("alice"), "pwd otp", r#"{"a":1}"#), (None, "", ""), (Some(""), "", "")]
    {
        let parts = SnapshotParts {
            id: &id,
            stored_id: StoredId::from_bytes([2; 32]),
            fixed: fixed(),
            subject,
            methods,
            claims,
        };
        let bytes = parts.encode();
        let snapshot = parse(&bytes).unwrap();
        assert_eq!(
            (snapshot.id(), *snapshot.stored_id(), *snapshot.fixed()),
            (SessionId([1; 32]), parts.stored_id, fixed())
        );
        assert_eq!((snapshot.subject(), snapshot.claims()), (subject, claims));
        assert_eq!(snapshot.methods().collect::<Vec<_>>().join(" "), methods);
        for n in 0..bytes.len() {
            assert!(parse(&bytes[..n]).is_none(), "{n} bytes");
        }
        let longer = [bytes.as_slice(), b"x"].concat();
        assert!(parse(&longer).is_none());
        let mut newer = bytes.clone();
        newer[0] = 2;
        assert!(parse(&newer).is_none());
        let shown = format!("{snapshot:?}");
        assert!(shown.starts_with("Snapshot { fixed: Fixed { ") && !shown.contains("alice"), "{shown}");
    }
}

/// Each flag alone, and none: no flag is read for another.
#[test]
fn flags_are_read_one_by_one() {
    let cookie = SealedCookie::session(&KeyRing::generate().unwrap(), "session", "https://app.example.com");
    let id = SessionId([1; 32]);
    for bits in 0..16_u8 {
        let [signed_in, remembered, context_changed, keyed] = [1, 2, 4, 8].map(|bit| bits & bit != 0);
        let parts = SnapshotParts {
            id: &id,
            stored_id: StoredId::from_bytes([2; 32]),
            fixed: Fixed { remembered, context_changed, keyed, strength: Strength::Remembered, ..fixed() },
            subject: signed_in.then_some("alice"),
            methods: "",
            claims: "",
        };
        let snapshot = Snapshot::parse(cookie.seal(parts.encode()).unwrap().1).unwrap();
        let read = snapshot.fixed();
        assert_eq!(
            (snapshot.has_subject(), read.remembered, read.context_changed, read.strength),
            (signed_in, remembered, context_changed, Strength::Remembered)
        );
        assert_eq!(read.bound_to(), keyed.then_some(KeyKind::Software));
        let private = Private {
            subject: signed_in.then(|| "alice".into()),
            dormant: remembered,
            context_changed,
            ..Private::default()
        };
        assert_eq!(Private::parse(&private.encode()), Some(private));
    }
}

#[test]
fn privates_round_trip() {
    let private = Private {
        subject: Some("alice".into()),
        methods: "pwd".into(),
        claims: r#"{"role":"admin"}"#.into(),
        context: fixed().context,
        context_changed: false,
        dormant: true,
        client: "Firefox on Linux".into(),
    };
    let bytes = private.encode();
    assert_eq!(Private::parse(&bytes).as_ref(), Some(&private));
    for n in 0..bytes.len() {
        assert_eq!(Private::parse(&bytes[..n]), None, "{n} bytes");
    }
    assert_eq!(Private::parse(&Private::default().encode()), Some(Private::default()));
    let shown = format!("{private:?}");
    assert!(shown.starts_with("Private") && !shown.contains("alice") && !shown.contains("admin"), "{shown}");
}
