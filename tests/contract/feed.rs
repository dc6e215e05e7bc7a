//! What is promised of `subscribe` and `ping`.

use std::{sync::Arc, time::Duration};

use portcullis::store::{CommitRequest, FeedPosition, Revocation};

use crate::{
    interrupted::{CUTS, cut},
    stage::{FEED_DELAY, MILLI, Stage, WINDOW, commit, id, subject, within},
};

pub(crate) async fn a_window_gives_everything_in_it_at_once(stage: Stage) {
    assert_eq!(stage.window(WINDOW).await.entries, []);
    stage.create(id(2), stage.row()).await;
    stage.store.revoke(&id(1)).await.unwrap();
    stage.clock.advance(MILLI);
    let since = stage.now();
    stage.store.commit(CommitRequest { edit: true, ..commit(id(2)) }).await.unwrap();
    stage.clock.advance(WINDOW);
    stage.other.revoke(&id(2)).await.unwrap();
    stage.store.revoke_subject(&subject(1)).await.unwrap();
    let expected = [
        (Revocation::Claims(id(2), 1), since),
        (Revocation::Session(id(2)), since + WINDOW),
        (Revocation::Subject(subject(1), 1), since + WINDOW),
    ];
    for store in [&stage.store, &stage.other] {
        let from = FeedPosition::Window(WINDOW);
        assert_eq!(within(FEED_DELAY, store.subscribe(from)).await.unwrap().entries, expected);
    }
}

pub(crate) async fn a_position_gives_only_what_comes_after_it(stage: Stage) {
    let mut position = stage.position().await;
    for number in 1..=3 {
        stage.other.revoke(&id(number)).await.unwrap();
        stage.other.revoke(&id(10 + number)).await.unwrap();
        let expected = [id(number), id(10 + number)].map(|id| (Revocation::Session(id), stage.now()));
        let mut entries = Vec::new();
        // Something is there, so something comes; not all of it need come at once.
        while entries.len() < expected.len() {
            let batch = within(FEED_DELAY, stage.store.subscribe(position)).await.unwrap();
            assert_ne!(batch.entries, []);
            entries.extend(batch.entries);
            position = batch.position;
        }
        assert!(entries.len() == 2 && expected.iter().all(|entry| entries.contains(entry)), "{entries:?}");
        // A position of one handle means the same to another.
        let waiting = stage.other.subscribe(position.clone());
        assert!(tokio::time::timeout(Duration::from_millis(20), waiting).await.is_err());
    }
}

pub(crate) async fn a_subscriber_waits_and_wakes_for_the_other_handle(stage: Stage) {
    stage.store.revoke(&id(1)).await.unwrap();
    for (number, revoker) in [(2, &stage.other), (3, &stage.store)] {
        let position = stage.position().await;
        let store = Arc::clone(&stage.store);
        let mut subscriber = tokio::spawn(async move { store.subscribe(position.clone()).await.unwrap() });
        // Long enough for a store that looks every 100 ms to look, and to find nothing.
        let early = tokio::time::timeout(Duration::from_millis(250), &mut subscriber).await;
        assert!(early.is_err(), "there was nothing to tell: {early:?}");
        revoker.revoke(&id(number)).await.unwrap();
        let batch = within(FEED_DELAY, subscriber).await.unwrap();
        assert_eq!(batch.entries, [(Revocation::Session(id(number)), stage.now())]);
    }
}

/// A number that came again after a purge would hide a revocation from those who have it already.
pub(crate) async fn positions_stay_true_when_entries_are_purged(stage: Stage) {
    stage.store.revoke(&id(1)).await.unwrap();
    let position = stage.position().await;
    stage.clock.advance(MILLI);
    stage.store.purge(Duration::ZERO).await.unwrap();
    assert_eq!(stage.feed().await, []);
    stage.store.revoke(&id(2)).await.unwrap();
    let batch = within(FEED_DELAY, stage.other.subscribe(position.clone())).await.unwrap();
    assert_eq!(batch.entries, [(Revocation::Session(id(2)), stage.now())]);
}

pub(crate) async fn a_dropped_subscription_loses_nothing(stage: Stage) {
    let mut position = stage.position().await;
    for number in 0..CUTS - 1 {
        // One is dropped while it waits, one while there is something to be told.
        cut(stage.store.subscribe(position.clone()), number).await;
        let id = id(number);
        let (revoked, _) =
            tokio::join!(stage.other.revoke(&id), cut(stage.store.subscribe(position.clone()), number));
        revoked.unwrap();
        let batch = within(FEED_DELAY, stage.store.subscribe(position.clone())).await.unwrap();
        assert_eq!(batch.entries, [(Revocation::Session(id), stage.now())]);
        position = batch.position;
    }
}

pub(crate) async fn the_store_tells_the_instant_of_its_clock(stage: Stage) {
    for _ in 0..2 {
        assert_eq!(stage.store.ping().await.unwrap(), stage.now());
        stage.clock.advance(MILLI);
    }
}
