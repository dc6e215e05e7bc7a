//! Beginnings and ends: fixation, adopted ids, logouts beside requests in flight, failures after a renewal.

use std::time::Duration;

use crate::{
    jar::{RENEWAL, SESSION},
    lab::{FRESH, Flags, GRACE, IDLE, Lab},
    on_every_store,
    tools::{Pair, assert_nobody, user_of},
};

on_every_store!(
    a09_a_slow_request_ends_after_the_logout,
    a10_everywhere_beside_renewals_and_new_authentications,
    a13_a_failure_after_a_renewal,
    a14_a_prefetch,
    a16_an_id_from_before_the_login,
    a17_an_id_of_the_attacker_s_choice,
    a60_the_back_button_after_a_logout,
    a74_exemptions_by_free_text,
);

async fn a09_a_slow_request_ends_after_the_logout(lab: Lab) {
    for stale in [false, true] {
        let mut browser = lab.signed_in("alice").await;
        if stale {
            lab.pass(FRESH).await;
        }
        let copy = browser.clone();
        let slow = tokio::spawn(browser.ask("POST", "/slow/colour?ms=1200", "green"));
        tokio::time::sleep(Duration::from_millis(200)).await;
        let logout = browser.visit("POST", "/logout", "").await;
        assert_eq!(logout.status, 204);
        let slow = slow.await.unwrap();
        assert!(slow.cookies.is_empty(), "the slow answer sets nothing: {:?}", slow.cookies);
        browser.take(&slow);
        assert_nobody(&browser, "the browser").await;
        assert_nobody(&copy, "the old cookies").await;
        assert_nobody(&copy.with_token_alone(), "the old token").await;
    }
}

async fn a10_everywhere_beside_renewals_and_new_authentications(lab: Lab) {
    let mut browsers = Vec::new();
    for _ in 0..25 {
        browsers.push(lab.signed_in("alice").await);
    }
    lab.pass(FRESH).await;
    let mut caller = lab.signed_in("alice").await;
    let mut requests = tokio::task::JoinSet::new();
    for (number, browser) in browsers.iter().enumerate() {
        let (browser, mut kept) = (browser.clone(), browser.clone());
        requests.spawn(async move {
            let answer = if number % 2 == 0 {
                browser.ask("GET", "/", "").await
            } else {
                browser.ask("POST", "/reauthenticate", "").await
            };
            kept.take(&answer);
            kept
        });
    }
    assert_eq!(caller.visit("POST", "/logout-everywhere", "").await.status, 204);
    let after = requests.join_all().await;
    for browser in browsers.iter().chain(&after).chain([&caller]) {
        assert_eq!(user_of(browser).await, None, "every session from before is gone");
    }
    assert_eq!(user_of(&lab.signed_in("alice").await).await.as_deref(), Some("alice"), "a new one is not");
}

async fn a13_a_failure_after_a_renewal(lab: Lab) {
    let mut browser = lab.signed_in("alice").await;
    for code in [500, 502, 503, 404, 302] {
        lab.pass(FRESH).await;
        let answer = browser.visit("GET", &format!("/status/{code}"), "").await;
        assert_eq!(answer.status, code);
        assert!(answer.cookies.sets(RENEWAL).is_some(), "{code}: the new token is on the answer");
        lab.pass(GRACE).await;
        assert_eq!(browser.who().await.as_deref(), Some("alice"), "after {code}");
    }
    assert_eq!(lab.told("authn_token_reuse") + lab.told("renewal_answer_lost"), 0);
}

async fn a14_a_prefetch(lab: Lab) {
    let mut browser = lab.signed_in("alice").await;
    for purpose in ["prefetch", "prefetch;prerender", "prefetch;anonymous-client-ip"] {
        let prefetching = browser.with_field("sec-purpose", purpose);
        assert_eq!(user_of(&prefetching).await.as_deref(), Some("alice"), "fresh: a request like any other");
        lab.pass(FRESH).await;
        let prefetching = browser.with_field("sec-purpose", purpose);
        let answer = prefetching.ask("GET", "/", "").await;
        assert_eq!(answer.status, 503, "stale: browsers ask again when it is meant");
        assert!(answer.cookies.is_empty());
        let renewed = browser.visit("GET", "/", "").await;
        assert!(renewed.cookies.sets(RENEWAL).is_some(), "the prefetch used nothing up");
    }
}

async fn a16_an_id_from_before_the_login(lab: Lab) {
    let mut attacker = lab.browser();
    assert_eq!(attacker.visit("POST", "/data/colour", "green").await.status, 204);
    let planted = attacker.clone();
    // The victim is made to use the attacker's cookies, and signs in with them.
    let mut victim = planted.clone();
    victim.visit("POST", "/login", "user=alice").await;
    assert_eq!(victim.who().await.as_deref(), Some("alice"));
    assert_ne!(victim.value(SESSION), planted.value(SESSION));
    assert_nobody(&planted, "the attacker, with the cookies he planted").await;
    assert_eq!(planted.ask("GET", "/data/colour", "").await.status, 404, "its session is gone");
    assert_eq!(victim.ask("GET", "/data/colour", "").await.status, 404, "what he planted is dropped");
    // Over the session of another user: Alice's browser, then Mallory signs in, and Alice's cookie is nobody's.
    let alice = victim.clone();
    victim.visit("POST", "/login", "user=mallory").await;
    assert_nobody(&alice, "the session that was signed over").await;
    assert_eq!(victim.who().await.as_deref(), Some("mallory"));
}

