//! What a request costs the store.

use portcullis::{Auth, Identity, Session};
use serde_json::Value;

use crate::{
    handlers::{details, login, page, read, who, write},
    stage::{FRESH, Stage},
};

on_every_store!(
    a_fresh_cookie_asks_the_store_nothing,
    reading_data_costs_one_load_however_often,
    writing_data_costs_one_load_and_one_commit,
    writing_what_is_there_already_commits_nothing,
    a_login_costs_one_create,
    a_login_that_also_writes_data_costs_one_commit_more,
    signing_in_over_a_session_costs_one_create,
    a_renewal_costs_one_rotation,
    all_requests_before_the_first_read_of_the_feed_ask_the_store,
);

async fn a_fresh_cookie_asks_the_store_nothing(stage: Stage) {
    let browser = stage.signed_in("alice").await;
    assert_eq!(browser.ask(who).await.ok(), "alice");
    let answer = browser.ask(details).await;
    assert!(answer.ok().contains("alice"));
    assert!(answer.cookies.is_empty());
    browser.ask(page).await.ok();
    browser.ask(|_: Session, _: Auth, _: Identity| async {}).await.ok();
    assert_eq!(stage.store.calls(), [""; 0]);
    assert_eq!(stage.events.names(), [""; 0]);
}

async fn reading_data_costs_one_load_however_often(stage: Stage) {
    let browser = stage.signed_in("alice").await;
    let reads = |session: Session| async move {
        for key in ["one", "two", "three"] {
            assert_eq!(session.get::<Value>(key).await.unwrap(), None);
        }
    };
    browser.ask(reads).await.ok();
    assert_eq!(stage.store.calls(), ["load"]);
}

async fn writing_data_costs_one_load_and_one_commit(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let writes = |session: Session| async move {
        session.insert("one", 1).await.unwrap();
        session.insert("two", 2).await.unwrap();
    };
    let answer = browser.visit(writes).await;
    answer.ok();
    assert!(answer.cookies.is_empty(), "data is no reason for new cookies");
    assert_eq!(stage.store.calls(), ["load", "commit"]);
    let removes = |session: Session| async move {
        assert_eq!(session.remove::<u8>("one").await.unwrap(), Some(1));
    };
    browser.visit(removes).await.ok();
    assert_eq!(stage.store.calls(), ["load", "commit"]);
    assert_eq!(browser.visit(read("one")).await.ok(), "nothing");
}

async fn writing_what_is_there_already_commits_nothing(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    browser.visit(write("colour", "green")).await.ok();
    stage.forget();
    browser.visit(write("colour", "green")).await.ok();
    assert_eq!(stage.store.calls(), ["load"]);
    let there_and_back = |session: Session| async move {
        session.insert("colour", "red").await.unwrap();
        session.insert("colour", "green").await.unwrap();
        session.remove::<Value>("nothing of this name").await.unwrap();
    };
    browser.visit(there_and_back).await.ok();
    assert_eq!(stage.store.calls(), ["load"]);
}

async fn a_login_costs_one_create(stage: Stage) {
    let mut browser = stage.browser();
    browser.visit(login("alice")).await.ok();
    assert_eq!(stage.store.calls(), ["create"]);
    assert_eq!(stage.events.names(), ["authn_login_success"]);
}

async fn a_login_that_also_writes_data_costs_one_commit_more(stage: Stage) {
    let mut browser = stage.browser();
    let signs_in = |auth: Auth, session: Session| async move {
        auth.login("alice").await.unwrap();
        session.insert("greeted", true).await.unwrap();
    };
    browser.visit(signs_in).await.ok();
    assert_eq!(stage.store.calls(), ["create", "commit"]);
}

/// "In one store call" (design §7): the step that creates the new session ends the old one as well.
async fn signing_in_over_a_session_costs_one_create(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    browser.visit(login("bob")).await.ok();
    assert_eq!(stage.store.calls(), ["create"]);
}

async fn a_renewal_costs_one_rotation(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    stage.pass(FRESH);
    assert_eq!(browser.who().await, "alice");
    assert_eq!(stage.store.calls(), ["rotate"]);
    assert_eq!(stage.events.names(), ["session_renewed"]);
}

async fn all_requests_before_the_first_read_of_the_feed_ask_the_store(stage: Stage) {
    let browser = stage.signed_in("alice").await;
    let restarted = browser.at(&stage.restarted_with(stage.keys.clone()));
    let answer = restarted.ask(who).await;
    assert_eq!(answer.ok(), "alice");
    assert!(answer.cookies.is_empty());
    assert_eq!(stage.store.calls()[0], "load");
    restarted.stage.layer.ready().await.unwrap();
    stage.forget();
    restarted.ask(who).await.ok();
    assert_eq!(stage.store.calls(), [""; 0]);
}
