//! The renewal token from inside: what it accepts is exactly what was minted here.

#![allow(clippy::string_slice, reason = "tokens are ASCII")]

use super::*;

const ORIGIN: &str = "https://app.example.com";
const NOW: Timestamp = Timestamp::from_seconds(1_000_000);

fn context() -> ContextDigest {
    ContextDigest {
        user_agent: Some(1),
        family: Some(2),
        platform: Some(3),
        prefix_v4: None,
        prefix_v6: Some(u64::MAX),
        network: Some(4),
        hints: None,
        header: Some(5),
    }
}

fn mint(tokens: &RenewalTokens, generation: u64) -> String {
    let parts = TokenParts {
        id: &SessionId([4; 32]),
        generation,
        issued_at: NOW,
        expires_at: Timestamp::from_seconds(1_001_800),
        context: &context(),
        bound_to: None,
    };
    tokens.mint(&parts).unwrap()
}

fn judge(tokens: &RenewalTokens, token: &str) -> Result<u64, TokenError> {
    let authentic = tokens.authenticate(token.as_bytes(), NOW)?;
    tokens.verify(&authentic).map(|verified| verified.generation())
}

/// A token with another payload, rightly authenticated and signed: only the reading of the claims can refuse it.
fn with_payload(tokens: &RenewalTokens, change: impl FnOnce(String) -> String) -> String {
    let token = mint(tokens, 7);
    let mut parts = token.split('.');
    let (header, payload) = (parts.next().unwrap(), parts.next().unwrap());
    let payload = String::from_utf8(base64url::decode(payload.as_bytes()).unwrap()).unwrap();
    let mut payload = change(payload[..payload.len() - JTI - TAIL.len()].to_owned());
    let keys = tokens.ring.active();
    let jti = keys.token_mac.tag(&[header.as_bytes(), b".", payload.as_bytes()]);
    base64url::encode_onto(&jti, &mut payload);
    payload.push_str(TAIL);
    jws::sign(header, payload.as_bytes(), &keys.token_signature)
}

#[test]
fn round_trips_and_is_small_enough() {
    let tokens = RenewalTokens::new(&KeyRing::generate().unwrap(), ORIGIN);
    let token = mint(&tokens, u64::MAX);
    let authentic = tokens.authenticate(token.as_bytes(), NOW).unwrap();
    assert_eq!(*authentic.context(), context());
    assert_eq!(*authentic.digest(), digest::session_digest(&SessionId([4; 32])));
    let verified = tokens.verify(&authentic).unwrap();
    assert_eq!((verified.id(), verified.generation()), (&SessionId([4; 32]), u64::MAX));
    assert!(token.len() < 1000, "{} bytes", token.len());
    assert_eq!(format!("{tokens:?}"), format!("RenewalTokens {{ origin: {ORIGIN:?}, .. }}"));
    assert_eq!(
        judge(&tokens, &with_payload(&tokens, |payload| payload)),
        Ok(7),
        "the helper itself makes good tokens"
    );
}

/// Attacks A42-A44: every other byte anywhere, every truncation.
#[test]
fn refuses_every_change() {
    let tokens = RenewalTokens::new(&KeyRing::generate().unwrap(), ORIGIN);
    let token = mint(&tokens, 7);
    for i in 0..token.len() {
        assert!(judge(&tokens, &token[..i]).is_err(), "{i} bytes");
        let mut changed = token.clone().into_bytes();
        changed[i] = if changed[i] == b'x' { b'y' } else { b'x' };
        let changed = String::from_utf8(changed).unwrap();
        assert!(judge(&tokens, &changed).is_err(), "byte {i}");
    }
    for changed in [
        format!("{token}="),
        format!("{token}."),
        format!(" {token}"),
        token.replace('.', ".."),
        "a".repeat(5000),
    ] {
        assert_eq!(judge(&tokens, &changed), Err(TokenError::Forged));
    }
}

#[test]
fn another_ring_origin_or_a_revoked_key_refuses() {
    let ring = KeyRing::generate().unwrap();
    let token = mint(&RenewalTokens::new(&ring, ORIGIN), 7);
    let other_ring = RenewalTokens::new(&KeyRing::generate().unwrap(), ORIGIN);
    assert_eq!(judge(&other_ring, &token), Err(TokenError::Forged));
    let other_origin = RenewalTokens::new(&ring, "https://b.example.com");
    assert_eq!(judge(&other_origin, &token), Err(TokenError::NotForHere));
}

