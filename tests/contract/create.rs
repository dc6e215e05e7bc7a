//! What is promised of `create`, alone and in the place of another session.

use portcullis::{
    dbsc::KeyKind,
    id::StoredId,
    session::{Device, Rotation},
    store::{
        CommitRequest, CreateError, FieldTag, NewSession, Replacement, Revocation, RotateAnswer,
        RotateRequest, Row, Seen,
    },
};

use crate::{
    keeper::{STRANGER, signed},
    stage::{Fields, GRACE, IDLE, MILLI, REMEMBERED_IDLE, Stage, commit, id, renewal, session, subject, tag},
};

pub(crate) async fn a_created_session_is_loaded_with_its_row_and_fields(stage: Stage) {
    // Every column differs from every other, so that none can be kept in another's place.
    let now = stage.now();
    let given = Row {
        rotation: Rotation { previous: 3, floor: 4, issued: 5, rotated_at: now + MILLI },
        renewed_at: now + 2 * MILLI,
        authenticated_at: now + 3 * MILLI,
        deadline: now + REMEMBERED_IDLE,
        ends_at: now + 2 * REMEMBERED_IDLE,
        claims_version: 6,
        upgrades: 2,
        remembered: true,
        device: Some(Box::new(Device {
            kind: KeyKind::Software,
            key: [7; 64],
            challenge: 8,
            proven_at: now + 4 * MILLI,
            confirmed: true,
        })),
        ..stage.row_of(subject(1))
    };
    let fields = vec![(tag(1), b"one".to_vec()), (tag(2), Vec::new())];
    let created = NewSession { fields: fields.clone(), ..session(id(1), Row { epoch: 9, ..given.clone() }) };
    let created = stage.store.create(created).await.unwrap();
    assert_eq!(created, signed(&id(1), given), "the store fills in the epoch and the signature");
    assert_eq!(stage.load(id(1)).await, Some((created, fields.into_iter().collect())));
    assert_eq!(stage.load(id(2)).await, None);
}

pub(crate) async fn a_taken_id_is_refused_and_nothing_changes(stage: Stage) {
    let first = stage.create_with(id(1), tag(1), b"first").await;
    let bystander = stage.create_with(id(2), tag(2), b"bystander").await;
    for replaces in [Replacement::End(id(2)), Replacement::Move(id(2)), Replacement::Supersede(id(2))] {
        let again = NewSession {
            fields: vec![(tag(1), b"second".to_vec()), (tag(3), b"more".to_vec())],
            replaces: Some(replaces),
            ..session(id(1), Row { claims_version: 7, ..stage.row_of(subject(1)) })
        };
        let refused = stage.store.create(again).await;
        assert!(matches!(refused, Err(CreateError::Taken)), "{replaces:?}: {refused:?}");
    }
    assert_eq!(stage.load(id(1)).await, Some((first, [(tag(1), b"first".to_vec())].into())));
    assert_eq!(stage.load(id(2)).await, Some((bystander, [(tag(2), b"bystander".to_vec())].into())));
    assert_eq!(stage.list(subject(1)).await, []);
    assert_eq!(stage.feed().await, []);
}

pub(crate) async fn a_new_session_gets_the_epoch_of_its_subject(stage: Stage) {
    assert_eq!(stage.create(id(1), stage.row_of(subject(1))).await.epoch, 0);
    for epoch in 1..=2 {
        stage.store.revoke_subject(&subject(1)).await.unwrap();
        let number = u32::try_from(epoch).unwrap();
        assert_eq!(stage.create(id(10 + number), stage.row_of(subject(1))).await.epoch, epoch);
        assert_eq!(stage.create(id(20 + number), stage.row_of(subject(2))).await.epoch, 0);
        assert_eq!(stage.create(id(30 + number), stage.row()).await.epoch, 0);
    }
}

pub(crate) async fn a_login_ends_the_session_it_replaces_in_the_same_step(stage: Stage) {
    stage.create_with(id(1), tag(1), b"cart").await;
    stage.replace(id(2), Replacement::Supersede(id(1))).await.unwrap();
    let new = stage.replace(id(3), Replacement::End(id(2))).await.unwrap();
    assert_eq!(new.predecessor, None, "nothing is left that would have to end with it");
    assert_eq!(stage.load(id(3)).await, Some((new, Fields::new())));
    let ended = [id(2), id(1)].map(Revocation::Session);
    stage.assert_told(&[&[Revocation::Superseded(id(1))], &ended]).await;
    stage.assert_wiped(id(1)).await;
    stage.assert_wiped(id(2)).await;
}

/// A cookie of it may still be fresh on an instance that has not heard of its end.
pub(crate) async fn a_login_publishes_also_a_session_that_is_gone(stage: Stage) {
    stage.replace(id(2), Replacement::End(id(1))).await.unwrap();
    stage.clock.advance(IDLE);
    stage.replace(id(3), Replacement::End(id(2))).await.unwrap();
    assert_eq!(stage.feed().await, [id(1), id(2)].map(Revocation::Session));
    stage.loaded(id(3)).await;
    stage.assert_wiped(id(2)).await;
}

pub(crate) async fn a_move_ends_the_session_it_moves(stage: Stage) {
    stage.create_with(id(1), tag(1), b"cart").await;
    let new = stage.replace(id(2), Replacement::Move(id(1))).await.unwrap();
    assert_eq!(new.predecessor, None);
    stage.loaded(id(2)).await;
    assert_eq!(stage.feed().await, [Revocation::Session(id(1))]);
    stage.assert_wiped(id(1)).await;
}

