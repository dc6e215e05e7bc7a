//! Ten thousand operations on one session from several connections at once, against a model of what may be seen.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use portcullis::{
    clock::{Clock as _, ManualClock, Timestamp},
    session::RotationOutcome,
    store::{CommitRequest, RotateAnswer, RotateRequest, Row, Store},
};

use crate::{
    keeper::edits,
    stage::{ABSOLUTE, GRACE, Stage, commit, id, renewal, tag, timeouts},
};

const WORKERS: u8 = 8;
const OPERATIONS: u32 = 10_000;

/// What all workers know.
#[derive(Default)]
struct Model {
    /// Every generation that was ever issued, what was presented for it, and when.
    issued: Mutex<BTreeMap<u64, (u64, Timestamp)>>,
    /// Time passes between two renewals, not within one: a token that is under way for longer than the grace, while its
    /// session is renewed twice, looks used up, which is what the rotation table says of it.
    time: tokio::sync::RwLock<()>,
    newest: AtomicU64,
    edits: AtomicU64,
    renewals: AtomicU64,
    echoes: AtomicU64,
    /// Set before the end is asked for: from then on it may have come.
    is_ending: AtomicBool,
    /// Set after it was answered: from then on it has.
    has_ended: AtomicBool,
}

/// A small generator of numbers that look random: the order of the operations is the machine's anyway.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

pub(crate) async fn ten_thousand_operations_at_once_break_no_rule(stage: Stage) {
    let lasting = Row { deadline: stage.now() + ABSOLUTE, ..stage.row() };
    let row = stage.create(id(1), lasting).await;
    let model = Arc::<Model>::default();
    model.newest.store(row.rotation.issued, Ordering::SeqCst);
    let handles = [Arc::clone(&stage.store), Arc::clone(&stage.other), stage.open().await];
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..WORKERS {
        let (store, model) = (Arc::clone(&handles[usize::from(worker) % handles.len()]), Arc::clone(&model));
        let clock = Arc::clone(&stage.clock);
        workers.spawn(async move {
            let mut dice = Dice(u64::from(worker) + 1);
            let mut written = 0_u32;
            for operation in 0..OPERATIONS / u32::from(WORKERS) {
                if worker == 0 && operation % 25 == 24 {
                    // A while later: the next renewal wins.
                    let _nobody_renews = model.time.write().await;
                    clock.advance(GRACE + Duration::from_millis(1));
                }
                match dice.roll(10) {
                    0..=4 => written = write(&*store, &model, worker, operation).await.unwrap_or(written),
                    5 => edit(&*store, &model).await,
                    6 => read(&*store, &model, worker, written).await,
                    _ => renew(&*store, &model, &clock, dice.roll(3) == 0).await,
                }
            }
            (worker, written)
        });
    }
    let written: Vec<_> = workers.join_all().await;

    // Nothing of what was answered is lost.
    let (row, fields) = stage.load(id(1)).await.unwrap();
    for (worker, value) in written {
        assert_eq!(fields.get(&tag(worker)), Some(&value.to_be_bytes().to_vec()), "a lost update");
    }
    let count = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
    assert_eq!(row.claims_version, count(&model.edits), "a lost or doubled edit");
    assert_eq!(edits(&row) as u64, count(&model.edits) + count(&model.renewals), "a lost or doubled edit");
    assert_eq!(row.rotation.issued, count(&model.newest));
    assert!(count(&model.renewals) > 10 && count(&model.echoes) > 10, "there was something to race for");

    // The end comes in the middle of everything, and nothing brings it back.
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..WORKERS {
        let (store, model) = (Arc::clone(&handles[usize::from(worker) % handles.len()]), Arc::clone(&model));
        let clock = Arc::clone(&stage.clock);
        workers.spawn(async move {
            let mut dice = Dice(u64::from(worker) + 100);
            for operation in 0..100 {
                if worker == 0 && operation == 50 {
                    model.is_ending.store(true, Ordering::SeqCst);
                    store.revoke(&id(1)).await.unwrap();
                    model.has_ended.store(true, Ordering::SeqCst);
                }
                match dice.roll(4) {
                    0 => drop(write(&*store, &model, worker, operation).await),
                    1 => edit(&*store, &model).await,
                    2 => read(&*store, &model, worker, 0).await,
                    _ => renew(&*store, &model, &clock, false).await,
                }
            }
        });
    }
    workers.join_all().await;
    assert!(stage.is_gone(id(1)).await);
    stage.assert_wiped(id(1)).await;
}