/// What another JOSE library may put into a payload, with MAC and signature right: none of it is read.
#[test]
fn claims_are_read_strictly() {
    let tokens = RenewalTokens::new(&KeyRing::generate().unwrap(), ORIGIN);
    for (from, to) in [
        (r#""gen":7"#, r#""gen":7,"gen":8"#),
        (r#""gen":7"#, r#""gen":7.0"#),
        (r#""gen":7"#, r#""gen":"7""#),
        (r#""gen":7"#, r#""gen":-7"#),
        (r#""gen":7"#, r#""gen":18446744073709551616"#),
        (r#""gen":7,"#, ""),
        (r#""aud":"https://app.example.com""#, r#""aud":["https://app.example.com"]"#),
        (r#""iat""#, r#""nbf":1,"iat""#),
        (r#""sid":""#, r#""sid":"A"#),
        (r#""ctx":{"#, r#""ctx":{"xx":"AAAAAAAAAAA","#),
        (r#""ua":"AAAAAAAAAAE""#, r#""ua":"AAAAAAAAAAF""#),
    ] {
        let token = with_payload(&tokens, |payload| payload.replacen(from, to, 1));
        assert_eq!(judge(&tokens, &token), Err(TokenError::Forged), "{from} to {to}");
    }
}

/// Issuer and audience each count alone.
#[test]
fn a_token_is_for_its_issuer_and_its_audience() {
    let tokens = RenewalTokens::new(&KeyRing::generate().unwrap(), ORIGIN);
    for claim in ["iss", "aud"] {
        let from = format!(r#""{claim}":"{ORIGIN}""#);
        let to = format!(r#""{claim}":"https://b.example.com""#);
        let token = with_payload(&tokens, |payload| payload.replace(&from, &to));
        assert_eq!(judge(&tokens, &token), Err(TokenError::NotForHere), "{claim}");
    }
}

/// Attack A51: a token from the future is refused, with 5 s of leeway; an expired one is not, by design.
#[test]
fn issued_at_is_checked_and_expiry_never_decides() {
    let tokens = RenewalTokens::new(&KeyRing::generate().unwrap(), ORIGIN);
    let at = |seconds: u64| {
        let to = format!(r#""iat":{seconds}"#);
        with_payload(&tokens, |payload| payload.replace(r#""iat":1000000"#, &to))
    };
    assert_eq!(judge(&tokens, &at(1_000_005)), Ok(7));
    assert_eq!(judge(&tokens, &at(1_000_006)), Err(TokenError::NotForHere));
    assert_eq!(judge(&tokens, &at(u64::MAX)), Err(TokenError::NotForHere));
    let expired = with_payload(&tokens, |payload| payload.replace(r#""exp":1001800"#, r#""exp":1"#));
    assert_eq!(judge(&tokens, &expired), Ok(7));
}

/// Attack A45: the twin of a signature says the same generation, so it is the same token.
#[test]
fn a_signatures_twin_is_the_same_token() {
    let tokens = RenewalTokens::new(&KeyRing::generate().unwrap(), ORIGIN);
    let token = mint(&tokens, 7);
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let bytes = base64url::decode(signature.as_bytes()).unwrap();
    let parsed = p256::ecdsa::Signature::from_slice(&bytes).unwrap();
    let (r, s) = parsed.split_scalars();
    let twin = p256::ecdsa::Signature::from_scalars(r, -s).unwrap();
    let twin = format!("{signed}.{}", base64url::encode(&twin.to_bytes()));
    assert_ne!(twin, token);
    assert_eq!(judge(&tokens, &twin), Ok(7));
}

#[test]
fn a_token_of_a_bound_session_says_so() {
    let tokens = RenewalTokens::new(&KeyRing::generate().unwrap(), ORIGIN);
    let parts = TokenParts {
        id: &SessionId([4; 32]),
        generation: 7,
        issued_at: NOW,
        expires_at: NOW,
        context: &context(),
        bound_to: Some("NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"),
    };
    let bound = tokens.mint(&parts).unwrap();
    let read = tokens.authenticate(bound.as_bytes(), NOW).unwrap();
    assert_eq!(read.bound_to(), Some("NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"));
    let plain = mint(&tokens, 7);
    assert_eq!(tokens.authenticate(plain.as_bytes(), NOW).unwrap().bound_to(), None);
}
