//! What caches and browsers are told (A57, A60), and what a browser that asks on its own account may do (A14).

use http::{StatusCode, header};
use portcullis::{Auth, AuthError, ClearSiteData, Identity, RequireRecentAuth, Session};

use crate::{
    handlers::{login, logout, logout_everywhere, page, read, reauthenticate, who},
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
    a_site_may_keep_all_pages_of_those_who_are_signed_in_out_of_caches,
    a_logout_clears_what_the_site_wants_cleared,
    a_prefetch_signs_nobody_in_or_out,
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

async fn a_site_may_keep_all_pages_of_those_who_are_signed_in_out_of_caches(stage: Stage) {
    let stage = stage.rebuilt(portcullis::SessionLayerBuilder::no_store_when_signed_in);
    stage.layer.ready().await.unwrap();
    let alice = stage.signed_in("alice").await;
    let says = || async { [(header::CACHE_CONTROL, "public, max-age=3600")] };
    let answer = alice.ask(says).await;
    assert_eq!(
        (answer.field("cache-control").as_str(), answer.field("vary").as_str()),
        ("no-store", "Cookie")
    );
    assert_eq!(alice.ask(page).await.field("cache-control"), "no-store");
    assert_eq!(stage.browser().ask(says).await.field("cache-control"), "public, max-age=3600");
    assert_eq!(stage.browser().ask(page).await.field("cache-control"), "");
}

async fn a_logout_clears_what_the_site_wants_cleared(stage: Stage) {
    let silent = stage.signed_in("alice").await.visit(logout).await;
    assert_eq!(silent.field("clear-site-data"), "");
    let clears = [ClearSiteData::Storage, ClearSiteData::PrefetchCache, ClearSiteData::PrerenderCache];
    let stage = stage.rebuilt(|builder| builder.clear_site_data(clears));
    stage.layer.ready().await.unwrap();
    let ask = |site: &'static str| {
        let stage = stage.clone();
        async move {
            let alice = stage.signed_in("alice").await;
            alice.with_field("sec-fetch-site", site).visit(logout).await
        }
    };
    for site in ["same-origin", "none"] {
        let answer = ask(site).await;
        assert_eq!(answer.field("clear-site-data"), "\"storage\", \"prefetchCache\", \"prerenderCache\"");
        assert!(answer.cookies.removes(crate::jar::SESSION), "cookies are removed all the same");
    }
    assert_eq!(ask("same-site").await.field("clear-site-data"), "", "a sibling's link");
    // On a redirect one browser ignores it, so it would be a promise not kept.
    let redirects = |auth: Auth| async move { auth.logout().await.map(|()| StatusCode::SEE_OTHER) };
    assert_eq!(stage.signed_in("alice").await.visit(redirects).await.field("clear-site-data"), "");
    assert_eq!(stage.signed_in("alice").await.visit(login("bob")).await.field("clear-site-data"), "");
}

/// A link that signs out is fetched ahead by a browser that nobody asked to.
async fn a_prefetch_signs_nobody_in_or_out(stage: Stage) {
    let mut alice = stage.signed_in("alice").await;
    for purpose in ["prefetch", "prefetch;prerender", "PREFETCH"] {
        let ahead = alice.with_field("sec-purpose", purpose);
        for answer in [
            ahead.ask(logout).await,
            ahead.ask(logout_everywhere).await,
            ahead.ask(login("bob")).await,
            ahead.ask(reauthenticate).await,
            stage.browser().with_field("sec-purpose", purpose).ask(login("bob")).await,
        ] {
            answer.assert_unavailable();
        }
    }
    assert_eq!(AuthError::Speculative.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(stage.store.calls(), [""; 0]);
    assert_eq!(alice.who().await, "alice");
}
