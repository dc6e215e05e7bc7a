//! What is promised of `rotate` where a device is presented: it binds once, renews alone, and answers each challenge once.

use portcullis::{
    dbsc::KeyKind,
    session::Device,
    store::{Presented, RotateAnswer, RotateRequest, Row},
};

use crate::{
    keeper::{STRANGER, edit_mark, signed},
    stage::{ABSOLUTE, IDLE, MILLI, REMEMBERED_IDLE, Stage, id, renewal, subject},
};

const KEY: [u8; 64] = [7; 64];

fn present(presented: Presented) -> RotateRequest<'static> {
    RotateRequest { presented, ..renewal(id(1), 0) }
}

fn bind(challenge: u64) -> RotateRequest<'static> {
    present(Presented::Device { kind: KeyKind::Device, key: KEY, challenge })
}

fn prove(challenge: u64) -> RotateRequest<'static> {
    present(Presented::Proof { key: KEY, challenge })
}

async fn taken(stage: &Stage, request: RotateRequest<'static>) -> Row {
    match stage.rotate(request).await {
        RotateAnswer::Taken { row, now } => {
            assert_eq!(now, stage.now());
            assert_eq!(stage.loaded(id(1)).await, row, "what is answered is what is kept");
            row
        }
        other => panic!("{other:?}"),
    }
}

async fn refused(stage: &Stage, request: RotateRequest<'static>, answer: RotateAnswer) {
    let before = stage.loaded(id(1)).await;
    assert_eq!(stage.rotate(request).await, answer);
    assert_eq!(stage.loaded(id(1)).await, before, "nothing changes");
}

pub(crate) async fn a_device_is_bound_once_and_lengthens_its_session(stage: Stage) {
    let before = stage.create(id(1), stage.row_of(subject(1))).await;
    stage.clock.advance(MILLI);
    let now = stage.now();
    let row = taken(&stage, bind(5)).await;
    let device = Device { kind: KeyKind::Device, key: KEY, challenge: 5, proven_at: now, confirmed: false };
    let ends_at = before.authenticated_at + 2 * REMEMBERED_IDLE;
    let sealed = [before.sealed.clone(), edit_mark(before.renewed_at, now).to_vec()].concat();
    let wanted = Row {
        device: Some(Box::new(device)),
        renewed_at: now,
        deadline: now + REMEMBERED_IDLE,
        ends_at,
        sealed,
        ..before
    };
    assert_eq!(row, signed(&id(1), wanted));
    refused(&stage, bind(9), RotateAnswer::Bound(KeyKind::Device)).await;
    let other = present(Presented::Device { kind: KeyKind::Device, key: [8; 64], challenge: 9 });
    refused(&stage, other, RotateAnswer::Bound(KeyKind::Device)).await;
}

pub(crate) async fn an_end_that_the_application_has_set_stands_when_a_device_is_bound(stage: Stage) {
    let ends_at = (stage.now() + ABSOLUTE).before(MILLI);
    stage.create(id(1), Row { ends_at, ..stage.row_of(subject(1)) }).await;
    let row = taken(&stage, bind(5)).await;
    assert_eq!((row.ends_at, row.deadline), (ends_at, ends_at));
}

pub(crate) async fn a_bound_session_is_renewed_by_its_device_alone(stage: Stage) {
    let issued = stage.create(id(1), stage.row_of(subject(1))).await.rotation.issued;
    taken(&stage, bind(5)).await;
    stage.clock.advance(IDLE);
    for upgrade in [false, true] {
        for generation in [issued, issued + 1, issued - 1, 1] {
            let token = RotateRequest { upgrade, ..renewal(id(1), generation) };
            refused(&stage, token, RotateAnswer::Bound(KeyKind::Device)).await;
        }
    }
    let stranger = present(Presented::Proof { key: [8; 64], challenge: 6 });
    refused(&stage, stranger, RotateAnswer::Gone).await;
    let now = stage.now();
    let row = taken(&stage, prove(6)).await;
    assert_eq!(
        row.device.as_deref(),
        Some(&Device { kind: KeyKind::Device, key: KEY, challenge: 6, proven_at: now, confirmed: true })
    );
    assert_eq!((row.renewed_at, row.deadline), (now, now + REMEMBERED_IDLE));
    assert_eq!(row.rotation.issued, issued);
}

