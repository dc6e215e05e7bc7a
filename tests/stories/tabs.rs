//! Several tabs of one browser renew at once (A04, A08).

use crate::{
    jar::{RENEWAL, SESSION},
    lab::{FRESH, Lab},
};

crate::on_every_store!(two_tabs_renew_at_once, fifty_requests_renew_at_once);

async fn two_tabs_renew_at_once(lab: Lab) {
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

async fn fifty_requests_renew_at_once(lab: Lab) {
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
