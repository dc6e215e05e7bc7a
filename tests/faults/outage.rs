//! A store that is down, hangs, is slow or cut off (A61, A62), clients that hang up (A64), instances that stop (A63).

use std::{io::Write as _, net::TcpStream, time::Duration};

use crate::{
    jar::{RENEWAL, SESSION},
    lab::{FRESH, Flags, GRACE, Lab},
    proxy::Fault,
    servers::signal_to,
    stage::{
        Server, assert_outage, assert_unavailable, fresh_and_stale, now, recovery, two_instances,
        until_nobody,
    },
};

/// Makes two tests of each story: over a Redis and over a PostgreSQL of its own.
macro_rules! on_real_servers {
    ($($story:ident),* $(,)?) => {
        mod on_redis {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                let _turn = crate::stage::turn().await;
                let Some(server) = crate::stage::Server::redis() else { return };
                super::$story(server).await;
            })*
        }
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                let _turn = crate::stage::turn().await;
                let Some(server) = crate::stage::Server::postgres() else { return };
                super::$story(server).await;
            })*
        }
    };
}

pub(crate) use on_real_servers;

on_real_servers!(
    a61_a_store_that_is_killed,
    a61_a_store_that_hangs,
    a61_a_store_that_is_cut_off,
    a61_a_slow_store,
    a61_the_grace_of_an_outage,
    a61_a_journal_survives_the_instance,
    a62_a_write_whose_answer_is_lost,
    a63_an_instance_stops_in_the_middle_of_renewals,
    a64_a_thousand_hang_ups,
);

async fn a61_a_store_that_is_killed(server: Server) {
    let lab = two_instances(&server.url(), &[]);
    let (alice, mut bob) = fresh_and_stale(&lab).await;
    let (mut leaving, mut leaving_everywhere) = (lab.signed_in("carol").await, lab.signed_in("dave").await);
    let (carol, dave) = (leaving.clone(), leaving_everywhere.clone());
    server.kill();
    assert_outage(&lab, &alice, &bob).await;
    // What is revoked meanwhile is not confirmed, and not forgotten.
    assert_unavailable(&leaving.visit("POST", "/logout", "").await);
    assert_unavailable(&leaving_everywhere.visit("POST", "/logout-everywhere", "").await);
    assert_unavailable(&lab.browser().ask("POST", "/login", "user=erin").await);
    server.restart();
    let took = recovery(&mut bob).await;
    println!("MEASURED renewals work again {} ms after the store answers", took.as_millis());
    assert!(took < Duration::from_secs(5), "{took:?}");
    until_nobody(&carol).await;
    until_nobody(&dave).await;
    until_nobody(&carol.with_token_alone()).await;
    assert_eq!(lab.signed_in("dave").await.who().await.as_deref(), Some("dave"));
    assert_eq!((lab.told("authn_token_reuse"), lab.told("record_tampered")), (0, 0));
    assert!(lab.told("revocation_postponed") >= 2 && lab.told("revocations_delivered") >= 1);
}

async fn a61_a_store_that_hangs(server: Server) {
    let lab = two_instances(&server.url(), &[]);
    let (alice, mut bob) = fresh_and_stale(&lab).await;
    server.signal("STOP");
    assert_outage(&lab, &alice, &bob).await;
    // Many at once do not wait one after the other: the breaker lets one try at a time.
    let asked = now();
    let mut requests = tokio::task::JoinSet::new();
    for _ in 0..60 {
        requests.spawn(bob.ask("GET", "/", ""));
    }
    for answer in requests.join_all().await {
        assert_unavailable(&answer);
    }
    assert!(asked.elapsed() < Duration::from_secs(4), "{:?}", asked.elapsed());
    server.signal("CONT");
    assert!(recovery(&mut bob).await < Duration::from_secs(5));
    assert_eq!(lab.told("authn_token_reuse"), 0);
}

async fn a61_a_store_that_is_cut_off(server: Server) {
    let (proxy, url) = server.proxied();
    let lab = two_instances(&url, &[]);
    for fault in [Fault::BlackHole, Fault::Reset] {
        let (alice, mut bob) = fresh_and_stale(&lab).await;
        proxy.set(fault);
        assert_outage(&lab, &alice, &bob).await;
        proxy.set(Fault::None);
        assert!(recovery(&mut bob).await < Duration::from_secs(10));
    }
    assert_eq!(lab.told("authn_token_reuse"), 0);
}

