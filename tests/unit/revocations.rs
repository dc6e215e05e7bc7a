//! The revocation set from inside.

use super::*;

fn id(n: u8) -> StoredId {
    StoredId::from_bytes([n; 32])
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_seconds(seconds)
}

#[test]
fn entries_count_until_their_time_and_not_longer() {
    let set = RevocationSet::new();
    assert_eq!(set.standing(&id(1), 0), Standing::Clear);
    set.insert(Revocation::Session(id(1)), at(100));
    set.insert(Revocation::Session(id(1)), at(90));
    set.insert(Revocation::Claims(id(2), 5), at(100));
    assert_eq!(set.standing(&id(1), u64::MAX), Standing::Revoked);
    assert_eq!(set.standing(&id(2), 4), Standing::Outdated);
    assert_eq!(set.standing(&id(2), 5), Standing::Clear);
    set.insert(Revocation::Session(id(2)), at(200));
    set.insert(Revocation::Claims(id(2), 9), at(100));
    assert_eq!(set.standing(&id(2), 9), Standing::Revoked, "claims never lift a revocation");
    set.prune(at(99));
    assert_eq!(set.standing(&id(1), 0), Standing::Revoked);
    set.prune(at(100));
    assert_eq!(set.standing(&id(1), 0), Standing::Clear);
    assert_eq!(set.standing(&id(2), 0), Standing::Revoked);
    set.prune(at(200));
    assert!(set.counts.iter().all(|count| count.load(Ordering::Relaxed) == 0), "nothing is counted twice");
}

/// Two ids that share a slot do not share a fate.
#[test]
fn a_shared_slot_is_not_a_shared_fate() {
    let set = RevocationSet::new();
    let mut bytes = [1; 32];
    bytes[31] = 2;
    set.insert(Revocation::Session(id(1)), at(100));
    assert_eq!(set.standing(&StoredId::from_bytes(bytes), 0), Standing::Clear);
}

#[test]
fn subjects_are_judged_by_epoch() {
    let set = RevocationSet::new();
    let alice = SubjectKey::from_bytes([1; 16]);
    assert!(!set.knows_subjects());
    set.insert(Revocation::Subject(alice, 2), at(100));
    set.insert(Revocation::Subject(alice, 1), at(100));
    assert!(set.knows_subjects());
    assert!(set.is_subject_revoked(&alice, 1));
    assert!(!set.is_subject_revoked(&alice, 2));
    assert!(!set.is_subject_revoked(&SubjectKey::from_bytes([2; 16]), 0));
    set.prune(at(100));
    assert!(!set.knows_subjects());
}

#[test]
fn those_who_wait_are_told() {
    let set = RevocationSet::new();
    let alice = SubjectKey::from_bytes([1; 16]);
    let (one, two, three) = (
        set.watch(&id(1), Timestamp::MAX, None),
        set.watch(&id(2), Timestamp::MAX, Some((alice, 1))),
        set.watch(&id(3), Timestamp::MAX, Some((alice, 2))),
    );
    set.insert(Revocation::Claims(id(1), 1), at(100));
    assert!(!*one.borrow());
    set.insert(Revocation::Session(id(1)), at(100));
    set.insert(Revocation::Subject(alice, 2), at(100));
    assert!(*one.borrow() && *two.borrow() && !*three.borrow());
    assert!(*set.watch(&id(1), Timestamp::MAX, None).borrow(), "who comes too late is told at once");
    assert!(*set.watch(&id(9), Timestamp::MAX, Some((alice, 1))).borrow());
    drop(two);
    set.prune(at(1));
    assert_eq!(set.shards.iter().map(|shard| lock(shard).watchers.len()).sum::<usize>(), 2);
}

/// Ids that a session had before end with it at once, without a word from the feed (found by the model).
#[test]
fn older_ids_end_with_the_newest() {
    let set = RevocationSet::new();
    set.link(&id(2), id(1), at(100));
    set.link(&id(3), id(2), at(100));
    set.insert(Revocation::Session(id(3)), at(90));
    for n in 1..=3 {
        assert_eq!(set.standing(&id(n), u64::MAX), Standing::Revoked, "{n}");
    }
    set.prune(at(100));
    set.insert(Revocation::Session(id(3)), at(200));
    assert_eq!(set.standing(&id(2), 0), Standing::Clear, "its cookies are not fresh any more");
    set.link(&id(5), id(4), at(300));
    set.insert(Revocation::Session(id(4)), at(300));
    assert_eq!(set.standing(&id(5), 0), Standing::Clear, "the newer id goes on");
}

/// New claims reach the ids before at once as well, and a link that comes after the end brings it along.
#[test]
fn older_ids_are_outdated_with_the_newest_and_a_late_link_is_no_gap() {
    let set = RevocationSet::new();
    set.link(&id(2), id(1), at(100));
    set.link(&id(3), id(2), at(100));
    set.insert(Revocation::Claims(id(3), 5), at(90));
    assert_eq!(set.standing(&id(3), 5), Standing::Clear);
    assert_eq!(set.standing(&id(2), 5), Standing::Outdated);
    assert_eq!(set.standing(&id(1), u64::MAX - 1), Standing::Outdated);
    set.insert(Revocation::Session(id(9)), at(90));
    set.link(&id(9), id(8), at(100));
    assert_eq!(set.standing(&id(8), u64::MAX), Standing::Revoked);
}

#[test]
fn everybody_from_before_a_moment_is_out_and_told() {
    let set = RevocationSet::new();
    let at = Timestamp::from_seconds;
    let (before, after) = (set.watch(&id(1), at(9), None), set.watch(&id(2), at(10), None));
    set.insert(Revocation::Before(at(10)), at(100));
    set.insert(Revocation::Before(at(5)), at(100));
    assert!(set.is_before(at(9)) && !set.is_before(at(10)));
    assert!(*before.borrow() && !*after.borrow());
    set.prune(at(1000));
    assert!(set.is_before(at(9)), "it is never forgotten");
    assert!(*set.watch(&id(3), at(9), None).borrow(), "who comes too late is told at once");
}
