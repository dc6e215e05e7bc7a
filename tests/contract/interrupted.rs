//! A verb whose caller goes away in the middle (a closed connection, a timeout) is done or not done.

use portcullis::{
    session::Rotation,
    store::{CommitRequest, Revocation, RotateRequest, Row},
};

use crate::{
    keeper::edits,
    stage::{ABSOLUTE, GRACE, Stage, commit, id, renewal, tag, timeouts},
};

/// How many times a verb is cut short, each time a little later.
pub(crate) const CUTS: u32 = 120;

/// The session that other work goes on with.
const BYSTANDER: u32 = 1_000_000;

/// Polls `verb` until it is done or the runtime has gone round so often that the `number`th cut is due, and drops it.
///
/// The steps grow, so that the first cuts come between the statements of a verb and later ones after it. The last is
/// not cut, so that on the slowest machine something is done.
pub(crate) async fn cut<T>(verb: impl Future<Output = T>, number: u32) -> Option<T> {
    if number + 1 == CUTS {
        return Some(verb.await);
    }
    let patience = async {
        for _ in 0..number * number / 4 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        answer = verb => Some(answer),
        () = patience => None,
    }
}

/// The row of a session that outlives all cuts, also those after which nothing was renewed.
fn lasting(stage: &Stage) -> Row {
    Row { deadline: stage.now() + ABSOLUTE, ..stage.row() }
}

/// Works with both handles: neither was left with a lock or inside a step. What was cut short has come to rest then.
async fn assert_usable(stage: &Stage) {
    for store in [&stage.store, &stage.other] {
        let fields = vec![(tag(9), Some(b"work".to_vec()))];
        store.commit(CommitRequest { fields, ..commit(id(BYSTANDER)) }).await.unwrap().unwrap();
    }
}

pub(crate) async fn a_commit_cut_short_is_done_or_not_done(stage: Stage) {
    stage.create(id(BYSTANDER), lasting(&stage)).await;
    stage.create(id(1), stage.row()).await;
    let mut version = 0;
    for number in 0..CUTS {
        let fields = [1, 2].map(|field| (tag(field), Some(number.to_be_bytes().to_vec())));
        let request = CommitRequest { fields: fields.into(), edit: true, ..commit(id(1)) };
        let done = cut(stage.store.commit(request), number).await;
        assert_usable(&stage).await;
        let told = |row: &Row| -> Vec<_> {
            (1..=row.claims_version).map(|version| Revocation::Claims(id(1), version)).collect()
        };
        let look = async |stage: &Stage| {
            let (row, fields) = stage.load(id(1)).await.unwrap();
            (stage.feed().await == told(&row)).then_some((row, fields))
        };
        let (row, fields) = stage.at_rest(look).await.expect("what is written is told, and nothing else");
        assert_eq!(fields.get(&tag(1)), fields.get(&tag(2)), "cut {number}");
        assert_eq!(edits(&row) as u64, row.claims_version, "cut {number}");
        let written = fields.get(&tag(1)).is_some_and(|value| *value == number.to_be_bytes());
        assert!(written || done.is_none(), "cut {number}: what was answered is written");
        assert!(row.claims_version > version || !written, "cut {number}: each write counts");
        version = row.claims_version;
    }
    assert_ne!(version, 0);
}

pub(crate) async fn a_rotation_cut_short_is_done_or_not_done(stage: Stage) {
    stage.create(id(BYSTANDER), lasting(&stage)).await;
    let mut before = stage.create(id(1), lasting(&stage)).await;
    let mut renewals = 0;
    for number in 0..CUTS {
        stage.clock.advance(GRACE);
        let presented = before.rotation.issued;
        let request = RotateRequest { timeouts: timeouts().idle(ABSOLUTE), ..renewal(id(1), presented) };
        let done = cut(stage.store.rotate(request), number).await;
        assert_usable(&stage).await;
        stage.settle(id(1)).await;
        let row = stage.loaded(id(1)).await;
        if row == before {
            assert!(done.is_none(), "cut {number}: what was answered is written");
            continue;
        }
        renewals += 1;
        let now = stage.now();
        let issued = now.as_millis();
        assert_eq!(row.rotation, Rotation { previous: presented, floor: presented, issued, rotated_at: now });
        assert_eq!((row.renewed_at, edits(&row)), (now, renewals), "cut {number}");
        before = row;
    }
    assert_ne!(renewals, 0);
}

pub(crate) async fn a_revocation_cut_short_is_done_or_not_done(stage: Stage) {
    stage.create(id(BYSTANDER), lasting(&stage)).await;
    let mut ended = Vec::new();
    for number in 0..CUTS {
        let id = id(number);
        let row = stage.create_with(id, tag(1), b"cart").await;
        let done = cut(stage.store.revoke(&id), number).await;
        assert_usable(&stage).await;
        let look = async |stage: &Stage| {
            let loaded = stage.load(id).await;
            let is_told = stage.feed().await.contains(&Revocation::Session(id));
            (loaded.is_none() == is_told).then_some(loaded)
        };
        match stage.at_rest(look).await.expect("what is ended is told, and nothing else") {
            None => ended.push(id),
            whole => {
                assert!(done.is_none(), "cut {number}: what was answered is written");
                assert_eq!(whole, Some((row, [(tag(1), b"cart".to_vec())].into())), "cut {number}");
            }
        }
    }
    assert_ne!(ended, []);
    for id in ended {
        assert!(stage.is_gone(id).await, "and it stays ended");
    }
}
