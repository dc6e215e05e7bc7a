//! What is promised of `rotate`: the rotation table, row by row, and what the step writes.

use std::{sync::Arc, time::Duration};

use portcullis::{
    session::{Rotation, RotationOutcome, rotate},
    store::{FieldTag, NewSession, Revocation, RotateAnswer, RotateRequest, Row},
};
use tokio::task::JoinSet;

use crate::{
    keeper::{STRANGER, edit_mark, signed},
    stage::{GRACE, IDLE, MILLI, REMEMBERED_IDLE, Stage, id, renewal, session, tag},
};

/// Generation 7 was presented at the last win, which is `ago`; 9 and 10 are good; 8 was never presented.
async fn renewed(stage: &Stage, ago: Duration) -> Row {
    let rotation = Rotation { previous: 7, floor: 8, issued: 10, rotated_at: stage.now() };
    let row = Row { rotation, upgrades: 2, ..stage.row() };
    let new = NewSession { fields: vec![cart()], ..session(id(1), row) };
    let row = stage.store.create(new).await.unwrap();
    stage.clock.advance(ago);
    row
}

fn cart() -> (FieldTag, Vec<u8>) {
    (tag(1), b"cart".to_vec())
}

/// The row after a renewal now that led to `rotation`.
fn after(stage: &Stage, before: &Row, rotation: Rotation) -> Row {
    let now = stage.now();
    let sealed = [before.sealed.as_slice(), &edit_mark(before.renewed_at, now)].concat();
    let deadline = now + IDLE;
    signed(&id(1), Row { rotation, renewed_at: now, deadline, upgrades: 0, sealed, ..before.clone() })
}

/// Asserts that a renewal gives this outcome and writes this row, and leaves the data alone.
async fn assert_written(stage: &Stage, request: RotateRequest<'static>, outcome: RotationOutcome, row: Row) {
    assert_eq!(stage.judge(request).await, (outcome, row.clone()));
    assert_eq!(stage.load(id(1)).await, Some((row, [cart()].into())));
    assert_eq!(stage.feed().await, []);
}

pub(crate) async fn a_good_token_after_the_grace_wins(stage: Stage) {
    let before = renewed(&stage, GRACE).await;
    let now = stage.now();
    let rotation = Rotation { previous: 9, floor: 10, issued: now.as_millis(), rotated_at: now };
    let row = after(&stage, &before, rotation);
    assert_written(&stage, renewal(id(1), 9), RotationOutcome::Won(now.as_millis()), row).await;
}

pub(crate) async fn a_good_token_within_the_grace_is_young(stage: Stage) {
    let before = renewed(&stage, GRACE - MILLI).await;
    for generation in [9, 10] {
        let request = RotateRequest { same_client: generation == 9, ..renewal(id(1), generation) };
        assert_written(&stage, request, RotationOutcome::Young, before.clone()).await;
    }
}

pub(crate) async fn the_token_before_is_an_echo_within_the_grace(stage: Stage) {
    let before = renewed(&stage, GRACE - MILLI).await;
    assert_written(&stage, renewal(id(1), 7), RotationOutcome::Echo, before).await;
}

pub(crate) async fn the_token_before_is_refused_to_another_client_within_the_grace(stage: Stage) {
    let before = renewed(&stage, GRACE - MILLI).await;
    let request = RotateRequest { same_client: false, ..renewal(id(1), 7) };
    assert_written(&stage, request, RotationOutcome::EchoRefused, before).await;
}

/// It must not move `rotated_at`, or a thief could stay for ever.
pub(crate) async fn the_token_before_is_answered_again_after_the_grace(stage: Stage) {
    let before = renewed(&stage, GRACE).await;
    let issued = stage.now().as_millis();
    let row = after(&stage, &before, Rotation { issued, ..before.rotation });
    assert_written(&stage, renewal(id(1), 7), RotationOutcome::Again(issued), row).await;
}

pub(crate) async fn a_token_the_store_has_not_issued_yet_rolls_it_forward(stage: Stage) {
    let before = renewed(&stage, MILLI).await;
    let now = stage.now();
    // Ahead of the clock: the next generation is above what was shown, not what the clock says.
    let shown = now.as_millis() + 1000;
    let rotation = Rotation { previous: shown, floor: shown, issued: shown + 1, rotated_at: now };
    let row = after(&stage, &before, rotation);
    assert_written(&stage, renewal(id(1), shown), RotationOutcome::RolledBack(shown + 1), row).await;
}

pub(crate) async fn a_used_up_token_revokes_the_session(stage: Stage) {
    renewed(&stage, MILLI).await;
    assert_eq!(stage.judge(renewal(id(1), 6)).await.0, RotationOutcome::Reuse);
    assert_eq!(stage.window(GRACE).await.entries, [(Revocation::Session(id(1)), stage.now())]);
    assert_eq!(stage.rotate(renewal(id(1), 10)).await, RotateAnswer::Gone);
    stage.assert_wiped(id(1)).await;
}

