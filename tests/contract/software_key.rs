//! What is promised of `rotate` where a script's key is presented: it is bound once, wants the token beside it, gives way to a
//! device's.

use portcullis::{
    dbsc::KeyKind,
    session::{Device, RotationOutcome},
    store::{Presented, RotateAnswer, RotateRequest, Row},
};

use crate::{
    keeper::signed,
    stage::{GRACE, IDLE, MILLI, REMEMBERED_IDLE, Stage, id, renewal, subject},
};

const KEY: [u8; 64] = [7; 64];
const OTHER: [u8; 64] = [8; 64];

fn present(presented: Presented) -> RotateRequest<'static> {
    RotateRequest { presented, ..renewal(id(1), 0) }
}

fn bind(kind: KeyKind, key: [u8; 64], challenge: u64) -> RotateRequest<'static> {
    present(Presented::Device { kind, key, challenge })
}

fn renew(generation: u64, key: [u8; 64], challenge: u64) -> RotateRequest<'static> {
    present(Presented::SignedToken { generation, key, challenge })
}

async fn bound(stage: &Stage) -> Row {
    stage.create(id(1), stage.row_of(subject(1))).await;
    match stage.rotate(bind(KeyKind::Software, KEY, 5)).await {
        RotateAnswer::Taken { row, .. } => row,
        other => panic!("{other:?}"),
    }
}

async fn refused(stage: &Stage, request: RotateRequest<'static>, answer: RotateAnswer) {
    let before = stage.loaded(id(1)).await;
    assert_eq!(stage.rotate(request).await, answer);
    assert_eq!(stage.loaded(id(1)).await, before, "nothing changes");
}

fn device(stage: &Stage, challenge: u64, confirmed: bool) -> Option<Box<Device>> {
    let (kind, proven_at) = (KeyKind::Software, stage.now());
    Some(Box::new(Device { kind, key: KEY, challenge, proven_at, confirmed }))
}

pub(crate) async fn a_script_s_key_is_bound_once_and_lengthens_nothing(stage: Stage) {
    let before = stage.create(id(1), stage.row_of(subject(1))).await;
    stage.clock.advance(MILLI);
    let RotateAnswer::Taken { row, now } = stage.rotate(bind(KeyKind::Software, KEY, 5)).await else {
        panic!("bound")
    };
    assert_eq!(now, stage.now());
    let wanted = Row {
        device: device(&stage, 5, false),
        renewed_at: now,
        deadline: now + IDLE,
        sealed: row.sealed.clone(),
        ..before
    };
    assert_eq!(row, signed(&id(1), wanted), "it ends when it would have");
    assert_eq!(stage.loaded(id(1)).await, row);
    for (key, answer) in
        [(KEY, RotateAnswer::ProofUsed { last: 5 }), (OTHER, RotateAnswer::Bound(KeyKind::Software))]
    {
        for challenge in [5, 9] {
            refused(&stage, bind(KeyKind::Software, key, challenge), answer.clone()).await;
        }
    }
}

pub(crate) async fn a_token_beside_a_script_s_key_renews_by_the_table(stage: Stage) {
    let first = bound(&stage).await.rotation.issued;
    for generation in [first, 1] {
        refused(&stage, renewal(id(1), generation), RotateAnswer::Bound(KeyKind::Software)).await;
        refused(&stage, renew(generation, OTHER, 6), RotateAnswer::Bound(KeyKind::Software)).await;
        for used in [4, 5] {
            refused(&stage, renew(generation, KEY, used), RotateAnswer::ProofUsed { last: 5 }).await;
        }
    }
    let (outcome, young) = stage.judge(renew(first, KEY, 6)).await;
    assert_eq!((outcome, young.device.clone()), (RotationOutcome::Young, device(&stage, 6, true)));
    assert_eq!(stage.loaded(id(1)).await, young, "each challenge is answered once, also by one who is early");
    stage.clock.advance(GRACE);
    let (outcome, won) = stage.judge(renew(first, KEY, 7)).await;
    let now = stage.now();
    assert_eq!(outcome, RotationOutcome::Won(won.rotation.issued));
    assert_eq!((won.device.clone(), won.deadline), (device(&stage, 7, true), now + IDLE));
    assert_eq!(stage.loaded(id(1)).await, won);
    stage.clock.advance(GRACE);
    let (outcome, again) = stage.judge(renew(first, KEY, 8)).await;
    assert_eq!(outcome, RotationOutcome::Again(again.rotation.issued), "the answer was lost");
    stage.clock.advance(GRACE);
    stage.judge(renew(again.rotation.issued, KEY, 9)).await;
    let (outcome, _) = stage.judge(renew(first, KEY, 10)).await;
    assert_eq!(outcome, RotationOutcome::Reuse, "a copied profile is found out");
    assert_eq!(stage.store.load(&id(1)).await.unwrap(), None);
}

pub(crate) async fn a_device_s_key_takes_the_place_of_a_script_s(stage: Stage) {
    let before = bound(&stage).await;
    let RotateAnswer::Taken { row, now } = stage.rotate(bind(KeyKind::Device, OTHER, 1)).await else {
        panic!("bound")
    };
    let kept = Device { kind: KeyKind::Device, key: OTHER, challenge: 1, proven_at: now, confirmed: false };
    assert_eq!(row.device.as_deref(), Some(&kept));
    assert_eq!(row.deadline, now + REMEMBERED_IDLE);
    assert_eq!(row.ends_at, before.authenticated_at + 2 * REMEMBERED_IDLE);
    for key in [KEY, OTHER] {
        refused(&stage, bind(KeyKind::Software, key, 9), RotateAnswer::Bound(KeyKind::Device)).await;
        let renewal = renew(row.rotation.issued, key, 9);
        refused(&stage, renewal, RotateAnswer::Bound(KeyKind::Device)).await;
    }
}

/// Its identifier is sealed, so the session was bound to a device; the store has lost that.
pub(crate) async fn a_device_s_proof_takes_the_place_of_a_script_s_key(stage: Stage) {
    bound(&stage).await;
    let answer = stage.rotate(present(Presented::Proof { key: OTHER, challenge: 1 })).await;
    let RotateAnswer::Taken { row, now } = answer else { panic!("{answer:?}") };
    let kept = Device { kind: KeyKind::Device, key: OTHER, challenge: 1, proven_at: now, confirmed: false };
    assert_eq!(row.device.as_deref(), Some(&kept));
}

/// Its token alone would renew it; a signature of anybody's binds nothing beside that.
pub(crate) async fn a_signed_token_binds_nothing(stage: Stage) {
    let row = stage.create(id(1), stage.row_of(subject(1))).await;
    stage.clock.advance(GRACE);
    let (outcome, after) = stage.judge(renew(row.rotation.issued, KEY, 9)).await;
    assert_eq!((outcome, after.device), (RotationOutcome::Won(after.rotation.issued), None));
}

pub(crate) async fn a_new_authentication_keeps_a_script_s_key(stage: Stage) {
    let before = bound(&stage).await;
    stage.clock.advance(IDLE.checked_sub(MILLI).unwrap());
    let RotateAnswer::Taken { row, now } = stage.rotate(present(Presented::Authentication)).await else {
        panic!("taken")
    };
    let lasts = before.ends_at.since(before.authenticated_at);
    assert_eq!((row.device, row.ends_at, row.authenticated_at), (before.device, now + lasts, now));
}