pub(crate) async fn what_is_not_live_cannot_be_moved_and_nothing_is_created(stage: Stage) {
    assert_not_replaced(&stage, Replacement::Move).await;
}

pub(crate) async fn what_is_not_live_cannot_be_superseded_and_nothing_is_created(stage: Stage) {
    assert_not_replaced(&stage, Replacement::Supersede).await;
    stage.create(id(30), stage.row()).await;
    let replaces = Some(Replacement::Supersede(id(30)));
    let new = NewSession { replaces, keeper: &STRANGER, ..session(id(31), stage.row()) };
    let refused = stage.store.create(new).await;
    assert!(matches!(refused, Err(CreateError::ReplacedGone)), "not as signed: {refused:?}");
    assert_eq!(stage.loaded(id(30)).await.superseded_at, None);
}

/// Asserts that sessions which are over in one way or another cannot be replaced.
async fn assert_not_replaced(stage: &Stage, replacement: fn(StoredId) -> Replacement) {
    let (absent, expired, revoked, superseded, newer) = (id(1), id(2), id(3), id(4), id(5));
    stage.create(expired, stage.row()).await;
    stage.clock.advance(IDLE);
    stage.create(revoked, stage.row()).await;
    stage.store.revoke(&revoked).await.unwrap();
    stage.create(superseded, stage.row()).await;
    stage.replace(newer, Replacement::Supersede(superseded)).await.unwrap();
    let before = (stage.loaded(superseded).await, stage.feed().await);
    for old in [absent, expired, revoked, superseded] {
        let new = NewSession {
            fields: vec![(tag(1), b"new".to_vec())],
            replaces: Some(replacement(old)),
            ..session(id(20), stage.row_of(subject(1)))
        };
        let refused = stage.store.create(new).await;
        assert!(matches!(refused, Err(CreateError::ReplacedGone)), "{:?}: {refused:?}", old.as_bytes());
    }
    assert_eq!((stage.loaded(superseded).await, stage.feed().await), before);
    assert_eq!(stage.list(subject(1)).await, []);
    stage.assert_wiped(id(20)).await;
}

pub(crate) async fn a_superseded_session_is_loaded_and_takes_no_commit(stage: Stage) {
    let old = stage.create_with(id(1), tag(1), b"cart").await;
    stage.clock.advance(MILLI);
    let new = stage.replace(id(2), Replacement::Supersede(id(1))).await.unwrap();
    assert_eq!(new.predecessor, Some(id(1)));
    assert_eq!(stage.loaded(id(2)).await, new);
    let refused = CommitRequest {
        fields: vec![(tag(1), None), (tag(2), Some(b"more".to_vec()))],
        deadline: Some(stage.now() + MILLI),
        edit: true,
        ..commit(id(1))
    };
    assert_eq!(stage.store.commit(refused).await.unwrap(), None);
    let superseded = signed(&id(1), Row { superseded_at: Some(stage.now()), successor: Some(id(2)), ..old });
    assert_eq!(stage.load(id(1)).await, Some((superseded, [(tag(1), b"cart".to_vec())].into())));
    assert_eq!(stage.feed().await, [Revocation::Superseded(id(1))]);
}

pub(crate) async fn tokens_of_a_superseded_session_renew_nothing(stage: Stage) {
    let old = stage.create(id(1), stage.row()).await;
    stage.clock.advance(GRACE);
    stage.replace(id(2), Replacement::Supersede(id(1))).await.unwrap();
    let superseded = stage.loaded(id(1)).await;
    stage.clock.advance(GRACE - MILLI);
    for late in [false, true] {
        for (generation, upgrade) in [(old.rotation.issued, false), (old.rotation.issued, true), (1, false)] {
            let answer = stage.rotate(RotateRequest { upgrade, ..renewal(id(1), generation) });
            assert_eq!(answer.await, RotateAnswer::Superseded { late }, "{generation}");
        }
        stage.clock.advance(MILLI);
    }
    assert_eq!(stage.loaded(id(1)).await, superseded);
    assert_eq!(stage.feed().await, [Revocation::Superseded(id(1))]);
}

/// What somebody else wrote between the reading of a session and its new id must not be lost.
pub(crate) async fn a_session_that_was_written_to_since_it_was_read_is_not_replaced(stage: Stage) {
    for (number, kind) in [(1, Replacement::Move as fn(_) -> _), (11, Replacement::Supersede)] {
        let old = stage.create_with(id(number), tag(1), b"cart").await;
        let seen = |claims_version, fields: &[(FieldTag, &[u8])]| {
            let fields = fields.iter().map(|(tag, value)| (*tag, value.to_vec())).collect();
            Some(Seen { claims_version, is_bound: false, fields })
        };
        let create = |new, seen| {
            let replaces = Some(kind(id(number)));
            stage.store.create(NewSession { replaces, seen, ..session(id(new), stage.row()) })
        };
        for changed in [
            seen(old.claims_version + 1, &[(tag(1), b"cart")]),
            seen(old.claims_version, &[(tag(1), b"another")]),
            seen(old.claims_version, &[(tag(2), b"cart")]),
            seen(old.claims_version, &[]),
            seen(old.claims_version, &[(tag(1), b"cart"), (tag(2), b"more")]),
        ] {
            let refused = create(number + 1, changed).await;
            assert!(matches!(refused, Err(CreateError::ReplacedChanged)), "{refused:?}");
            assert_eq!(stage.loaded(id(number)).await, old);
            assert_eq!(stage.load(id(number + 1)).await, None);
        }
        create(number + 1, seen(old.claims_version, &[(tag(1), b"cart")])).await.unwrap();
    }
}
