//! The rotation table, row by row and at its edges.

use super::*;

const GRACE: Duration = Duration::from_secs(30);

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_seconds(seconds)
}

fn state(previous: u64, floor: u64, issued: u64) -> Rotation {
    Rotation { previous, floor, issued, rotated_at: at(1000) }
}

#[test]
fn every_row() {
    use RotationOutcome::{Again, Echo, EchoRefused, Reuse, RolledBack, Won, Young};
    let before = state(7, 8, 10);
    let early = Timestamp::from_millis(1_029_999);
    let late = at(1030);
    let next = late.as_millis();
    let won = |previous, floor| Rotation { previous, floor, issued: next, rotated_at: late };
    for (presented, now, same, outcome, after) in [
        (9, late, true, Won(next), won(9, 10)),
        (10, late, false, Won(next), won(10, 10)),
        (9, early, true, Young, before),
        (10, early, false, Young, before),
        (7, early, true, Echo, before),
        (7, early, false, EchoRefused, before),
        (7, late, true, Again(next), Rotation { issued: next, ..before }),
        (7, late, false, Again(next), Rotation { issued: next, ..before }),
        (8, late, true, Reuse, before),
        (8, early, true, Reuse, before),
        (6, early, true, Reuse, before),
        (0, late, true, Reuse, before),
        (11, late, true, RolledBack(next), won(11, 11)),
    ] {
        assert_eq!(
            rotate(&before, presented, now, GRACE, same),
            (outcome, after),
            "{presented} at {now:?}, {same}"
        );
    }
}

#[test]
fn a_generation_never_repeats() {
    // The clock stands still, and the token is far ahead of it.
    let (outcome, after) = rotate(&state(7, 8, u64::MAX - 2), u64::MAX - 2, at(2000), GRACE, true);
    assert_eq!(outcome, RotationOutcome::Won(u64::MAX - 1));
    assert_eq!(after.floor, u64::MAX - 2);
    // A store that lost writes goes on above what it is shown.
    let (outcome, _) = rotate(&state(7, 8, 10), 9_000_000_000, at(2000), GRACE, true);
    assert_eq!(outcome, RotationOutcome::RolledBack(9_000_000_001));
}

#[test]
fn before_the_first_win_there_is_no_previous() {
    let first = Rotation::begin(at(1000));
    assert_eq!(first.issued, 1_000_000);
    assert_eq!(rotate(&first, 0, at(2000), GRACE, true).0, RotationOutcome::Reuse);
    assert_eq!(rotate(&first, first.floor, at(2000), GRACE, true).0, RotationOutcome::Reuse);
    assert_eq!(rotate(&first, first.issued, at(1001), GRACE, true).0, RotationOutcome::Young);
    assert!(matches!(rotate(&first, first.issued, at(1030), GRACE, true).0, RotationOutcome::Won(_)));
    assert_eq!(Rotation::begin(at(0)).issued, 1);
}

/// Attack A73: of two siblings of a lost answer, the second that is presented trips the alarm.
#[test]
fn of_two_siblings_only_one_is_good() {
    let s0 = Rotation::begin(at(0));
    let (RotationOutcome::Won(first), s1) = rotate(&s0, s0.issued, at(300), GRACE, true) else { panic!() };
    let (RotationOutcome::Again(second), s2) = rotate(&s1, s0.issued, at(340), GRACE, true) else { panic!() };
    assert_eq!(s2.rotated_at, s1.rotated_at, "a displacement must not restart the clock");
    let (RotationOutcome::Won(_), s3) = rotate(&s2, first, at(700), GRACE, true) else { panic!() };
    assert_eq!(rotate(&s3, second, at(701), GRACE, true).0, RotationOutcome::Reuse);
}
