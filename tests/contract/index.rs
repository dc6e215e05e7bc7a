//! What is promised of `claim_index`: sessions of two index secrets never lie in one store.

use portcullis::store::{CreateError, Replacement};

use crate::stage::{Stage, id, session};

const OURS: [u8; 16] = [1; 16];
const THEIRS: [u8; 16] = [2; 16];

pub(crate) async fn an_index_secret_can_be_claimed_again_but_no_other(stage: Stage) {
    for _ in 0..2 {
        assert!(stage.store.claim_index(OURS).is_ok());
        assert!(stage.store.claim_index(THEIRS).is_err());
    }
}

pub(crate) async fn a_handle_opened_later_knows_the_index_secret(stage: Stage) {
    stage.store.claim_index(OURS).unwrap();
    stage.create(id(1), stage.row()).await;
    let later = stage.open().await;
    assert!(later.claim_index(THEIRS).is_err());
    assert!(later.claim_index(OURS).is_ok());
    later.create(session(id(2), stage.row())).await.unwrap();
}

/// Both handles were opened while the store belonged to nobody.
pub(crate) async fn of_two_index_secrets_at_once_one_creates_sessions(stage: Stage) {
    stage.store.claim_index(OURS).unwrap();
    if stage.other.claim_index(THEIRS).is_err() {
        return;
    }
    stage.create(id(1), stage.row()).await;
    for number in [2, 3] {
        let refused = stage.other.create(session(id(number), stage.row())).await;
        assert!(matches!(refused, Err(CreateError::Store(_))), "{refused:?}");
        assert!(stage.is_gone(id(number)).await);
    }
    stage.create(id(4), stage.row()).await;
}

/// What a store writes with the first session must not be thought written when that session was refused.
pub(crate) async fn a_refused_first_session_does_not_lose_the_index_secret(stage: Stage) {
    stage.store.claim_index(OURS).unwrap();
    let refused = stage.replace(id(1), Replacement::Move(id(2))).await;
    assert!(matches!(refused, Err(CreateError::ReplacedGone)));
    stage.create(id(1), stage.row()).await;
    let later = stage.open().await;
    assert!(later.claim_index(THEIRS).is_err(), "sessions of another index secret lie in the store");
}
