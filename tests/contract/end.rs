//! How sessions end: by the clock, by `revoke`, by `revoke_subject`.

use std::sync::Arc;

use portcullis::store::{CreateError, NewSession, Replacement, Revocation, RotateAnswer, RotateRequest, Row};
use tokio::{sync::Barrier, task::JoinSet};

use crate::stage::{GRACE, IDLE, MILLI, Stage, id, renewal, session, subject, tag};

pub(crate) async fn a_session_is_over_exactly_at_its_deadline(stage: Stage) {
    let row = stage.row_of(subject(1));
    assert_over_at_idle(&stage, row).await;
}

pub(crate) async fn a_session_is_over_exactly_at_its_end(stage: Stage) {
    let ends_at = stage.now() + IDLE;
    let row = Row { ends_at, deadline: ends_at + IDLE, ..stage.row_of(subject(1)) };
    assert_over_at_idle(&stage, row).await;
}

/// Asserts that a session with this row lives for the idle timeout, and not a millisecond longer.
async fn assert_over_at_idle(stage: &Stage, row: Row) {
    let row = stage.create(id(1), row).await;
    let newest = row.rotation.issued;
    let upgrade = || RotateRequest { upgrade: true, ..renewal(id(1), newest) };
    stage.clock.advance(IDLE - MILLI);
    assert_eq!(stage.loaded(id(1)).await, row);
    assert_eq!(stage.list(subject(1)).await, [(id(1), row.clone())]);
    assert_eq!(stage.put(id(1), tag(1), b"in time").await, Some(row));
    // An upgrade, since a renewal would prolong it.
    assert!(matches!(stage.rotate(upgrade()).await, RotateAnswer::Upgrade(Some(_))));
    stage.clock.advance(MILLI);
    assert!(stage.is_gone(id(1)).await);
    assert_eq!(stage.list(subject(1)).await, []);
    assert_eq!(stage.put(id(1), tag(1), b"too late").await, None);
    // A used-up token tells nothing either: there is nothing left to steal.
    for request in [renewal(id(1), newest), renewal(id(1), 1), upgrade()] {
        assert_eq!(stage.rotate(request).await, RotateAnswer::Gone);
    }
    assert_eq!(stage.feed().await, []);
    assert_eq!(stage.store.revoke_subject(&subject(1)).await.unwrap(), 0);
}

pub(crate) async fn a_revoked_session_is_gone_with_its_data_and_published(stage: Stage) {
    let row = stage.row_of(subject(1));
    let fields = vec![(tag(1), b"cart".to_vec())];
    let newest =
        stage.store.create(NewSession { fields, ..session(id(1), row) }).await.unwrap().rotation.issued;
    let bystander = stage.create(id(2), stage.row_of(subject(1))).await;
    stage.clock.advance(GRACE);
    assert!(stage.store.revoke(&id(1)).await.unwrap());
    assert_eq!(stage.window(GRACE).await.entries, [(Revocation::Session(id(1)), stage.now())]);
    assert_eq!(stage.put(id(1), tag(1), b"back").await, None);
    assert_eq!(stage.rotate(renewal(id(1), newest)).await, RotateAnswer::Gone);
    assert_eq!(stage.list(subject(1)).await, [(id(2), bystander)]);
    stage.assert_wiped(id(1)).await;
}

/// A cookie of it may still be fresh on an instance that has not heard of its end.
pub(crate) async fn revoking_what_is_over_finds_none_and_is_published(stage: Stage) {
    stage.create_with(id(1), tag(1), b"cart").await;
    stage.clock.advance(IDLE);
    for absent_or_expired in [id(1), id(2)] {
        assert!(!stage.store.revoke(&absent_or_expired).await.unwrap());
        stage.assert_wiped(absent_or_expired).await;
    }
    assert_eq!(stage.feed().await, [id(1), id(2)].map(Revocation::Session));
}

/// Sessions 1, 2 and 3, each with one field, each superseded by the next.
async fn chain(stage: &Stage) {
    stage.create_with(id(1), tag(1), b"cart").await;
    for number in [2, 3] {
        let new = NewSession {
            fields: vec![(tag(1), b"cart".to_vec())],
            replaces: Some(Replacement::Supersede(id(number - 1))),
            ..session(id(number), stage.row())
        };
        stage.store.create(new).await.unwrap();
    }
}

pub(crate) async fn revoking_the_newest_id_ends_all_its_predecessors(stage: Stage) {
    chain(&stage).await;
    assert!(stage.store.revoke(&id(3)).await.unwrap());
    let ended = [id(3), id(2), id(1)].map(Revocation::Session);
    let superseded = [id(1), id(2)].map(Revocation::Superseded);
    stage.assert_told(&[&superseded, &ended]).await;
    for number in [1, 2, 3] {
        stage.assert_wiped(id(number)).await;
    }
}

