//! The seal from inside: what it is bound to, and that nothing it is given makes it panic.

use super::*;
use crate::crypto::key_ring::KeyState;

fn ring() -> KeyRing {
    KeyRing::generate().unwrap()
}

fn with_states(ring: &KeyRing, other: &KeyRing, state: &str) -> KeyRing {
    let old = ring.to_text().replace(" active ", &format!(" {state} "));
    let old = old.lines().next().unwrap().to_owned();
    KeyRing::from_text(&format!("{old}\n{}", other.to_text().as_str())).unwrap()
}

fn seal_for(ring: &KeyRing) -> Seal {
    Seal::new(ring, Purpose::SessionCookie, "__Host-Http-session", "https://app.example.com")
}

fn opens(seal: &Seal, sealed: &[u8], extra: &[u8]) -> Result<Vec<u8>, OpenError> {
    let mut bytes = sealed.to_vec();
    seal.open(&mut bytes, extra).map(|_| bytes)
}

#[test]
fn round_trips_at_every_length() {
    let seal = seal_for(&ring());
    for n in [0, 1, 15, 16, 17, 255, 3000] {
        let plaintext = vec![7; n];
        let sealed = seal.seal(&plaintext, b"").unwrap();
        assert_eq!(sealed.len(), n + OVERHEAD);
        assert_eq!(opens(&seal, &sealed, b""), Ok(plaintext));
    }
}

/// Attacks A38 and A39: another name, origin, purpose or extra data, the key being the same.
#[test]
fn is_bound_to_purpose_name_origin_and_extra() {
    let ring = ring();
    let sealed = seal_for(&ring).seal(b"secret", b"field").unwrap();
    for (purpose, name, origin, extra) in [
        (Purpose::Record, "__Host-Http-session", "https://app.example.com", &b"field"[..]),
        (Purpose::SessionCookie, "__Host-Http-sessio", "https://app.example.com", b"field"),
        (Purpose::SessionCookie, "__Host-Http-sessionh", "ttps://app.example.com", b"field"),
        (Purpose::SessionCookie, "__Host-Http-session", "https://b.example.com", b"field"),
        (Purpose::SessionCookie, "__Host-Http-session", "https://app.example.com", b"fielt"),
        (Purpose::SessionCookie, "__Host-Http-session", "https://app.example.com", b""),
    ] {
        let other = Seal::new(&ring, purpose, name, origin);
        assert_eq!(opens(&other, &sealed, extra), Err(OpenError::Forged), "{purpose:?} {name} {origin}");
    }
    assert_eq!(opens(&seal_for(&ring), &sealed, b"field"), Ok(b"secret".to_vec()));
}

/// Attacks A40 and A42.
#[test]
fn refuses_every_truncation_and_every_flipped_bit() {
    let seal = seal_for(&ring());
    let sealed = seal.seal(b"0123456789abcdef", b"").unwrap();
    for n in 0..sealed.len() {
        assert!(opens(&seal, &sealed[..n], b"").is_err(), "{n} bytes");
        for bit in 0..8 {
            let mut bytes = sealed.clone();
            bytes[n] ^= 1 << bit;
            assert!(opens(&seal, &bytes, b"").is_err(), "bit {bit} of byte {n}");
        }
    }
    let longer = [sealed.as_slice(), b"x"].concat();
    assert!(opens(&seal, &longer, b"").is_err());
}

#[test]
fn the_states_of_a_key_decide() {
    let (old, new) = (ring(), ring());
    let sealed = seal_for(&old).seal(b"x", b"").unwrap();
    for (state, expected) in [("retired", true), ("pending", true), ("revoked", false)] {
        let both = with_states(&old, &new, state);
        assert_eq!(both.keys().count(), 2);
        assert!(both.keys().any(|(_, found)| found == KeyState::Active));
        let mut bytes = sealed.clone();
        match seal_for(&both).open(&mut bytes, b"") {
            Ok(()) => assert!(expected, "{state}"),
            Err(error) => assert!(!expected && error == OpenError::UnknownKey, "{state}"),
        }
        let fresh = seal_for(&both).seal(b"y", b"").unwrap();
        assert_eq!(fresh[1..5], new.active().id.0, "{state}: only the active key seals");
    }
}

/// Attack A47: nonces come from the operating system at each seal.
#[test]
fn never_repeats_a_nonce() {
    let seal = seal_for(&ring());
    let mut seen = std::collections::HashSet::new();
    for _ in 0..100_000 {
        let sealed = seal.seal(b"", b"").unwrap();
        assert!(seen.insert(sealed[HEADER..HEADER + NONCE].to_vec()));
    }
}
