//! What is promised of `revoke_before`: everybody who was authenticated before a moment is signed out.

use portcullis::{
    session::RotationOutcome,
    store::{NewSession, Replacement, Revocation, RotateAnswer, Row},
};

use crate::stage::{GRACE, MILLI, Stage, id, renewal, session, subject, tag};

pub(crate) async fn everybody_from_before_is_over_and_nobody_from_after(stage: Stage) {
    stage.create_with(id(1), tag(1), b"cart").await;
    stage.create(id(2), stage.row_of(subject(1))).await;
    stage.clock.advance(MILLI);
    let moment = stage.now();
    let kept = stage.create(id(3), stage.row_of(subject(1))).await;
    stage.store.revoke_before(moment).await.unwrap();
    for number in [1, 2] {
        assert!(stage.is_gone(id(number)).await);
        assert!(stage.put(id(number), tag(2), b"more").await.is_none());
        assert_eq!(stage.rotate(renewal(id(number), 0)).await, RotateAnswer::Gone);
    }
    assert_eq!(stage.list(subject(1)).await, [(id(3), kept.clone())]);
    stage.clock.advance(GRACE);
    let (outcome, _) = stage.judge(renewal(id(3), kept.rotation.issued)).await;
    assert!(matches!(outcome, RotationOutcome::Won(_)));
    assert!(stage.feed().await.contains(&Revocation::Before(moment)));
}

/// A renewal does not make a session younger, nor does a new id without a new authentication.
pub(crate) async fn nothing_but_a_new_authentication_gets_out_of_it(stage: Stage) {
    let row = stage.create(id(1), stage.row()).await;
    stage.clock.advance(GRACE);
    stage.judge(renewal(id(1), row.rotation.issued)).await;
    let moment = stage.now();
    stage.other.revoke_before(moment).await.unwrap();
    assert!(stage.is_gone(id(1)).await);
    let moved = Row { authenticated_at: row.authenticated_at, ..stage.row() };
    let replaces = Some(Replacement::Move(id(1)));
    assert!(stage.store.create(NewSession { replaces, ..session(id(2), moved) }).await.is_err());
    stage.create(id(3), stage.row()).await;
    stage.loaded(id(3)).await;
}

pub(crate) async fn an_earlier_moment_changes_nothing(stage: Stage) {
    stage.create(id(1), stage.row()).await;
    stage.clock.advance(MILLI);
    let later = stage.now();
    stage.store.revoke_before(later).await.unwrap();
    stage.store.revoke_before(portcullis::clock::Timestamp::from_millis(1)).await.unwrap();
    assert!(stage.is_gone(id(1)).await);
    stage.store.restore(&[Revocation::Before(later)]).await.unwrap();
    stage.create(id(2), stage.row()).await;
    stage.loaded(id(2)).await;
}
