//! What is promised of `list_subject`.

use portcullis::store::{NewSession, Replacement};

use crate::stage::{IDLE, MILLI, Stage, id, session, subject};

pub(crate) async fn a_list_has_the_live_sessions_of_the_subject_oldest_first(stage: Stage) {
    let (expired, superseded, revoked, anonymous, another) = (9, 8, 7, 6, 5);
    stage.create(id(expired), stage.row_of(subject(1))).await;
    stage.clock.advance(IDLE);
    for number in [superseded, revoked] {
        stage.create(id(number), stage.row_of(subject(1))).await;
    }
    stage.store.revoke(&id(revoked)).await.unwrap();
    stage.create(id(anonymous), stage.row()).await;
    stage.create(id(another), stage.row_of(subject(2))).await;
    // Ids fall while creation rises, so that an order by id would show.
    let mut expected = Vec::new();
    for (number, replaces) in [(4, None), (3, Some(Replacement::Supersede(id(superseded)))), (2, None)] {
        stage.clock.advance(MILLI);
        let new = NewSession { replaces, ..session(id(number), stage.row_of(subject(1))) };
        expected.push((id(number), stage.store.create(new).await.unwrap()));
    }
    assert_eq!(stage.list(subject(1)).await, expected);
    assert_eq!(stage.list(subject(3)).await, []);
}