/// A store that writes the table again in another language is compared with it here, edge by edge.
pub(crate) async fn every_combination_is_judged_as_by_the_pure_table(stage: Stage) {
    let start = stage.now();
    let states = [
        Rotation { previous: 7, floor: 8, issued: 10, rotated_at: start },
        Rotation { previous: 8, floor: 8, issued: 9, rotated_at: start },
        Rotation { previous: 0, floor: 8, issued: 9, rotated_at: start },
    ];
    let mut number = 0;
    for pause in [GRACE - MILLI, MILLI] {
        let row = stage.row();
        stage.clock.advance(pause);
        let now = stage.now();
        for (state, presented, same_client) in states
            .into_iter()
            .flat_map(|state| {
                [0, 6, 7, 8, 9, 10, 11, u64::from(u32::MAX)].map(|presented| (state, presented))
            })
            .flat_map(|(state, presented)| [true, false].map(|same_client| (state, presented, same_client)))
        {
            number += 1;
            let id = id(number);
            stage.create(id, Row { rotation: state, ..row.clone() }).await;
            let (outcome, after) = stage.judge(RotateRequest { same_client, ..renewal(id, presented) }).await;
            let case = format!("{presented} of {state:?} at {now:?}, same client: {same_client}");
            assert_eq!(
                (outcome, after.rotation),
                rotate(&state, presented, now, GRACE, same_client),
                "{case}"
            );
            let kept = stage.load(id).await.map(|(row, _)| row);
            assert_eq!(kept, (outcome != RotationOutcome::Reuse).then_some(after), "{case}");
        }
    }
}

pub(crate) async fn a_renewal_moves_the_deadline_by_the_idle_timeout_up_to_the_end(stage: Stage) {
    let now = stage.now();
    let renewed_at = now + GRACE;
    let soon = renewed_at + IDLE;
    let far = renewed_at + REMEMBERED_IDLE;
    let cases = [
        (1, false, far, soon),
        (2, true, far + MILLI, far),
        (3, false, soon, soon),
        (4, false, now + IDLE, now + IDLE),
        (5, true, soon, soon),
    ];
    for (number, remembered, ends_at, _) in cases {
        let row = Row { remembered, ends_at, deadline: now + 2 * GRACE, ..stage.row() };
        stage.create(id(number), row).await;
    }
    stage.clock.advance(GRACE);
    for (number, _, _, deadline) in cases {
        let (outcome, row) = stage.judge(renewal(id(number), now.as_millis())).await;
        assert_eq!(outcome, RotationOutcome::Won(renewed_at.as_millis()), "session {number}");
        assert_eq!(row.deadline, deadline, "session {number}");
        assert_eq!(stage.loaded(id(number)).await, row);
    }
}

/// Attack A70: a page that asks for news every few seconds.
pub(crate) async fn a_renewal_without_activity_leaves_the_deadline(stage: Stage) {
    let before = stage.create(id(1), stage.row()).await;
    let mut generation = before.rotation.issued;
    for _ in 0..2 {
        stage.clock.advance(GRACE);
        let request = RotateRequest { active: false, ..renewal(id(1), generation) };
        let (outcome, row) = stage.judge(request).await;
        generation = row.rotation.issued;
        assert_eq!(outcome, RotationOutcome::Won(generation));
        assert_eq!((row.deadline, row.renewed_at), (before.deadline, before.renewed_at));
        assert_eq!(stage.loaded(id(1)).await, row);
    }
    stage.clock.advance(before.deadline.since(stage.now()));
    assert!(stage.is_gone(id(1)).await);
}

/// The page has renewed, and the user clicks within the grace: nothing rotates, and the deadline moves.
pub(crate) async fn the_user_prolongs_what_a_polling_page_has_renewed(stage: Stage) {
    let before = stage.create(id(1), stage.row()).await;
    stage.clock.advance(GRACE);
    let polls = RotateRequest { active: false, ..renewal(id(1), before.rotation.issued) };
    let (_, polled) = stage.judge(polls).await;
    stage.clock.advance(MILLI);
    for presented in [polled.rotation.issued, before.rotation.issued] {
        let (outcome, row) = stage.judge(renewal(id(1), presented)).await;
        assert!(matches!(outcome, RotationOutcome::Young | RotationOutcome::Echo), "{outcome:?}");
        assert_eq!((row.rotation, row.deadline), (polled.rotation, stage.now() + IDLE));
        assert_eq!(stage.loaded(id(1)).await, row);
    }
}

