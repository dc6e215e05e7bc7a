//! What is promised of `commit`.

use std::sync::Arc;

use portcullis::{
    clock::Timestamp,
    store::{CommitRequest, Replacement, Revocation, Row},
};
use tokio::task::JoinSet;

use crate::{
    keeper::{STRANGER, edit_mark, signed},
    stage::{ABSOLUTE, Fields, GRACE, IDLE, MILLI, Stage, commit, id, tag},
};

pub(crate) async fn a_commit_writes_overwrites_and_removes_fields(stage: Stage) {
    let created = stage.create_with(id(1), tag(1), b"one").await;
    let bystander = stage.create_with(id(2), tag(1), b"bystander").await;
    let some = |value: &[u8]| Some(value.to_vec());
    for (changes, fields) in [
        (
            vec![(tag(2), some(b"two")), (tag(3), some(b""))],
            vec![(tag(1), "one"), (tag(2), "two"), (tag(3), "")],
        ),
        (vec![(tag(1), some(b"ONE")), (tag(2), None)], vec![(tag(1), "ONE"), (tag(3), "")]),
        (vec![(tag(9), None)], vec![(tag(1), "ONE"), (tag(3), "")]),
        (vec![], vec![(tag(1), "ONE"), (tag(3), "")]),
    ] {
        let row = stage.store.commit(CommitRequest { fields: changes, ..commit(id(1)) }).await.unwrap();
        assert_eq!(row.as_ref(), Some(&created));
        let fields = fields.into_iter().map(|(tag, value)| (tag, value.into())).collect();
        assert_eq!(stage.load(id(1)).await, Some((created.clone(), fields)));
    }
    assert_eq!(stage.load(id(2)).await, Some((bystander, [(tag(1), b"bystander".to_vec())].into())));
    assert_eq!(stage.feed().await, []);
}

pub(crate) async fn a_commit_creates_nothing(stage: Stage) {
    assert_takes_no_commit(&stage, 1).await;
    stage.assert_wiped(id(1)).await;
}

pub(crate) async fn a_session_that_is_over_takes_no_commit(stage: Stage) {
    let (expired, revoked, ended, moved) = (1, 2, 3, 4);
    stage.create(id(expired), stage.row()).await;
    stage.clock.advance(IDLE);
    for number in [revoked, ended, moved] {
        stage.create(id(number), stage.row()).await;
    }
    stage.store.revoke(&id(revoked)).await.unwrap();
    stage.replace(id(10), Replacement::End(id(ended))).await.unwrap();
    stage.replace(id(11), Replacement::Move(id(moved))).await.unwrap();
    for number in [expired, revoked, ended, moved] {
        assert_takes_no_commit(&stage, number).await;
    }
    for number in [revoked, ended, moved] {
        stage.assert_wiped(id(number)).await;
    }
}

async fn assert_takes_no_commit(stage: &Stage, number: u32) {
    let before = stage.feed().await;
    let fields = vec![(tag(1), Some(b"back".to_vec()))];
    let deadline = Some(stage.now() + ABSOLUTE);
    let request = CommitRequest { fields, deadline, edit: true, ..commit(id(number)) };
    assert_eq!(stage.store.commit(request).await.unwrap(), None, "session {number}");
    assert!(stage.is_gone(id(number)).await, "session {number}");
    assert_eq!(stage.feed().await, before, "session {number}");
}

pub(crate) async fn commits_of_different_fields_both_win(stage: Stage) {
    stage.create(id(1), stage.row()).await;
    let mut tasks = JoinSet::new();
    for number in 0..60 {
        let store = Arc::clone(if number % 2 == 0 { &stage.store } else { &stage.other });
        tasks.spawn(async move {
            let fields = vec![(tag(number), Some(vec![number]))];
            // Every third also edits the row: the fields must not be carried by it.
            let request = CommitRequest { fields, edit: number % 3 == 0, ..commit(id(1)) };
            store.commit(request).await.unwrap().unwrap();
        });
    }
    tasks.join_all().await;
    let (row, fields) = stage.load(id(1)).await.unwrap();
    assert_eq!(fields, (0..60).map(|number| (tag(number), vec![number])).collect());
    assert_eq!(row.claims_version, 20);
    let told: Vec<_> = (1..=20).map(|version| Revocation::Claims(id(1), version)).collect();
    assert_eq!(stage.feed().await, told);
}

