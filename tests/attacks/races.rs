//! Several tabs of one browser renew at once (A04, A08).

use crate::{
    jar::{RENEWAL, SESSION},
    lab::{FRESH, Lab},
    on_every_store,
    tools::Pair,
};

on_every_store!(
    a04_two_tabs_renew_at_once,
    a04_fifty_requests_renew_at_once,
    a08_a_loser_s_answer_comes_last
);

async fn a04_two_tabs_renew_at_once(lab: Lab) {
    let mut browser = lab.signed_in("alice").await;
    for round in 0..4 {
        lab.pass(FRESH).await;
        let (first, second) = tokio::join!(browser.ask("GET", "/", ""), browser.ask("GET", "/", ""));
        let mut answers = [first, second];
        for answer in &answers {
            assert_eq!(answer.user().as_deref(), Some("alice"));
            assert!(answer.cookies.sets(SESSION).is_some());
        }
        let tokens = answers.iter().filter(|answer| answer.cookies.sets(RENEWAL).is_some()).count();
        assert_eq!(tokens, 1);
        // The loser comes first in one round and last in the next.
        answers.sort_by_key(|answer| answer.cookies.sets(RENEWAL).is_some() == (round % 2 == 0));
        for answer in &answers {
            browser.take(answer);
        }
        assert_eq!(browser.who().await.as_deref(), Some("alice"));
    }
    assert_eq!((lab.told("session_renewed"), lab.told("authn_token_reuse")), (4, 0));
}

async fn a04_fifty_requests_renew_at_once(lab: Lab) {
    let mut browser = lab.signed_in("alice").await;
    for _ in 0..2 {
        lab.pass(FRESH).await;
        let mut requests = tokio::task::JoinSet::new();
        for _ in 0..50 {
            requests.spawn(browser.ask("GET", "/", ""));
        }
        let answers = requests.join_all().await;
        for answer in &answers {
            assert_eq!(answer.user().as_deref(), Some("alice"));
            assert!(answer.cookies.sets(SESSION).is_some());
            browser.take(answer);
        }
        assert_eq!(answers.iter().filter(|answer| answer.cookies.sets(RENEWAL).is_some()).count(), 1);
    }
    lab.pass(FRESH).await;
    assert_eq!(browser.who().await.as_deref(), Some("alice"));
    assert_eq!(lab.told("authn_token_reuse"), 0);
}

/// Over two instances, each with connections and locks of its own: the file alone decides.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a04_two_hundred_requests_renew_at_two_instances() {
    let pair = Pair::start();
    let browser = pair.one.signed_in("alice").await;
    pair.pass(FRESH).await;
    let mut requests = tokio::task::JoinSet::new();
    for number in 0..200 {
        requests.spawn(browser.at(if number % 2 == 0 { &pair.one } else { &pair.two }).ask("GET", "/", ""));
    }
    let answers = requests.join_all().await;
    assert!(answers.iter().all(|answer| answer.user().as_deref() == Some("alice")));
    assert!(answers.iter().all(|answer| answer.cookies.sets(SESSION).is_some()));
    assert_eq!(answers.iter().filter(|answer| answer.cookies.sets(RENEWAL).is_some()).count(), 1);
    assert_eq!(pair.one.told("authn_token_reuse") + pair.two.told("authn_token_reuse"), 0);
}

/// Answers arrive in any order: the loser's holds no token, and neither clears nor overwrites the winner's.
async fn a08_a_loser_s_answer_comes_last(lab: Lab) {
    let mut browser = lab.signed_in("alice").await;
    for _ in 0..3 {
        lab.pass(FRESH).await;
        let (one, two) = tokio::join!(browser.ask("GET", "/", ""), browser.ask("GET", "/data/x", ""));
        let mut answers = [one, two];
        answers.sort_by_key(|answer| answer.cookies.sets(RENEWAL).is_none());
        let token = answers[0].cookies.sets(RENEWAL).expect("one won").to_owned();
        for answer in &answers {
            browser.take(answer);
            assert!(!answer.cookies.removes(SESSION) && !answer.cookies.removes(RENEWAL));
        }
        assert_eq!(browser.value(RENEWAL), token, "the winner's token stays");
        assert_eq!(browser.who().await.as_deref(), Some("alice"));
    }
    assert_eq!((lab.told("session_renewed"), lab.told("authn_token_reuse")), (3, 0));
    // A loser's answer that comes after the logout and the next login.
    lab.pass(FRESH).await;
    let (late, _) = tokio::join!(browser.ask("GET", "/", ""), browser.ask("GET", "/", ""));
    browser.visit("POST", "/logout", "").await;
    browser.visit("POST", "/login", "user=bob").await;
    browser.take(&late);
    // What a browser does with an answer from before is its own; the server must not take the old session for anybody.
    assert_ne!(browser.who().await.as_deref(), Some("alice"));
}
