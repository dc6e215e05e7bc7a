use super::*;

fn session(number: u8) -> Owed {
    Owed::Session(StoredId::from_bytes([number; 32]))
}

#[test]
fn what_is_owed_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let place = || Some(folder.path().join("revocations"));
    let user = Owed::Subject(SubjectKey::from_bytes([9; 16]), Some(4));
    let backlog = Backlog::open(place()).unwrap();
    for owed in [session(1), user, session(2), session(1)] {
        backlog.add(owed).unwrap();
    }
    assert_eq!(Backlog::open(place()).unwrap().all(), [session(1), user, session(2)]);
    backlog.remove(&[session(1), user]).unwrap();
    assert_eq!(Backlog::open(place()).unwrap().all(), [session(2)]);
}

#[test]
fn a_line_cut_off_by_a_crash_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let place = || Some(folder.path().join("revocations"));
    Backlog::open(place()).unwrap().add(session(1)).unwrap();
    let mut file = open(place().unwrap(), true).unwrap();
    file.write_all(b"session AAAA\nsubj").unwrap();
    let backlog = Backlog::open(place()).unwrap();
    assert_eq!(backlog.all(), [session(1)]);
    backlog.add(session(2)).unwrap();
    assert_eq!(Backlog::open(place()).unwrap().all(), [session(1), session(2)], "and spoils no other");
    let mut file = open(place().unwrap(), true).unwrap();
    file.write_all(b"session AA").unwrap();
    backlog.add(Owed::Before(Timestamp::from_millis(7))).unwrap();
    let unknown = Owed::Subject(SubjectKey::from_bytes([9; 16]), None);
    backlog.add(unknown).unwrap();
    let all = Backlog::open(place()).unwrap().all();
    assert_eq!(all, [session(1), session(2), Owed::Before(Timestamp::from_millis(7)), unknown]);
}

#[test]
fn a_file_that_cannot_be_written_is_an_error_at_once() {
    assert!(Backlog::open(Some("/nowhere/at/all".into())).is_err());
}

#[test]
fn without_a_file_it_is_kept_in_memory() {
    let backlog = Backlog::open(None).unwrap();
    backlog.add(session(1)).unwrap();
    assert_eq!(backlog.all(), [session(1)]);
    backlog.remove(&[session(1)]).unwrap();
    assert_eq!(backlog.all(), []);
}