/// Asserts that an answer agrees with the end: gone only once it was asked for, and nothing else after it was answered.
fn assert_ending(model: &Model, had_ended: bool, is_gone: bool) {
    assert!(!had_ended || is_gone, "brought back");
    assert!(!is_gone || model.is_ending.load(Ordering::SeqCst), "gone without an end");
}

/// Writes a field of this worker's own; the value, if the session took it.
async fn write(store: &dyn Store, model: &Model, worker: u8, value: u32) -> Option<u32> {
    let had_ended = model.has_ended.load(Ordering::SeqCst);
    let fields = vec![(tag(worker), Some(value.to_be_bytes().to_vec())), (tag(99), Some(vec![worker]))];
    let row = store.commit(CommitRequest { fields, ..commit(id(1)) }).await.unwrap();
    assert_ending(model, had_ended, row.is_none());
    row.map(|_| value)
}

async fn edit(store: &dyn Store, model: &Model) {
    let had_ended = model.has_ended.load(Ordering::SeqCst);
    let row = store.commit(CommitRequest { edit: true, ..commit(id(1)) }).await.unwrap();
    assert_ending(model, had_ended, row.is_none());
    model.edits.fetch_add(u64::from(row.is_some()), Ordering::SeqCst);
}

/// A worker sees at least what it wrote.
async fn read(store: &dyn Store, model: &Model, worker: u8, written: u32) {
    let had_ended = model.has_ended.load(Ordering::SeqCst);
    let loaded = store.load(&id(1)).await.unwrap();
    assert_ending(model, had_ended, loaded.is_none());
    if let Some((row, fields)) = loaded {
        let value = fields.iter().find(|(found, _)| *found == tag(worker)).map(|(_, value)| value.clone());
        assert!(written == 0 || value == Some(written.to_be_bytes().to_vec()), "its own write is not there");
        assert!(row.rotation.previous <= row.rotation.floor && row.rotation.floor <= row.rotation.issued);
    }
}

/// Presents the newest generation, or, when that was issued just now, the one before, as the slower of two tabs would.
async fn renew(store: &dyn Store, model: &Model, clock: &ManualClock, presents_older: bool) {
    let _no_time_passes = model.time.read().await;
    let had_ended = model.has_ended.load(Ordering::SeqCst);
    let newest = model.newest.load(Ordering::SeqCst);
    let issued = model.issued.lock().unwrap().get(&newest).copied();
    let older = issued.filter(|(_, at)| presents_older && *at == clock.now()).map(|(older, _)| older);
    let generation = older.unwrap_or(newest);
    let request = RotateRequest { timeouts: timeouts().idle(ABSOLUTE), ..renewal(id(1), generation) };
    match store.rotate(request).await.unwrap() {
        RotateAnswer::Gone => assert_ending(model, had_ended, true),
        RotateAnswer::Judged { outcome, row, now } => {
            assert_ending(model, had_ended, false);
            match outcome {
                RotationOutcome::Won(next) | RotationOutcome::Again(next) => {
                    let before = model.issued.lock().unwrap().insert(next, (generation, now));
                    assert_eq!(before, None, "a generation was issued twice");
                    assert_eq!(row.rotation.issued, next);
                    model.newest.fetch_max(next, Ordering::SeqCst);
                    model.renewals.fetch_add(1, Ordering::SeqCst);
                    if let RotationOutcome::Won(_) = outcome {
                        assert_eq!((row.rotation.rotated_at, row.rotation.previous), (now, generation));
                    }
                }
                RotationOutcome::Young | RotationOutcome::Echo => {
                    assert!(now < row.rotation.rotated_at + GRACE, "the grace was stretched");
                    model.echoes.fetch_add(1, Ordering::SeqCst);
                }
                RotationOutcome::Reuse => panic!("a false alarm: {generation} of {newest}"),
                other => panic!("{other:?}"),
            }
        }
        other => panic!("{other:?}"),
    }
}
