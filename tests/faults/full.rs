//! A Redis that is full, and a feed whose entries are gone.

use std::{sync::Arc, time::Duration};

use portcullis::{
    RedisOptions,
    clock::{ManualClock, Timestamp},
    id::StoredId,
    store::{FeedPosition, Store as _},
};

use crate::{
    lab::FRESH,
    servers::{Redis, is_there},
    stage::{assert_unavailable, turn, two_instances, until_nobody},
};

/// With `noeviction` a full Redis refuses what needs more memory: nobody signs in, but nobody is signed out, who is there renews,
/// and what is revoked is heard of all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_redis_keeps_the_revocations_coming() {
    let _turn = turn().await;
    if !is_there("redis-server") {
        return;
    }
    let redis = Redis::start(&[]);
    let lab = two_instances(&redis.url(), &[]);
    let (mut alice, bob) = (lab.signed_in("alice").await, lab.signed_in("bob").await);
    let mut carol = lab.signed_in("carol").await;
    let (copy, everywhere) = (alice.clone(), carol.clone());
    redis.cli(&["config", "set", "maxmemory", "100kb"]);
    assert_unavailable(&lab.browser().ask("POST", "/login", "user=dave").await);
    assert_eq!(alice.visit("POST", "/logout", "").await.status, 204);
    assert_eq!(carol.visit("POST", "/logout-everywhere", "").await.status, 204);
    until_nobody(&copy).await;
    until_nobody(&everywhere).await;
    // A whole window too, as an instance reads it that starts or comes back.
    lab.settle().await;
    assert_eq!(bob.ask("GET", "/", "").await.user().as_deref(), Some("bob"));
    assert_eq!(
        lab.told("store_unavailable"),
        lab.log().matches("verb=\"create\"").count(),
        "the feed is heard"
    );
    lab.pass(FRESH).await;
    let mut bob = bob;
    assert_eq!(bob.who().await.as_deref(), Some("bob"), "renewed");
    assert_unavailable(&bob.visit("POST", "/data/colour", "green").await);
    redis.cli(&["config", "set", "maxmemory", "0"]);
    assert_eq!(lab.signed_in("dave").await.who().await.as_deref(), Some("dave"));
}

/// What was heard of and then purged is not looked for again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purged_feed_is_waited_for_in_peace() {
    let _turn = turn().await;
    if !is_there("redis-server") {
        return;
    }
    let redis = Redis::start(&[]);
    let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)));
    let store = RedisOptions::new(redis.url()).clock(Arc::clone(&clock) as _).open().await.unwrap();
    let window = Duration::from_secs(600);
    for number in 0..64 {
        store.revoke(&StoredId::from_bytes([number; 32])).await.unwrap();
    }
    clock.advance(window * 2);
    store.purge(window).await.unwrap();
    let batch = store.subscribe(FeedPosition::Window(window)).await.unwrap();
    assert_eq!(batch.entries, []);
    let looks = || {
        let said = redis.cli(&["info", "commandstats"]);
        let line =
            said.lines().find(|line| line.starts_with("cmdstat_xrange:")).unwrap_or_default().to_owned();
        line.split(['=', ',']).nth(1).and_then(|count| count.parse::<u64>().ok()).unwrap_or(0)
    };
    let before = looks();
    let waiting = store.subscribe(batch.position);
    assert!(tokio::time::timeout(Duration::from_millis(1500), waiting).await.is_err());
    // One look at what was heard of, and one at everything a second later.
    assert!(looks() - before <= 3 * 64, "{} looks", looks() - before);
}
