//! A primary that is lost with what its replica had not heard (A76), and a cluster that has lost a node.

use std::time::Duration;

use crate::{
    lab::{Browser, FRESH, eventually},
    servers::{Cluster, Redis, is_there},
    stage::{assert_unavailable, now, turn, two_instances, until_nobody},
};

/// A primary, a replica, and a sentinel.
struct Replicated {
    primary: Redis,
    replica: Redis,
    sentinel: Redis,
}

impl Replicated {
    fn start() -> Option<Self> {
        if !is_there("redis-server") {
            return None;
        }
        let primary = Redis::start(&[]);
        let replica = Redis::start(&["--replicaof", "127.0.0.1", &primary.port.to_string()]);
        let sentinel = Redis::sentinel(primary.port);
        let is_linked = || replica.cli(&["info", "replication"]).contains("master_link_status:up");
        // The sentinel knows of the replica once it has asked the primary, which it does every ten seconds.
        let is_known = || sentinel.cli(&["sentinel", "replicas", "main"]).contains(&replica.port.to_string());
        let wait = || std::thread::sleep(Duration::from_millis(50));
        assert!(
            (0..400).any(|_| (is_linked() && is_known()) || {
                wait();
                false
            }),
            "they know each other"
        );
        Some(Self { primary, replica, sentinel })
    }

    fn url(&self) -> String {
        format!("redis+sentinel://127.0.0.1:{}/main", self.sentinel.port)
    }

    /// The primary dies, and the replica, which was away for a while, takes over with what it had heard before.
    fn fail_over(&self) {
        self.primary.kill();
        self.replica.restart();
        let is_primary = || self.replica.cli(&["role"]).starts_with("master");
        let wait = || std::thread::sleep(Duration::from_millis(50));
        assert!(
            (0..600).any(|_| is_primary() || {
                wait();
                false
            }),
            "the replica takes over"
        );
    }
}

async fn comes_back(browser: &mut Browser, user: &str) {
    let begun = now();
    loop {
        let answer = browser.visit("GET", "/", "").await;
        if answer.status == 200 {
            assert_eq!(answer.user().as_deref(), Some(user), "nobody is signed out by a failover");
            return;
        }
        assert_unavailable(&answer);
        assert!(begun.elapsed() < Duration::from_secs(20), "it does not come back");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a76_a_failover_that_loses_what_was_acknowledged() {
    let _turn = turn().await;
    let Some(servers) = Replicated::start() else { return };
    let lab = two_instances(&servers.url(), &["--verb-timeout", "2000"]);
    let (mut alice, mut bob) = (lab.signed_in("alice").await, lab.signed_in("bob").await);
    let (mut mallory, mut trent) = (lab.signed_in("mallory").await, lab.signed_in("trent").await);
    let (copy, everywhere) = (mallory.clone(), trent.clone());
    lab.pass(FRESH).await;
    for browser in [&mut alice, &mut bob, &mut mallory, &mut trent] {
        browser.who().await;
    }
    // Everybody's first token is used up by now, and the replica has heard of that. Of what follows it hears nothing.
    let heard = || servers.replica.cli(&["info", "replication"]);
    eventually(Duration::from_secs(5), || async { heard().contains("master_link_status:up") }).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    servers.replica.kill();
    let before = alice.value(crate::jar::RENEWAL);
    lab.pass(FRESH).await;
    for browser in [&mut alice, &mut bob, &mut mallory, &mut trent] {
        browser.who().await;
    }
    assert_ne!(alice.value(crate::jar::RENEWAL), before, "a renewal that the replica does not know of");
    let after = mallory.clone();
    assert_eq!(mallory.visit("POST", "/logout", "").await.status, 204);
    assert_eq!(trent.visit("POST", "/logout-everywhere", "").await.status, 204);
    until_nobody(&after).await;
    lab.pass(5).await;
    servers.fail_over();
    // Within seconds the revocations that were lost are written again.
    eventually(Duration::from_secs(20), || async { lab.told("revocations_restored") >= 1 }).await;
    lab.pass(FRESH).await;
    // Owners hold tokens that the store has never heard of: no alarm, they are in, and renew again.
    for _ in 0..3 {
        comes_back(&mut alice, "alice").await;
        comes_back(&mut bob, "bob").await;
        lab.pass(FRESH).await;
    }
    assert!(lab.told("store_rolled_back") >= 2, "the store had lost their renewals");
    assert_eq!(lab.told("authn_token_reuse"), 0, "and nobody is taken for a thief");
    // The sessions that the replica still had are dead.
    until_nobody(&copy.with_token_alone()).await;
    until_nobody(&everywhere.with_token_alone()).await;
    until_nobody(&after.with_token_alone()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a61_a_cluster_that_has_lost_a_node() {
    let _turn = turn().await;
    if !is_there("redis-server") {
        return;
    }
    let cluster = Cluster::start();
    let lab = two_instances(&cluster.url(), &[]);
    let mut users: Vec<_> = Vec::new();
    for number in 0..24 {
        let user = format!("user{number}");
        users.push((lab.signed_in(&user).await, user));
    }
    cluster.0[1].kill();
    for (browser, user) in &users {
        assert_eq!(
            browser.ask("GET", "/", "").await.user().as_deref(),
            Some(user.as_str()),
            "fresh cookies do not notice"
        );
    }
    lab.pass(FRESH).await;
    // Those on the nodes that live go on; the others are told to come again.
    let begun = now();
    loop {
        let mut renewed = 0;
        for (browser, user) in &mut users {
            let answer = browser.visit("GET", "/", "").await;
            if answer.status == 200 {
                assert_eq!(answer.user().as_deref(), Some(user.as_str()));
                renewed += 1;
            } else {
                assert_unavailable(&answer);
            }
        }
        if renewed >= 6 {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{renewed}");
    }
    cluster.0[1].restart();
    for (browser, user) in &mut users {
        comes_back(browser, user).await;
    }
    assert_eq!(lab.told("authn_token_reuse"), 0);
}
