//! What caches are told (A57, A60).

use http::header;
use portcullis::{Auth, Identity, RequireRecentAuth, Session};

use crate::{
    handlers::{login, page, read, who},
    stage::{FRESH, Stage},
};

on_every_store!(
    a_page_that_looked_at_nobody_is_left_alone,
    a_page_that_looked_at_who_is_there_is_private,
    a_page_that_looked_at_session_data_is_private,
    a_page_that_asked_who_the_stranger_is_is_private,
    the_application_s_own_word_on_caching_stands,
    an_answer_with_cookies_is_stored_nowhere_whatever_the_application_says,
    what_an_answer_varies_on_is_added_to_and_not_repeated,
);

async fn a_page_that_looked_at_nobody_is_left_alone(stage: Stage) {
    let alice = stage.signed_in("alice").await;
    for browser in [stage.browser(), alice.clone()] {
        for answer in [browser.ask(page).await, browser.ask(|_: Session, _: Auth| async {}).await] {
            assert_eq!((answer.field("vary").as_str(), answer.field("cache-control").as_str()), ("", ""));
        }
    }
}

async fn a_page_that_looked_at_who_is_there_is_private(stage: Stage) {
    let alice = stage.signed_in("alice").await;
    for browser in [stage.browser(), alice] {
        for answer in [
            browser.ask(who).await,
            browser.ask(|_: Identity| async {}).await,
            browser.ask(|_: RequireRecentAuth| async {}).await,
            browser.ask(|auth: Auth| async move { auth.sessions().await.map(drop) }).await,
        ] {
            assert_eq!(answer.field("vary"), "Cookie", "{answer:?}");
            assert_eq!(answer.field("cache-control"), "private, no-store");
        }
    }
}

async fn a_page_that_looked_at_session_data_is_private(stage: Stage) {
    let answer = stage.signed_in("alice").await.ask(read("colour")).await;
    assert_eq!(answer.field("vary"), "Cookie");
    assert_eq!(answer.field("cache-control"), "private, no-store");
}

/// The core asks no store where there is no session, so that a stranger's `Session` was read cannot be seen; a handler
/// says so by asking who is there as well. (The docs of `extract` tell it.)
async fn a_page_that_asked_who_the_stranger_is_is_private(stage: Stage) {
    let says = |_: Option<Identity>, session: Session| async move {
        session.get_value("basket").await.unwrap();
    };
    let answer = stage.browser().ask(says).await;
    assert_eq!(answer.field("vary"), "Cookie");
    assert_eq!(answer.field("cache-control"), "private, no-store");
}

async fn the_application_s_own_word_on_caching_stands(stage: Stage) {
    let alice = stage.signed_in("alice").await;
    let says = |_: Identity| async { [(header::CACHE_CONTROL, "private, max-age=60")] };
    let answer = alice.ask(says).await;
    assert_eq!(answer.field("vary"), "Cookie");
    assert_eq!(answer.field("cache-control"), "private, max-age=60");
}

async fn an_answer_with_cookies_is_stored_nowhere_whatever_the_application_says(stage: Stage) {
    let mut alice = stage.signed_in("alice").await;
    let says = || async { [(header::CACHE_CONTROL, "public, max-age=3600")] };
    assert_eq!(alice.visit(says).await.field("cache-control"), "public, max-age=3600");
    stage.pass(FRESH);
    let answer = alice.visit(says).await;
    assert!(!answer.cookies.is_empty());
    assert_eq!(answer.field("cache-control"), "no-store");
    assert_eq!(answer.field("vary"), "Cookie");
    assert_eq!(alice.visit(login("alice")).await.field("cache-control"), "no-store");
}

async fn what_an_answer_varies_on_is_added_to_and_not_repeated(stage: Stage) {
    let alice = stage.signed_in("alice").await;
    for (said, sent) in [
        ("Accept-Encoding", "Accept-Encoding, Cookie"),
        ("accept, cookie", "accept, cookie"),
        ("COOKIE", "COOKIE"),
        ("*", "*"),
        ("X-Cookie", "X-Cookie, Cookie"),
    ] {
        let says = move |_: Identity| async move { [(header::VARY, said)] };
        assert_eq!(alice.ask(says).await.field("vary"), sent);
    }
}
