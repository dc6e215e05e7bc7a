//! What becomes of session data when requests overlap, fail, or come too late.

use axum::http::StatusCode;
use portcullis::{Auth, Session};
use tokio::task::JoinHandle;

use crate::{
    browser::{Answer, Browser},
    gate::Gate,
    handlers::{login, logout, read, who, write},
    jar::{RENEWAL, SESSION},
    stage::{FRESH, Stage},
};

on_every_store!(
    a_handler_that_fails_commits_no_data,
    a_handler_that_fails_after_a_renewal_still_sends_the_new_token,
    a_login_stays_done_when_the_handler_fails_afterwards,
    a_refusal_of_the_handler_commits_data,
    a_write_that_ends_after_a_logout_is_dropped,
    a_write_that_begins_after_a_logout_elsewhere_is_dropped,
    a_dropped_write_creates_nothing_for_the_rest_of_the_request,
    a_new_id_for_a_session_that_ended_is_dropped,
    a_login_goes_through_although_the_session_before_it_ended,
    a_renewing_write_that_ends_after_a_logout_sets_no_cookies,
    a_renewing_read_that_ends_after_a_logout_sets_no_cookies,
    a_late_answer_does_not_overwrite_the_next_login,
    two_requests_that_write_different_keys_both_win,
    of_two_requests_that_write_one_key_the_later_wins,
    a_removal_and_a_write_of_another_key_both_win,
);

/// A request that has read its session and waits at the gate before it writes.
async fn slow_write(browser: &Browser, key: &'static str, value: &'static str) -> (JoinHandle<Answer>, Gate) {
    let gate = Gate::default();
    let inside = gate.clone();
    let slow = move |session: Session| async move {
        session.get_value(key).await.unwrap();
        inside.wait_inside().await;
        session.insert(key, value).await.unwrap();
        "written"
    };
    let under_way = tokio::spawn(browser.ask(slow));
    gate.is_reached().await;
    (under_way, gate)
}

/// A request that waits at the gate and touches nothing.
async fn slow_page(browser: &Browser) -> (JoinHandle<Answer>, Gate) {
    let gate = Gate::default();
    let inside = gate.clone();
    let under_way = tokio::spawn(browser.ask(move || async move { inside.wait_inside().await }));
    gate.is_reached().await;
    (under_way, gate)
}

async fn a_handler_that_fails_commits_no_data(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let fails = |session: Session| async move {
        session.insert("colour", "green").await.unwrap();
        StatusCode::BAD_GATEWAY
    };
    let answer = browser.visit(fails).await;
    assert_eq!(answer.status, StatusCode::BAD_GATEWAY);
    assert!(answer.cookies.is_empty());
    assert_eq!(stage.store.calls(), ["load"]);
    assert_eq!(browser.visit(read("colour")).await.ok(), "nothing");
    let mut stranger = stage.browser();
    stage.forget();
    assert!(stranger.visit(fails).await.cookies.is_empty());
    assert_eq!(stage.store.calls(), [""; 0]);
}

/// A13.
async fn a_handler_that_fails_after_a_renewal_still_sends_the_new_token(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    stage.pass(FRESH);
    let fails = |session: Session| async move {
        session.insert("colour", "green").await.unwrap();
        StatusCode::INTERNAL_SERVER_ERROR
    };
    let answer = browser.visit(fails).await;
    assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(answer.cookies.sets(SESSION).is_some() && answer.cookies.sets(RENEWAL).is_some());
    assert_eq!(browser.visit(read("colour")).await.ok(), "nothing");
    stage.pass(FRESH);
    stage.forget();
    assert_eq!(browser.who().await, "alice");
    assert_eq!(stage.events.names(), ["session_renewed"]);
}

async fn a_login_stays_done_when_the_handler_fails_afterwards(stage: Stage) {
    let mut browser = stage.browser();
    let fails = |auth: Auth, session: Session| async move {
        auth.login("alice").await.unwrap();
        session.insert("colour", "green").await.unwrap();
        StatusCode::INTERNAL_SERVER_ERROR
    };
    let answer = browser.visit(fails).await;
    assert!(answer.cookies.sets(SESSION).is_some() && answer.cookies.sets(RENEWAL).is_some());
    assert_eq!(browser.who().await, "alice");
    assert_eq!(browser.visit(read("colour")).await.ok(), "nothing");
}

async fn a_refusal_of_the_handler_commits_data(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let refuses = |session: Session| async move {
        session.insert("colour", "green").await.unwrap();
        StatusCode::UNPROCESSABLE_ENTITY
    };
    browser.visit(refuses).await;
    assert_eq!(browser.visit(read("colour")).await.ok(), "green");
}

/// A09.
async fn a_write_that_ends_after_a_logout_is_dropped(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let copy = browser.clone();
    let (slow, gate) = slow_write(&browser, "colour", "green").await;
    browser.visit(logout).await.ok();
    stage.forget();
    gate.open();
    let answer = slow.await.unwrap();
    assert_eq!(answer.ok(), "written", "the answer passes");
    assert!(answer.cookies.is_empty());
    assert_eq!(stage.events.names(), ["write_to_ended_session"]);
    assert_eq!(stage.store.calls(), ["commit"]);
    assert_eq!(copy.ask(who).await.ok(), "nobody");
    assert_eq!(copy.ask(read("colour")).await.ok(), "nothing");
}

