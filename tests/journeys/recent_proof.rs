//! Routes that want a device that has proven itself a moment ago: a 307 to themselves makes it.

use std::time::Duration;

use http::{Method, StatusCode};
use portcullis::{AuthRejection, RequireRecentProof};

use crate::{
    bound::{bound, offered, offering, offers, promote, refresh},
    browser::{Answer, Browser},
    handlers::{reauthenticate, who},
    stage::{MS, SECOND, Stage},
};

on_every_store!(
    a_proof_counts_for_two_minutes,
    nothing_but_a_proof_makes_it_recent,
    the_way_back_stays_on_the_site,
    whose_device_cannot_prove_itself_is_refused,
    a_handler_may_answer_itself,
    a_site_says_how_recent,
);

const RECENT: Duration = Duration::from_secs(120);

async fn pay(_: RequireRecentProof) -> &'static str {
    "paid"
}

/// Asserts that an answer makes the browser prove itself and come again, and gives where.
fn sent_to_prove(answer: &Answer) -> String {
    assert_eq!(answer.status, StatusCode::TEMPORARY_REDIRECT, "{answer:?}");
    assert_eq!(
        answer.cookies.max_age("__Host-session"),
        Some(0),
        "the cookie goes, so that the browser refreshes"
    );
    assert_eq!(answer.cookies.max_age("__Host-Http-renewal"), None);
    assert_eq!(answer.field("cache-control"), "no-store");
    answer.field("location")
}

async fn a_proof_counts_for_two_minutes(stage: Stage) {
    let stage = offering(&stage).await;
    let (mut alice, mut device) = bound(&stage).await;
    for _ in 0..3 {
        stage.pass(RECENT - MS);
        assert_eq!(alice.ask(pay).await.ok(), "paid");
        stage.pass(MS);
        for method in [Method::GET, Method::POST, Method::PUT] {
            let answer = alice.send(method, pay).await;
            assert_eq!(sent_to_prove(&answer), "https://app.example.com/");
        }
        let answer = alice.post(pay).await;
        alice.take(&answer);
        // A browser that cannot refresh comes back without, and nothing goes round.
        assert_eq!(alice.post(pay).await.status, StatusCode::UNAUTHORIZED);
        refresh(&mut alice, &mut device).await;
        assert_eq!(alice.post(pay).await.ok(), "paid");
    }
}

async fn nothing_but_a_proof_makes_it_recent(stage: Stage) {
    let stage = offering(&stage).await;
    let (mut alice, _) = bound(&stage).await;
    stage.pass(RECENT - SECOND);
    alice.visit(promote).await.ok();
    alice.visit(reauthenticate).await.ok();
    assert_eq!(alice.ask(pay).await.ok(), "paid");
    stage.pass(SECOND);
    sent_to_prove(&alice.ask(pay).await);
    alice.visit(promote).await.ok();
    alice.visit(reauthenticate).await.ok();
    sent_to_prove(&alice.ask(pay).await);
}

async fn the_way_back_stays_on_the_site(stage: Stage) {
    let stage = offering(&stage).await;
    let (alice, _) = bound(&stage).await;
    stage.pass(RECENT);
    for path in ["//evil.example/x", "/a?b=c&d=%2F", "/%2e%2e"] {
        let answer = alice.ask_at(path, pay).await;
        if answer.status == StatusCode::NOT_FOUND {
            continue;
        }
        assert_eq!(sent_to_prove(&answer), format!("https://app.example.com{path}"));
    }
}

async fn whose_device_cannot_prove_itself_is_refused(stage: Stage) {
    let stage = offering(&stage).await;
    let (without, _) = offered(&stage).await;
    assert_eq!(without.ask(pay).await.status, StatusCode::FORBIDDEN);
    assert_eq!(stage.browser().ask(pay).await.status, StatusCode::UNAUTHORIZED);
    let keyed = stage.rebuilt(|builder| offers(builder).software_keys());
    keyed.layer.ready().await.unwrap();
    assert_eq!(Browser { stage: keyed, ..without }.ask(pay).await.status, StatusCode::FORBIDDEN);
}

async fn a_handler_may_answer_itself(stage: Stage) {
    async fn choose(proven: Result<RequireRecentProof, AuthRejection>) -> String {
        proven.map_or_else(|refusal| refusal.to_string(), |proven| proven.subject().to_owned())
    }
    let stage = offering(&stage).await;
    let (alice, _) = bound(&stage).await;
    assert_eq!(alice.ask(choose).await.ok(), "alice");
    stage.pass(RECENT);
    let answer = alice.ask(choose).await;
    assert_eq!(answer.ok(), "the last proof of the session's device is too long ago");
    assert!(answer.cookies.is_empty());
    assert_eq!(alice.ask(who).await.ok(), "alice");
}

async fn a_site_says_how_recent(stage: Stage) {
    let stage = stage.rebuilt(|builder| offers(builder).recent_proof(SECOND));
    stage.layer.ready().await.unwrap();
    let (alice, _) = bound(&stage).await;
    assert_eq!(alice.ask(pay).await.ok(), "paid");
    stage.pass(SECOND);
    sent_to_prove(&alice.ask(pay).await);
}