/// Its identifier is sealed, so a proof comes only of a session that was bound; the store has lost it.
pub(crate) async fn a_proof_binds_again_what_the_store_has_lost(stage: Stage) {
    stage.create(id(1), stage.row_of(subject(1))).await;
    let row = taken(&stage, prove(6)).await;
    let device =
        Device { kind: KeyKind::Device, key: KEY, challenge: 6, proven_at: stage.now(), confirmed: false };
    assert_eq!(row.device.as_deref(), Some(&device));
    refused(&stage, prove(6), RotateAnswer::ProofUsed { last: 6 }).await;
}

pub(crate) async fn each_challenge_is_answered_once(stage: Stage) {
    stage.create(id(1), stage.row_of(subject(1))).await;
    taken(&stage, bind(5)).await;
    for used in [0, 4, 5] {
        refused(&stage, prove(used), RotateAnswer::ProofUsed { last: 5 }).await;
    }
    taken(&stage, prove(9)).await;
    for used in [6, 9] {
        refused(&stage, prove(used), RotateAnswer::ProofUsed { last: 9 }).await;
    }
    taken(&stage, prove(10)).await;
}

pub(crate) async fn of_two_who_answer_one_challenge_at_once_one_is_taken(stage: Stage) {
    stage.create(id(1), stage.row_of(subject(1))).await;
    taken(&stage, bind(5)).await;
    let mut takers = 0;
    let answers = futures(&stage, 8, || prove(6)).await;
    for answer in &answers {
        match answer {
            RotateAnswer::Taken { .. } => takers += 1,
            RotateAnswer::ProofUsed { last: 6 } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(takers, 1, "{answers:?}");
    stage.create(id(2), stage.row_of(subject(1))).await;
    let key = |at: u8| RotateRequest {
        presented: Presented::Device { kind: KeyKind::Device, key: [at; 64], challenge: 1 },
        ..renewal(id(2), 0)
    };
    let mut at = 0;
    let answers = futures(&stage, 8, || {
        at += 1;
        key(at)
    })
    .await;
    let bound = answers.iter().filter(|answer| matches!(answer, RotateAnswer::Taken { .. })).count();
    assert_eq!(bound, 1, "{answers:?}");
}

async fn futures(
    stage: &Stage,
    count: usize,
    mut request: impl FnMut() -> RotateRequest<'static>,
) -> Vec<RotateAnswer> {
    let mut tasks = Vec::new();
    for _ in 0..count {
        let (store, request) = (stage.store.clone(), request());
        tasks.push(tokio::spawn(async move { store.rotate(request).await.unwrap() }));
    }
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.unwrap());
    }
    answers
}

pub(crate) async fn a_new_authentication_of_a_bound_session_keeps_its_device(stage: Stage) {
    stage.create(id(1), stage.row_of(subject(1))).await;
    refused(&stage, present(Presented::Authentication), RotateAnswer::Gone).await;
    let bound = taken(&stage, bind(5)).await;
    stage.clock.advance(IDLE);
    let now = stage.now();
    let row = taken(&stage, present(Presented::Authentication)).await;
    assert_eq!(row.device, bound.device);
    assert_eq!((row.authenticated_at, row.ends_at), (now, now + 2 * REMEMBERED_IDLE));
    // Also where the store keeps that beside the row.
    stage.store.revoke_before(now).await.unwrap();
    assert_eq!(stage.loaded(id(1)).await, row);
    stage.store.revoke_before(now + MILLI).await.unwrap();
    assert_eq!(stage.store.load(&id(1)).await.unwrap(), None);
}

pub(crate) async fn a_session_that_is_over_is_bound_and_renewed_by_nobody(stage: Stage) {
    assert_eq!(stage.rotate(bind(5)).await, RotateAnswer::Gone);
    stage.create(id(1), stage.row_of(subject(1))).await;
    taken(&stage, bind(5)).await;
    stage.store.revoke(&id(1)).await.unwrap();
    assert_eq!(stage.rotate(prove(6)).await, RotateAnswer::Gone);
    stage.create(id(1), stage.row_of(subject(1))).await;
    stage.clock.advance(IDLE);
    assert_eq!(stage.rotate(bind(7)).await, RotateAnswer::Gone);
}

pub(crate) async fn a_row_that_was_changed_takes_no_device(stage: Stage) {
    stage.create(id(1), stage.row_of(subject(1))).await;
    let stranger = RotateRequest { keeper: &STRANGER, ..bind(5) };
    refused(&stage, stranger, RotateAnswer::Tampered).await;
    taken(&stage, bind(5)).await;
    let stranger = RotateRequest { keeper: &STRANGER, ..prove(6) };
    refused(&stage, stranger, RotateAnswer::Tampered).await;
    assert_eq!(stage.loaded(id(1)).await.device.map(|device| device.confirmed), Some(false));
}
