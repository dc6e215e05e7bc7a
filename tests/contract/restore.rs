//! What is promised of `restore`: a revocation that a failover has lost stands again.

use portcullis::store::{NewSession, Replacement, Revocation};

use crate::stage::{MILLI, Stage, id, session, subject, tag};

pub(crate) async fn what_is_restored_is_ended_and_published(stage: Stage) {
    stage.create_with(id(1), tag(1), b"cart").await;
    stage.create(id(2), stage.row_of(subject(1))).await;
    stage.create(id(3), stage.row()).await;
    let lost = [Revocation::Session(id(1)), Revocation::Subject(subject(1), 1), Revocation::Session(id(9))];
    stage.store.restore(&lost).await.unwrap();
    assert!(stage.is_gone(id(2)).await);
    stage.assert_wiped(id(1)).await;
    stage.loaded(id(3)).await;
    let feed = stage.feed().await;
    assert!(lost.iter().all(|revocation| feed.contains(revocation)), "{feed:?}");
}

/// Restoring twice, or what stands, must end nobody who came later.
pub(crate) async fn a_restored_epoch_ends_nobody_who_came_after_it(stage: Stage) {
    stage.store.revoke_subject(&subject(1)).await.unwrap();
    stage.store.revoke_subject(&subject(1)).await.unwrap();
    stage.clock.advance(MILLI);
    assert_eq!(stage.create(id(1), stage.row_of(subject(1))).await.epoch, 2);
    for epoch in [1, 2, 2] {
        stage.store.restore(&[Revocation::Subject(subject(1), epoch)]).await.unwrap();
        stage.loaded(id(1)).await;
    }
    assert_eq!(stage.create(id(2), stage.row_of(subject(1))).await.epoch, 2);
    stage.store.restore(&[Revocation::Subject(subject(1), 5)]).await.unwrap();
    assert!(stage.is_gone(id(1)).await && stage.is_gone(id(2)).await);
    assert_eq!(stage.create(id(3), stage.row_of(subject(1))).await.epoch, 5);
    assert_eq!(stage.store.revoke_subject(&subject(1)).await.unwrap(), 1);
    assert_eq!(stage.create(id(4), stage.row_of(subject(1))).await.epoch, 6);
}

/// A restored session takes with it the ids it had before, as a revoked one does.
pub(crate) async fn restoring_the_newest_id_ends_its_predecessors(stage: Stage) {
    stage.create(id(1), stage.row()).await;
    let replaces = Some(Replacement::Supersede(id(1)));
    stage.store.create(NewSession { replaces, ..session(id(2), stage.row()) }).await.unwrap();
    stage.store.restore(&[Revocation::Session(id(2))]).await.unwrap();
    assert!(stage.is_gone(id(1)).await && stage.is_gone(id(2)).await);
    let feed = stage.feed().await;
    assert!(feed.contains(&Revocation::Session(id(1))) && feed.contains(&Revocation::Session(id(2))));
}
