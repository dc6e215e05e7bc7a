use super::*;
use crate::id::{StoredId, SubjectKey};

const WINDOW: Duration = Duration::from_secs(600);

fn session(number: u8) -> Revocation {
    Revocation::Session(StoredId::from_bytes([number; 32]))
}

fn at(second: u64) -> Timestamp {
    Timestamp::from_seconds(1_800_000_000 + second)
}

#[test]
fn what_the_store_has_lost_is_missing() {
    let heard = Heard::default();
    let user = Revocation::Subject(SubjectKey::from_bytes([3; 16]), 7);
    for revocation in [session(1), session(2), user] {
        heard.note(revocation, at(0));
    }
    assert_eq!(heard.missing(&[(session(1), at(0)), (user, at(0)), (session(2), at(0))], WINDOW, at(5)), []);
    assert_eq!(heard.missing(&[(session(1), at(0)), (user, at(0))], WINDOW, at(5)), [session(2)]);
    let mut all = heard.missing(&[], WINDOW, at(5));
    all.retain(|revocation| *revocation != user);
    assert_eq!(all.len(), 2);
}

#[test]
fn what_is_too_young_or_too_old_to_tell_is_not() {
    let heard = Heard::default();
    heard.note(session(1), at(100));
    assert_eq!(heard.missing(&[], WINDOW, at(100)), [], "it may have been made after the reading");
    assert_eq!(heard.missing(&[], WINDOW, at(101)), [session(1)]);
    assert_eq!(heard.missing(&[], WINDOW, at(690)), [], "the store may have let it go");
    assert_eq!(heard.missing(&[], WINDOW, at(700)), []);
    assert_eq!(heard.lock().len(), 0, "and it is forgotten");
}

#[test]
fn claims_and_newer_ids_are_not_written_again() {
    let heard = Heard::default();
    heard.note(Revocation::Claims(StoredId::from_bytes([1; 32]), 4), at(0));
    heard.note(Revocation::Superseded(StoredId::from_bytes([2; 32])), at(0));
    assert_eq!(heard.missing(&[], WINDOW, at(5)), []);
}