pub(crate) async fn of_two_commits_of_one_field_the_later_wins(stage: Stage) {
    stage.create(id(1), stage.row()).await;
    for round in 0..20_u8 {
        let store = if round % 2 == 0 { &stage.store } else { &stage.other };
        let fields = vec![(tag(1), Some(vec![round]))];
        store.commit(CommitRequest { fields, ..commit(id(1)) }).await.unwrap().unwrap();
        assert_eq!(stage.fields(id(1)).await, [(tag(1), vec![round])].into());
    }
}

/// "Delete, then save in flight: stays deleted", the fault behind most resurrected sessions.
pub(crate) async fn a_revocation_wins_over_a_commit_in_flight(stage: Stage) {
    for number in 0..60 {
        let id = id(number);
        stage.create_with(id, tag(1), b"cart").await;
        let fields = vec![(tag(1), Some(b"late".to_vec())), (tag(2), Some(b"later".to_vec()))];
        let save = stage.store.commit(CommitRequest { fields, edit: true, ..commit(id) });
        let delete = stage.other.revoke(&id);
        // Whichever is polled first has begun when the other begins.
        let (saved, deleted) = if number % 2 == 0 {
            tokio::join!(save, delete)
        } else {
            let (deleted, saved) = tokio::join!(delete, save);
            (saved, deleted)
        };
        saved.unwrap();
        assert!(deleted.unwrap());
        stage.assert_wiped(id).await;
    }
}

pub(crate) async fn a_commit_shortens_the_deadline_and_the_end_with_it(stage: Stage) {
    let created = stage.create(id(1), stage.row()).await;
    let sooner = stage.now() + GRACE;
    let request = CommitRequest { deadline: Some(sooner), ..commit(id(1)) };
    let row = stage.store.commit(request).await.unwrap().unwrap();
    assert_eq!(row, signed(&id(1), Row { deadline: sooner, ends_at: sooner, ..created }));
    assert_eq!(stage.loaded(id(1)).await, row);
    stage.clock.advance(GRACE - MILLI);
    stage.loaded(id(1)).await;
    stage.clock.advance(MILLI);
    assert!(stage.is_gone(id(1)).await);
}

pub(crate) async fn a_deadline_beyond_the_end_changes_nothing(stage: Stage) {
    let created = stage.create(id(1), stage.row()).await;
    assert_deadline_ignored(&stage, &created, created.ends_at).await;
    assert_deadline_ignored(&stage, &created, created.ends_at + MILLI).await;
}

pub(crate) async fn a_deadline_between_the_present_one_and_the_end_changes_nothing(stage: Stage) {
    let created = stage.create(id(1), stage.row()).await;
    assert_deadline_ignored(&stage, &created, created.deadline + MILLI).await;
}

async fn assert_deadline_ignored(stage: &Stage, created: &Row, later: Timestamp) {
    let request = CommitRequest { deadline: Some(later), ..commit(id(1)) };
    assert_eq!(stage.store.commit(request).await.unwrap().as_ref(), Some(created));
    assert_eq!(stage.loaded(id(1)).await, *created);
}

pub(crate) async fn an_edit_raises_the_claims_version_and_is_published(stage: Stage) {
    let created = stage.create_with(id(1), tag(1), b"cart").await;
    stage.clock.advance(MILLI);
    let now = stage.now();
    let sealed = [created.sealed.as_slice(), &edit_mark(created.renewed_at, now)].concat();
    let row = stage.store.commit(CommitRequest { edit: true, ..commit(id(1)) }).await.unwrap().unwrap();
    assert_eq!(row, signed(&id(1), Row { claims_version: 1, sealed, ..created }));
    assert_eq!(stage.load(id(1)).await, Some((row, [(tag(1), b"cart".to_vec())].into())));
    assert_eq!(stage.window(GRACE).await.entries, [(Revocation::Claims(id(1), 1), now)]);
}

pub(crate) async fn a_row_that_is_not_as_signed_takes_no_commit(stage: Stage) {
    let created = stage.create(id(1), stage.row()).await;
    let fields = vec![(tag(1), Some(b"forged".to_vec()))];
    let request = CommitRequest { fields, edit: true, keeper: &STRANGER, ..commit(id(1)) };
    assert_eq!(stage.store.commit(request).await.unwrap(), None);
    assert_eq!(stage.load(id(1)).await, Some((created, Fields::new())));
    assert_eq!(stage.feed().await, []);
}