async fn a61_a_slow_store(server: Server) {
    let (proxy, url) = server.proxied();
    let lab = two_instances(&url, &[]);
    let (_, mut bob) = fresh_and_stale(&lab).await;
    // Slow, but within the limit: everything works.
    proxy.set(Fault::Delay(Duration::from_millis(20)));
    assert!(recovery(&mut bob).await < Duration::from_secs(5));
    lab.pass(FRESH).await;
    let fresh = lab.signed_in("alice").await;
    // Slower than the limit: as good as down.
    proxy.set(Fault::Delay(Duration::from_millis(600)));
    assert_outage(&lab, &fresh, &bob).await;
    proxy.set(Fault::None);
    assert!(recovery(&mut bob).await < Duration::from_secs(10));
    assert_eq!(lab.told("authn_token_reuse"), 0);
}

async fn a61_the_grace_of_an_outage(server: Server) {
    let lab = two_instances(&server.url(), &["--outage", "grace=120"]);
    let (alice, bob) = fresh_and_stale(&lab).await;
    let mut mallory = lab.signed_in("mallory").await;
    let revoked = mallory.clone();
    mallory.visit("POST", "/logout", "").await;
    server.kill();
    let admitted = bob.ask("GET", "/", "").await;
    assert_eq!(admitted.user().as_deref(), Some("bob"));
    assert!(admitted.cookies.is_empty(), "no new cookie");
    assert_eq!(bob.ask("GET", "/recent", "").await.status, 403, "no recent authentication");
    assert_unavailable(&bob.ask("POST", "/data/colour", "green").await);
    assert_unavailable(&bob.with_token_alone().ask("GET", "/", "").await);
    assert_eq!(revoked.ask("GET", "/", "").await.user(), None);
    assert!(lab.told("admitted_without_store") >= 1);
    lab.pass(119).await;
    assert_eq!(bob.ask("GET", "/", "").await.user().as_deref(), Some("bob"));
    lab.pass(1).await;
    assert_unavailable(&bob.ask("GET", "/", "").await);
    // What was revoked does not come back, however long the outage: not by age either.
    assert_eq!(alice.ask("GET", "/", "").await.user().as_deref(), Some("alice"));
    lab.pass(FRESH - 120).await;
    assert_eq!(alice.ask("GET", "/", "").await.user().as_deref(), Some("alice"), "within its own grace");
    assert_eq!(revoked.ask("GET", "/", "").await.user(), None);
}

/// An instance that has a revocation to deliver dies; its next life delivers it.
async fn a61_a_journal_survives_the_instance(server: Server) {
    let scratch = crate::scratch::Scratch::new();
    let journal = format!("journal={}", scratch.file("journal").display());
    let flags = Flags { keys: Some(Lab::new_keys()), store: server.url(), ..Flags::memory() };
    let flags = flags.with(&["--verb-timeout", "250", "--clock", "manual@1800000000"]);
    let with_journal = flags.clone().with(&["--outage", &journal]);
    let (first, second) = (Lab::start(&with_journal), Lab::start(&flags));
    let mut alice = first.signed_in("alice").await;
    let copy = alice.at(&second);
    server.kill();
    assert_unavailable(&alice.visit("POST", "/logout", "").await);
    first.stop();
    server.restart();
    assert_eq!(copy.clone().who().await.as_deref(), Some("alice"), "nobody has told the store");
    let first = Lab::start(&with_journal);
    assert_eq!(copy.at(&first).ask("GET", "/", "").await.user(), None);
    until_nobody(&copy).await;
    assert_eq!(std::fs::read_to_string(scratch.file("journal")).unwrap(), "");
}

