//! What is promised of `purge`.

use std::time::Duration;

use portcullis::store::{NewSession, Replacement, Revocation, Row};

use crate::stage::{ABSOLUTE, Fields, IDLE, MILLI, Stage, WINDOW, id, session, subject, tag};

/// Purges until nothing is left to purge. How many sessions went.
async fn purge(stage: &Stage, window: Duration) -> u64 {
    let mut purged = 0;
    loop {
        match stage.store.purge(window).await.unwrap() {
            0 => return purged,
            batch => purged += batch,
        }
    }
}

pub(crate) async fn a_purge_removes_what_is_over_and_nothing_else(stage: Stage) {
    // More than a store takes in one batch.
    const OVER: u32 = 1200;
    for number in 0..OVER {
        let fields = vec![(tag(1), b"old".to_vec())];
        stage.store.create(NewSession { fields, ..session(id(number), stage.row()) }).await.unwrap();
    }
    stage.clock.advance(MILLI);
    let (live, superseded) = (id(OVER), id(OVER + 1));
    let lasting = Row { deadline: stage.now() + ABSOLUTE, ..stage.row() };
    let new = NewSession { fields: vec![(tag(1), b"new".to_vec())], ..session(live, lasting.clone()) };
    let row = stage.store.create(new).await.unwrap();
    stage.create(superseded, Row { subject: Some(subject(1)), ..lasting.clone() }).await;
    let replaces = Some(Replacement::Supersede(superseded));
    stage.store.create(NewSession { replaces, ..session(id(OVER + 2), lasting) }).await.unwrap();
    assert_eq!(purge(&stage, WINDOW).await, 0);
    stage.clock.advance(IDLE - MILLI + stage.purges_by());
    assert_eq!(purge(&stage, WINDOW).await, stage.purged(u64::from(OVER)));
    assert_eq!(stage.load(live).await, Some((row, [(tag(1), b"new".to_vec())].into())));
    stage.loaded(superseded).await;
    // Their ids are free again, and none of their data is left.
    for number in 0..OVER {
        stage.create(id(number), stage.row()).await;
        assert_eq!(stage.fields(id(number)).await, Fields::new());
    }
    assert_eq!(stage.feed().await, [], "the end of its time is no revocation");
}

pub(crate) async fn a_purge_drops_revocations_older_than_the_window_only(stage: Stage) {
    for (number, pause) in [(1, MILLI), (2, WINDOW), (3, Duration::ZERO)] {
        stage.store.revoke(&id(number)).await.unwrap();
        stage.clock.advance(pause);
    }
    stage.store.revoke_subject(&subject(1)).await.unwrap();
    let kept = [Revocation::Session(id(2)), Revocation::Session(id(3)), Revocation::Subject(subject(1), 1)];
    purge(&stage, WINDOW).await;
    assert_eq!(stage.feed().await, kept);
}

/// Two layers over one store: the one with shorter timeouts must not drop what the other still needs.
pub(crate) async fn a_purge_keeps_what_the_widest_window_needs(stage: Stage) {
    purge(&stage, WINDOW * 2).await;
    stage.store.revoke(&id(1)).await.unwrap();
    stage.clock.advance(WINDOW * 2);
    purge(&stage, WINDOW).await;
    assert_eq!(stage.feed().await, [Revocation::Session(id(1))]);
    stage.clock.advance(MILLI);
    purge(&stage, WINDOW).await;
    assert_eq!(stage.feed().await, []);
}

pub(crate) async fn a_purge_keeps_epochs(stage: Stage) {
    stage.store.revoke_subject(&subject(1)).await.unwrap();
    stage.clock.advance(WINDOW + MILLI);
    purge(&stage, WINDOW).await;
    assert_eq!(stage.feed().await, []);
    assert_eq!(stage.create(id(1), stage.row_of(subject(1))).await.epoch, 1);
}
