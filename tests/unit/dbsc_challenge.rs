use super::*;

const ORIGIN: &str = "https://app.example.com";

#[test]
fn a_challenge_is_of_one_session_one_use_and_one_time() {
    let ring = KeyRing::generate().unwrap();
    let challenges = Challenges::new(&ring, ORIGIN);
    let (one, other) = (StoredId::from_bytes([1; 32]), StoredId::from_bytes([2; 32]));
    let (now, lifetime) = (Timestamp::from_seconds(1000), Duration::from_secs(60));
    let text = challenges.mint(&one, Use::Refresh, now, 0).unwrap();
    assert!(text.len() < MAX_CHALLENGE);
    let open = |session, used_for, now| challenges.open(text.as_bytes(), session, used_for, now, lifetime);
    assert_eq!(open(&one, Use::Refresh, now), Some(now.as_millis()));
    assert_eq!(open(&one, Use::Refresh, now + Duration::from_millis(59_999)), Some(now.as_millis()));
    assert_eq!(open(&one, Use::Refresh, now + lifetime), None, "too old");
    assert_eq!(open(&one, Use::Refresh, now.before(LEEWAY)), Some(now.as_millis()));
    assert_eq!(open(&one, Use::Refresh, now.before(LEEWAY).offset_by(-1)), None, "from the future");
    assert_eq!(open(&other, Use::Refresh, now), None, "another session");
    for other_use in [Use::Registration, Use::KeyRegistration, Use::KeyRenewal] {
        assert_eq!(open(&one, other_use, now), None, "another use");
    }
    let elsewhere = Challenges::new(&ring, "https://b.example.com");
    assert_eq!(elsewhere.open(text.as_bytes(), &one, Use::Refresh, now, lifetime), None);
    for at in 0..text.len() {
        let mut changed = text.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        assert_eq!(challenges.open(&changed, &one, Use::Refresh, now, lifetime), None);
    }
    let long = "A".repeat(MAX_CHALLENGE + 1);
    assert_eq!(challenges.open(long.as_bytes(), &one, Use::Refresh, now, lifetime), None);
}

#[test]
fn the_next_challenge_is_newer_although_the_clock_stands() {
    let challenges = Challenges::new(&KeyRing::generate().unwrap(), ORIGIN);
    let (session, now) = (StoredId::from_bytes([1; 32]), Timestamp::from_seconds(1000));
    let next = challenges.mint(&session, Use::Refresh, now, now.as_millis()).unwrap();
    let lifetime = Duration::from_secs(60);
    let number = challenges.open(next.as_bytes(), &session, Use::Refresh, now, lifetime);
    assert_eq!(number, Some(now.as_millis() + 1));
}