fn upgrade(generation: u64) -> RotateRequest<'static> {
    RotateRequest { upgrade: true, ..renewal(id(1), generation) }
}

/// Attack A74: sockets would be a way to stay without renewing.
pub(crate) async fn three_socket_upgrades_are_admitted_per_generation(stage: Stage) {
    let mut generation = stage.create(id(1), stage.row()).await.rotation.issued;
    for _ in 0..2 {
        stage.clock.advance(GRACE);
        for count in 1..=3 {
            let RotateAnswer::Upgrade(Some(row)) = stage.rotate(upgrade(generation)).await else {
                panic!("upgrade {count} was refused");
            };
            assert_eq!(row.upgrades, count);
            assert_eq!(stage.loaded(id(1)).await, row);
        }
        let before = stage.loaded(id(1)).await;
        assert_eq!(stage.rotate(upgrade(generation)).await, RotateAnswer::Upgrade(None));
        assert_eq!(stage.loaded(id(1)).await, before);
        let (outcome, row) = stage.judge(renewal(id(1), generation)).await;
        assert_eq!(outcome, RotationOutcome::Won(row.rotation.issued));
        generation = row.rotation.issued;
    }
}

pub(crate) async fn a_socket_upgrade_changes_nothing_but_its_count(stage: Stage) {
    let mut row = stage.create(id(1), stage.row()).await;
    for (pause, upgrades) in [(GRACE - MILLI, 1), (MILLI, 2)] {
        stage.clock.advance(pause);
        row = signed(&id(1), Row { upgrades, ..row });
        let answer = stage.rotate(upgrade(row.rotation.issued)).await;
        assert_eq!(answer, RotateAnswer::Upgrade(Some(row.clone())));
        assert_eq!(stage.loaded(id(1)).await, row);
    }
    assert_eq!(stage.feed().await, []);
}

pub(crate) async fn a_socket_upgrade_with_another_token_is_refused(stage: Stage) {
    let before = renewed(&stage, GRACE - MILLI).await;
    for _in_and_after_the_grace in 0..2 {
        for (generation, same_client) in [(7, true), (7, false), (11, true)] {
            let request = RotateRequest { same_client, ..upgrade(generation) };
            assert_eq!(stage.rotate(request).await, RotateAnswer::Upgrade(None), "{generation}");
        }
        stage.clock.advance(MILLI);
    }
    assert_eq!(stage.loaded(id(1)).await, before);
    assert_eq!(stage.feed().await, []);
}

pub(crate) async fn a_socket_upgrade_with_a_used_up_token_revokes_the_session(stage: Stage) {
    renewed(&stage, MILLI).await;
    assert_eq!(stage.judge(upgrade(6)).await.0, RotationOutcome::Reuse);
    assert_eq!(stage.feed().await, [Revocation::Session(id(1))]);
    stage.assert_wiped(id(1)).await;
}

pub(crate) async fn a_row_that_is_not_as_signed_is_not_rotated(stage: Stage) {
    let before = renewed(&stage, GRACE).await;
    // 6 would be theft: not even that may be concluded from a row that somebody changed.
    for (generation, upgrade) in [(10, false), (10, true), (7, false), (6, false), (11, false)] {
        let request = RotateRequest { upgrade, keeper: &STRANGER, ..renewal(id(1), generation) };
        assert_eq!(stage.rotate(request).await, RotateAnswer::Tampered, "{generation}");
    }
    assert_eq!(stage.loaded(id(1)).await, before);
    assert_eq!(stage.feed().await, []);
}

pub(crate) async fn of_many_renewals_at_once_one_wins(stage: Stage) {
    let before = stage.create(id(1), stage.row()).await;
    stage.clock.advance(GRACE);
    let presented = before.rotation.issued;
    let mut tasks = JoinSet::new();
    for number in 0..200 {
        let store = Arc::clone(if number % 2 == 0 { &stage.store } else { &stage.other });
        tasks.spawn(async move { store.rotate(renewal(id(1), presented)).await.unwrap() });
    }
    let mut winners = Vec::new();
    for answer in tasks.join_all().await {
        let RotateAnswer::Judged { outcome, row, .. } = answer else { panic!("{answer:?}") };
        match outcome {
            RotationOutcome::Won(generation) => winners.push(generation),
            RotationOutcome::Young | RotationOutcome::Echo => {}
            outcome => panic!("{outcome:?}"),
        }
        assert_eq!(row.rotation.previous, presented, "a loser sees the row the winner wrote");
    }
    assert_eq!(winners, [stage.now().as_millis()]);
    let row = stage.loaded(id(1)).await;
    let rotation =
        Rotation { previous: presented, floor: presented, issued: winners[0], rotated_at: stage.now() };
    assert_eq!(row, after(&stage, &before, rotation));
    assert_eq!(stage.feed().await, []);
}
