//! Whoever did not sign in: nothing is stored for them until a handler writes something.

use http::StatusCode;
use portcullis::{Identity, Session};
use serde_json::Value;

use crate::{
    handlers::{page, read, who, write},
    jar::{RENEWAL, SESSION},
    stage::Stage,
};

on_every_store!(
    a_stranger_costs_nothing_and_is_nobody,
    reading_data_that_is_not_there_creates_nothing,
    removing_and_clearing_nothing_creates_nothing,
    writing_data_creates_one_session_which_is_read_back,
    an_anonymous_session_is_no_identity,
    an_anonymous_session_renews_as_any_other,
);

async fn a_stranger_costs_nothing_and_is_nobody(stage: Stage) {
    let browser = stage.browser();
    assert_eq!(browser.ask(page).await.ok(), "a page");
    let answer = browser.ask(who).await;
    assert_eq!(answer.ok(), "nobody");
    assert!(answer.cookies.is_empty());
    assert_eq!(browser.ask(|_: Identity| async {}).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(stage.store.calls(), [""; 0]);
    assert_eq!(stage.events.names(), [""; 0]);
}

async fn reading_data_that_is_not_there_creates_nothing(stage: Stage) {
    let answer = stage.browser().ask(read("basket")).await;
    assert_eq!(answer.ok(), "nothing");
    assert!(answer.cookies.is_empty());
    assert_eq!(stage.store.calls(), [""; 0]);
}

async fn removing_and_clearing_nothing_creates_nothing(stage: Stage) {
    let browser = stage.browser();
    let removes = |session: Session| async move {
        session.remove::<Value>("basket").await.unwrap();
    };
    let clears = |session: Session| async move { session.clear().await };
    let changes_its_mind = |session: Session| async move {
        session.insert("basket", 1).await.unwrap();
        session.clear().await;
    };
    let flushes = |session: Session| async move { session.flush().await.unwrap() };
    let cycles = |session: Session| async move { session.cycle_id().await.unwrap() };
    for answer in [
        browser.ask(removes).await,
        browser.ask(clears).await,
        browser.ask(changes_its_mind).await,
        browser.ask(flushes).await,
        browser.ask(cycles).await,
    ] {
        answer.ok();
        assert!(answer.cookies.is_empty());
    }
    assert_eq!(stage.store.calls(), [""; 0]);
    assert_eq!(stage.events.names(), [""; 0]);
}

async fn writing_data_creates_one_session_which_is_read_back(stage: Stage) {
    let mut browser = stage.browser();
    let answer = browser.visit(write("basket", "two apples")).await;
    assert!(answer.cookies.sets(SESSION).is_some() && answer.cookies.sets(RENEWAL).is_some());
    assert_eq!(stage.store.calls(), ["create"]);
    assert_eq!(stage.events.names(), ["session_created"]);
    assert_eq!(browser.visit(read("basket")).await.ok(), "two apples");
    assert_eq!(stage.store.calls(), ["load"]);
}

async fn an_anonymous_session_is_no_identity(stage: Stage) {
    let mut browser = stage.browser();
    browser.visit(write("basket", "two apples")).await;
    assert_eq!(browser.who().await, "nobody");
    assert_eq!(browser.ask(|_: Identity| async {}).await.status, StatusCode::UNAUTHORIZED);
}

async fn an_anonymous_session_renews_as_any_other(stage: Stage) {
    let mut browser = stage.browser();
    browser.visit(write("basket", "two apples")).await;
    stage.pass(crate::stage::FRESH);
    let answer = browser.visit(read("basket")).await;
    assert_eq!(answer.ok(), "two apples");
    assert!(answer.cookies.sets(SESSION).is_some() && answer.cookies.sets(RENEWAL).is_some());
}

/// A route that the layer was forgotten on says so at once, whatever it asks for.
#[tokio::test]
async fn without_the_layer_extractors_refuse_and_say_so() {
    use portcullis::{Auth, AuthRejection, RequireRecentAuth};
    let extensions = http::Extensions::new();
    assert_eq!(Identity::from_extensions(&extensions).unwrap_err(), AuthRejection::NoLayer);
    assert_eq!(Auth::from_extensions(&extensions).unwrap_err(), AuthRejection::NoLayer);
    assert_eq!(RequireRecentAuth::from_extensions(&extensions).unwrap_err(), AuthRejection::NoLayer);
    assert_eq!(AuthRejection::NoLayer.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(AuthRejection::NoLayer.to_string(), "no SessionLayer runs in front of this route");
}