async fn a62_a_write_whose_answer_is_lost(server: Server) {
    let (proxy, url) = server.proxied();
    let lab = two_instances(&url, &[]);
    let (_, mut bob) = fresh_and_stale(&lab).await;
    let mut carol = lab.signed_in("carol").await;
    let copy = carol.clone();
    // The store does what it is told, and its answer never comes.
    proxy.set(Fault::MuteServer);
    assert_unavailable(&bob.visit("GET", "/", "").await);
    assert_unavailable(&carol.visit("POST", "/logout", "").await);
    let login = lab.browser().ask("POST", "/login", "user=erin").await;
    assert_unavailable(&login);
    proxy.set(Fault::None);
    recovery(&mut bob).await;
    until_nobody(&copy).await;
    // His token may have been used up by the renewal whose answer was lost: he is forgiven, in the grace and after.
    for seconds in [GRACE, FRESH, FRESH] {
        lab.pass(seconds).await;
        assert_eq!(bob.who().await.as_deref(), Some("bob"));
    }
    assert_eq!(lab.told("authn_token_reuse"), 0);
}

/// No lock is held for a request: an instance that stops in the middle holds nobody up, and what it does when it goes on
/// comes too late.
async fn a63_an_instance_stops_in_the_middle_of_renewals(server: Server) {
    let flags = Flags { keys: Some(Lab::new_keys()), store: server.url(), ..Flags::memory() };
    let flags = flags.with(&["--verb-timeout", "250", "--clock", "manual@1800000000"]);
    let (one, two) = (Lab::start(&flags), Lab::start(&flags));
    let mut alice = one.signed_in("alice").await;
    for round in 0..5 {
        for lab in [&one, &two] {
            lab.pass(FRESH).await;
        }
        let mut late = tokio::task::JoinSet::new();
        for _ in 0..20 {
            late.spawn(alice.ask("GET", "/", ""));
        }
        tokio::time::sleep(Duration::from_millis(round)).await;
        signal_to(one.process(0), "STOP");
        let mut there = alice.at(&two);
        let asked = now();
        let answer = there.visit("GET", "/", "").await;
        assert_eq!(answer.user().as_deref(), Some("alice"), "{answer:?}");
        assert!(asked.elapsed() < Duration::from_secs(2), "held up for {:?}", asked.elapsed());
        signal_to(one.process(0), "CONT");
        let late = late.join_all().await;
        let tokens =
            late.iter().chain([&answer]).filter(|answer| answer.cookies.sets(RENEWAL).is_some()).count();
        assert!(tokens <= 1, "two successors of one token");
        alice = there.at(&one);
        for answer in &late {
            alice.take(answer);
        }
    }
    assert_eq!((one.told("authn_token_reuse"), two.told("authn_token_reuse")), (0, 0));
}

/// Clients that close their socket at any point of a request, a thousand times: the session is neither lost nor cleared.
async fn a64_a_thousand_hang_ups(server: Server) {
    let lab = two_instances(&server.url(), &["--verb-timeout", "5000"]);
    let mut alice = lab.signed_in("alice").await;
    let requests = [
        "GET / HTTP/1.1",
        "POST /data/colour HTTP/1.1",
        "GET /data/colour HTTP/1.1",
        "GET /sessions HTTP/1.1",
    ];
    let mut pause = 0_u64;
    for round in 0..40 {
        lab.pass(FRESH).await;
        let cookies = alice.jar.field(lab.second()).unwrap();
        let mut hung_up = Vec::new();
        for number in 0..25_usize {
            let line = requests[(round + number) % requests.len()];
            let agent = alice.user_agent.unwrap();
            let head = format!(
                "{line}\r\nHost: app.site.test\r\nOrigin: https://app.site.test\r\nUser-Agent: {agent}\r\nCookie: {cookies}\r\nContent-Length: 5\r\n\r\ngreen"
            );
            let mut stream = TcpStream::connect(lab.address()).unwrap();
            // Some are cut off in the middle of the request, most while they wait for the answer.
            let length = if number % 5 == 0 { head.len() * (number + 1) / 30 } else { head.len() };
            let _ = stream.write_all(&head.as_bytes()[..length]);
            pause = (pause * 7 + 13) % 4000;
            tokio::time::sleep(Duration::from_micros(pause)).await;
            if number % 2 == 0 {
                drop(stream);
            } else {
                hung_up.push(stream);
            }
        }
        drop(hung_up);
        let answer = alice.visit("GET", "/", "").await;
        assert_eq!(answer.user().as_deref(), Some("alice"), "round {round}");
        assert!(!answer.cookies.removes(SESSION) && !answer.cookies.removes(RENEWAL));
    }
    assert_eq!(lab.told("authn_token_reuse"), 0);
}