pub(crate) async fn revoking_a_superseded_session_leaves_the_newer_one(stage: Stage) {
    chain(&stage).await;
    assert!(stage.store.revoke(&id(2)).await.unwrap());
    let ended = [id(2), id(1)].map(Revocation::Session);
    let superseded = [id(1), id(2)].map(Revocation::Superseded);
    stage.assert_told(&[&superseded, &ended]).await;
    stage.assert_wiped(id(1)).await;
    stage.assert_wiped(id(2)).await;
    assert_eq!(stage.fields(id(3)).await, [(tag(1), b"cart".to_vec())].into());
    stage.put(id(3), tag(2), b"goes on").await.unwrap();
}

pub(crate) async fn signing_a_subject_out_ends_its_sessions_and_counts_them(stage: Stage) {
    stage.create(id(1), stage.row_of(subject(1))).await;
    stage.clock.advance(IDLE);
    for number in [2, 3, 4] {
        stage.create(id(number), stage.row_of(subject(1))).await;
    }
    let new = NewSession {
        replaces: Some(Replacement::Supersede(id(4))),
        fields: vec![(tag(1), b"cart".to_vec())],
        ..session(id(5), stage.row_of(subject(1)))
    };
    let newest = stage.store.create(new).await.unwrap().rotation.issued;
    let others = stage.create(id(6), stage.row_of(subject(2))).await;
    let anonymous = stage.create(id(7), stage.row()).await;
    // Neither the expired nor the superseded one is counted: 2, 3 and 5 are.
    assert_eq!(stage.store.revoke_subject(&subject(1)).await.unwrap(), 3);
    let told = [Revocation::Superseded(id(4)), Revocation::Subject(subject(1), 1)];
    assert_eq!(stage.window(GRACE).await.entries, told.map(|revocation| (revocation, stage.now())));
    assert_eq!(stage.list(subject(1)).await, []);
    assert_eq!(stage.put(id(5), tag(1), b"back").await, None);
    assert_eq!(stage.rotate(renewal(id(5), newest)).await, RotateAnswer::Gone);
    let moved = stage.replace(id(8), Replacement::Move(id(5))).await;
    assert!(matches!(moved, Err(CreateError::ReplacedGone)));
    for number in [2, 3, 4, 5] {
        stage.assert_wiped(id(number)).await;
    }
    assert_eq!(stage.list(subject(2)).await, [(id(6), others)]);
    assert_eq!(stage.loaded(id(7)).await, anonymous);
}

pub(crate) async fn after_a_sign_out_everywhere_a_new_session_lives(stage: Stage) {
    assert_eq!(stage.store.revoke_subject(&subject(1)).await.unwrap(), 0);
    let row = stage.create(id(1), stage.row_of(subject(1))).await;
    assert_eq!(row.epoch, 1);
    assert_eq!(stage.list(subject(1)).await, [(id(1), row.clone())]);
    stage.put(id(1), tag(1), b"cart").await.unwrap();
    stage.clock.advance(GRACE);
    assert_eq!(stage.judge(renewal(id(1), row.rotation.issued)).await.1.epoch, 1);
    assert_eq!(stage.store.revoke_subject(&subject(1)).await.unwrap(), 1);
    assert!(stage.is_gone(id(1)).await);
    assert_eq!(stage.feed().await, [1, 2].map(|epoch| Revocation::Subject(subject(1), epoch)));
}

/// Whoever creates, moves or renews at that moment is either before it and ends, or after it and has the new epoch.
pub(crate) async fn no_session_escapes_a_sign_out_everywhere_by_a_race(stage: Stage) {
    const RACERS: u32 = 50;
    for round in 1..=4_u32 {
        let first = round * 1000;
        let newest = stage.now().as_millis();
        for number in 0..RACERS {
            stage.create(id(first + number), stage.row_of(subject(1))).await;
        }
        stage.clock.advance(GRACE);
        let start = Arc::new(Barrier::new(RACERS as usize + 1));
        let mut racers = JoinSet::new();
        for number in 0..RACERS {
            let store = Arc::clone(if number % 2 == 0 { &stage.store } else { &stage.other });
            let (start, row) = (Arc::clone(&start), stage.row_of(subject(1)));
            let (old, new) = (id(first + number), id(first + RACERS + number));
            racers.spawn(async move {
                start.wait().await;
                let replaces = match number % 3 {
                    0 => Some(Replacement::Move(old)),
                    1 => None,
                    _ => return store.rotate(renewal(old, newest)).await.map(|_| ()).unwrap(),
                };
                match store.create(NewSession { replaces, ..session(new, row) }).await {
                    Ok(_) | Err(CreateError::ReplacedGone) => {}
                    Err(error) => panic!("{error:?}"),
                }
            });
        }
        start.wait().await;
        stage.other.revoke_subject(&subject(1)).await.unwrap();
        racers.join_all().await;
        let listed = stage.list(subject(1)).await;
        for number in 0..2 * RACERS {
            let id = id(first + number);
            let epoch = stage.load(id).await.map(|(row, _)| row.epoch);
            assert!(epoch.is_none_or(|epoch| epoch == u64::from(round)), "session {number}: {epoch:?}");
            assert_eq!(listed.iter().any(|(listed, _)| *listed == id), epoch.is_some(), "session {number}");
        }
    }
}
