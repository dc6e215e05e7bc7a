//! Races that want many tries: A09 and A10, a thousand times each, over two instances. (A64 is in `outage`.)

use std::time::Duration;

use crate::{
    lab::{Browser, FRESH},
    outage::on_real_servers,
    stage::{Server, two_instances},
};

const TIMES: usize = 1000;

/// So many users at once.
const AT_ONCE: usize = 50;

on_real_servers!(
    a09_a_thousand_logouts_beside_slow_requests,
    a10_a_thousand_sign_outs_everywhere_beside_renewals
);

async fn a09_a_thousand_logouts_beside_slow_requests(server: Server) {
    let lab = two_instances(&server.url(), &["--verb-timeout", "10000"]);
    for round in 0..TIMES / AT_ONCE {
        let mut users = tokio::task::JoinSet::new();
        for number in 0..AT_ONCE {
            let lab = lab.clone();
            users.spawn(async move {
                let mut browser = lab.signed_in(&format!("user{number}")).await;
                let copy = browser.clone();
                let slow = tokio::spawn(browser.ask("POST", "/slow/colour?ms=20", "green"));
                let pause = (round * 7 + number * 13) % 30;
                tokio::time::sleep(Duration::from_millis(u64::try_from(pause).unwrap_or(0))).await;
                assert_eq!(browser.visit("POST", "/logout", "").await.status, 204);
                let slow = slow.await.unwrap();
                // On a busy machine it may have begun after the logout; then it is a stranger's, and so is what it sets.
                let mut held = copy.clone();
                held.take(&slow);
                [copy, held]
            });
        }
        let copies = users.join_all().await.into_iter().flatten().collect();
        lab.settle().await;
        assert_nobody(copies).await;
    }
}

async fn a10_a_thousand_sign_outs_everywhere_beside_renewals(server: Server) {
    let lab = two_instances(&server.url(), &["--verb-timeout", "10000"]);
    let at_once = AT_ONCE / 2;
    for _ in 0..TIMES / at_once {
        let mut stale = Vec::new();
        for number in 0..at_once {
            let user = format!("user{number}");
            stale.push((lab.signed_in(&user).await, lab.signed_in(&user).await, user));
        }
        lab.pass(FRESH).await;
        let mut users = tokio::task::JoinSet::new();
        for (one, two, user) in stale {
            let lab = lab.clone();
            users.spawn(async move {
                let mut caller = lab.signed_in(&user).await;
                let renews = [one.ask("GET", "/", ""), two.ask("POST", "/reauthenticate", "")];
                let renews: Vec<_> = renews.into_iter().map(tokio::spawn).collect();
                assert_eq!(caller.visit("POST", "/logout-everywhere", "").await.status, 204);
                let mut held = vec![one.clone(), two.clone(), caller];
                for (renewed, mut browser) in renews.into_iter().zip([one, two]) {
                    browser.take(&renewed.await.unwrap());
                    held.push(browser);
                }
                // Who signs in afterwards stays.
                let new = lab.signed_in(&user).await;
                (held, new, user)
            });
        }
        let users = users.join_all().await;
        lab.settle().await;
        for (held, new, user) in users {
            assert_nobody(held).await;
            assert_eq!(new.ask("GET", "/", "").await.user(), Some(user));
        }
    }
}

/// Nobody is let in with any of these, nor with their tokens alone; which goes to which instance is chance.
async fn assert_nobody(browsers: Vec<Browser>) {
    let mut requests = tokio::task::JoinSet::new();
    for browser in browsers {
        requests.spawn(browser.ask("GET", "/", ""));
        requests.spawn(browser.with_token_alone().ask("GET", "/", ""));
    }
    for answer in requests.join_all().await {
        assert_eq!(answer.user(), None, "{answer:?}");
    }
}