/// The session ended on another instance, and the news is not here yet.
async fn a_write_that_begins_after_a_logout_elsewhere_is_dropped(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let copy = browser.clone();
    let gate = Gate::default();
    let inside = gate.clone();
    let slow = move |session: Session| async move {
        inside.wait_inside().await;
        session.insert("colour", "green").await.unwrap();
        session.insert("shape", "round").await.unwrap();
    };
    let under_way = tokio::spawn(copy.ask(slow));
    gate.is_reached().await;
    browser.visit(logout).await.ok();
    stage.forget();
    gate.open();
    let answer = under_way.await.unwrap();
    answer.ok();
    assert!(answer.cookies.is_empty());
    assert_eq!(stage.events.names(), ["write_to_ended_session"]);
    assert!(stage.store.calls().iter().all(|verb| *verb == "load"));
}

async fn a_dropped_write_creates_nothing_for_the_rest_of_the_request(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let copy = browser.clone();
    let gate = Gate::default();
    let inside = gate.clone();
    let persists = move |session: Session| async move {
        session.insert("one", 1).await.unwrap();
        inside.wait_inside().await;
        for key in ["two", "three"] {
            session.insert(key, 1).await.unwrap();
            session.save().await.unwrap();
        }
        session.clear().await;
        session.insert("four", 4).await.unwrap();
    };
    let under_way = tokio::spawn(copy.ask(persists));
    gate.is_reached().await;
    browser.visit(logout).await.ok();
    stage.forget();
    gate.open();
    let answer = under_way.await.unwrap();
    answer.ok();
    assert!(answer.cookies.is_empty());
    assert!(!stage.store.calls().contains(&"create"));
    assert_eq!(copy.ask(who).await.ok(), "nobody");
}

/// A `cycle_id` is a write as well.
async fn a_new_id_for_a_session_that_ended_is_dropped(stage: Stage) {
    let browser = stage.signed_in("alice").await;
    let gate = Gate::default();
    let inside = gate.clone();
    let cycles = move |session: Session| async move {
        session.get_value("colour").await.unwrap();
        inside.wait_inside().await;
        session.cycle_id().await.unwrap();
    };
    let under_way = tokio::spawn(browser.ask(cycles));
    gate.is_reached().await;
    browser.ask(logout).await.ok();
    stage.forget();
    gate.open();
    let answer = under_way.await.unwrap();
    answer.ok();
    assert!(answer.cookies.is_empty());
    assert!(!stage.store.calls().contains(&"create"));
    assert_eq!(stage.events.names(), ["write_to_ended_session"]);
}

/// The store answers, so `Unavailable` would be untrue; whoever just typed the password meets a 503.
async fn a_login_goes_through_although_the_session_before_it_ended(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let gate = Gate::default();
    let inside = gate.clone();
    let signs_in = move |session: Session, auth: Auth| async move {
        inside.wait_inside().await;
        assert_eq!(session.get_value("greeted").await.unwrap(), None);
        auth.login("bob").await
    };
    let under_way = tokio::spawn(browser.ask(signs_in));
    gate.is_reached().await;
    browser.visit(logout).await.ok();
    gate.open();
    browser.take(&under_way.await.unwrap());
    assert_eq!(browser.who().await, "bob");
}

/// A09 and design §7: a commit that finds the session gone "lets the answer pass, sets nothing of ours", also where
/// the request had renewed before.
async fn a_renewing_write_that_ends_after_a_logout_sets_no_cookies(stage: Stage) {
    let browser = stage.signed_in("alice").await;
    stage.pass(FRESH);
    let (slow, gate) = slow_write(&browser, "colour", "green").await;
    browser.ask(logout).await.ok();
    gate.open();
    let answer = slow.await.unwrap();
    answer.ok();
    assert!(answer.cookies.is_empty(), "{:?}", answer.cookies);
}

/// A09: "slow response has no session Set-Cookie".
async fn a_renewing_read_that_ends_after_a_logout_sets_no_cookies(stage: Stage) {
    let browser = stage.signed_in("alice").await;
    stage.pass(FRESH);
    let (slow, gate) = slow_page(&browser).await;
    browser.ask(logout).await.ok();
    gate.open();
    let answer = slow.await.unwrap();
    answer.ok();
    assert!(answer.cookies.is_empty(), "{:?}", answer.cookies);
}

/// A08: the answer of a session that ended meanwhile would sign the next user of this browser out.
async fn a_late_answer_does_not_overwrite_the_next_login(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    stage.pass(FRESH);
    let (slow, gate) = slow_page(&browser).await;
    browser.visit(logout).await.ok();
    browser.visit(login("bob")).await.ok();
    gate.open();
    browser.take(&slow.await.unwrap());
    assert_eq!(browser.who().await, "bob");
}

async fn two_requests_that_write_different_keys_both_win(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let (one, first) = slow_write(&browser, "one", "1").await;
    let (two, second) = slow_write(&browser, "two", "2").await;
    second.open();
    two.await.unwrap().ok();
    first.open();
    one.await.unwrap().ok();
    assert_eq!(browser.visit(read("one")).await.ok(), "1");
    assert_eq!(browser.visit(read("two")).await.ok(), "2");
}

async fn of_two_requests_that_write_one_key_the_later_wins(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let (early, first) = slow_write(&browser, "colour", "green").await;
    let (late, second) = slow_write(&browser, "colour", "red").await;
    second.open();
    late.await.unwrap().ok();
    first.open();
    early.await.unwrap().ok();
    assert_eq!(browser.visit(read("colour")).await.ok(), "green");
}

async fn a_removal_and_a_write_of_another_key_both_win(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    browser.visit(write("one", "1")).await.ok();
    let (two, gate) = slow_write(&browser, "two", "2").await;
    let removes = |session: Session| async move {
        session.remove::<String>("one").await.unwrap();
    };
    browser.visit(removes).await.ok();
    gate.open();
    two.await.unwrap().ok();
    assert_eq!(browser.visit(read("one")).await.ok(), "nothing");
    assert_eq!(browser.visit(read("two")).await.ok(), "2");
}