async fn a17_an_id_of_the_attacker_s_choice(lab: Lab) {
    let honest = lab.signed_in("bob").await;
    let length = honest.value(SESSION).len();
    for chosen in ["A".repeat(length), "0123456789abcdef".repeat(4), "AAAAAAAAAAAAAAAAAAAAAA".into()] {
        let mut browser = lab.browser().holding(Some(&chosen), Some(&chosen));
        browser.visit("POST", "/data/colour", "green").await;
        let anonymous = browser.value(SESSION);
        assert_ne!(anonymous, chosen, "an anonymous session has an id of its own");
        let mut browser = lab.browser().holding(Some(&chosen), Some(&chosen));
        browser.visit("POST", "/login", "user=alice").await;
        assert_ne!(browser.value(SESSION), chosen);
        assert_nobody(&lab.browser().holding(Some(&chosen), Some(&chosen)), "the chosen id").await;
        assert_eq!(browser.who().await.as_deref(), Some("alice"));
    }
}

async fn a60_the_back_button_after_a_logout(lab: Lab) {
    let mut browser = lab.signed_in("alice").await;
    let page = browser.visit("GET", "/", "").await;
    let caching = page.headers["cache-control"].to_str().unwrap();
    assert!(caching.contains("no-store"), "only that makes a browser ask again: {caching}");
    let before = browser.clone();
    let logout = browser.visit("POST", "/logout", "").await;
    assert!(logout.cookies.removes(SESSION) && logout.cookies.removes(RENEWAL));
    assert!(logout.headers["cache-control"].to_str().unwrap().contains("no-store"));
    // With validators, with the old cookies and with those that are left.
    for asking in [&before, &browser] {
        let asking = asking
            .with_field("if-none-match", "*")
            .with_field("if-modified-since", "Mon, 30 Nov 2026 12:00:00 GMT")
            .with_field("cache-control", "max-age=3600");
        let answer = assert_nobody(&asking, "the page once more").await;
        assert_eq!(answer.status, 200, "no 304 lets the old page be shown");
    }
}

/// For an hour, requests with one copied pair claim to be something that need not renew. Each that is let in has been
/// through a renewal, which is what finds a thief out.
async fn a74_exemptions_by_free_text(lab: Lab) {
    let tricks: [&[(&str, &str)]; 6] = [
        &[],
        &[("sec-purpose", "prefetch")],
        &[("sec-purpose", "prefetch;prerender"), ("sec-fetch-site", "none")],
        &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "image")],
        &[("upgrade", "websocket"), ("connection", "upgrade")],
        &[
            ("upgrade", "h2c, websocket"),
            ("connection", "keep-alive, Upgrade"),
            ("sec-websocket-version", "13"),
        ],
    ];
    for trick in tricks {
        for method in ["GET", "HEAD"] {
            let owner = lab.signed_in("alice").await;
            let mut browser = owner.clone();
            for (name, value) in trick {
                browser.fields.push((name, value.as_bytes().to_vec()));
            }
            lab.pass(FRESH).await;
            let mut served = 0;
            for minute in 0..60 {
                // 401 for nobody, with a body or without.
                let answer = browser.ask(method, "/sessions", "").await;
                if answer.status == 200 {
                    served += 1;
                    assert!(
                        answer.cookies.sets(SESSION).is_some(),
                        "{minute}: {method} {trick:?} is let in unrenewed"
                    );
                }
                lab.pass(60).await;
            }
            // The copied pair is let in as a lost answer while nobody else renews, and never past the idle timeout.
            assert_eq!(
                served > 0,
                trick.is_empty() || (method == "HEAD" && trick[0].0 == "upgrade"),
                "{trick:?}"
            );
            lab.pass(IDLE).await;
            assert_nobody(&owner, "after an hour of tricks").await;
        }
    }
}

/// The logout at one instance is the end at the other, whatever is fresh there.
#[tokio::test]
async fn a09_a_logout_at_the_other_instance() {
    let pair = Pair::start();
    let mut browser = pair.one.signed_in("alice").await;
    let there = browser.at(&pair.two);
    assert_eq!(user_of(&there).await.as_deref(), Some("alice"));
    let slow = tokio::spawn(there.ask("POST", "/slow/colour?ms=1200", "green"));
    tokio::time::sleep(Duration::from_millis(200)).await;
    browser.visit("POST", "/logout", "").await;
    let slow = slow.await.unwrap();
    assert!(slow.cookies.is_empty());
    crate::lab::eventually(Duration::from_secs(10), || async { user_of(&there).await.is_none() }).await;
    assert_eq!(there.ask("GET", "/data/colour", "").await.status, 404);
}

/// A page left open in an empty office asks for news for ever: a route that is named as such prolongs nothing, and the
/// absolute end holds for every route.
#[tokio::test]
async fn a70_polling_to_stay_signed_in() {
    let polling = Flags { arguments: vec!["--polling-route".into(), "/".into()], ..Flags::memory() };
    let lab = Lab::start(&polling);
    let mut page = lab.signed_in("alice").await;
    for _ in 0..6 {
        assert_eq!(page.who().await.as_deref(), Some("alice"));
        lab.pass(IDLE / 6).await;
    }
    assert_nobody(&page, "nobody was there for the idle timeout").await;
    let mut page = lab.signed_in("alice").await;
    for _ in 0..12 * 3 {
        lab.pass(20 * 60 - 1).await;
        page.visit("GET", "/data/x", "").await;
    }
    lab.pass(3 * 60).await;
    assert_nobody(&page, "after the absolute timeout").await;
}
