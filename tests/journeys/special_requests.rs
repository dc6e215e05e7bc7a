//! Requests whose answer may be thrown away, or that want a socket: none of them uses up a token (A14, A15, A74).

use http::{StatusCode, header};
use portcullis::Session;

use crate::{
    browser::Browser,
    handlers::{page, recent, who},
    jar::{RENEWAL, SESSION},
    stage::{FRESH, GRACE, IDLE, Stage},
};

on_every_store!(
    a_prefetch_of_a_stale_cookie_is_told_to_come_again_and_renews_nothing,
    a_prefetch_of_a_fresh_cookie_is_an_ordinary_request,
    a_cross_site_subresource_is_nobody_and_renews_nothing,
    a_cross_site_navigation_of_a_stale_cookie_renews,
    an_upgrade_of_an_ordinary_page_with_a_stale_cookie_is_a_503,
    three_sockets_a_generation_are_opened_with_a_stale_cookie,
    a_socket_of_a_stale_cookie_sees_no_recent_authentication,
    sockets_do_not_keep_a_session_alive,
    a_socket_of_a_fresh_cookie_costs_nothing,
);

/// A route that switches protocols, as axum's `WebSocketUpgrade` answers.
async fn socket(identity: portcullis::Identity) -> (StatusCode, [(header::HeaderName, String); 1]) {
    (StatusCode::SWITCHING_PROTOCOLS, [(header::UPGRADE, identity.subject().to_owned())])
}

fn upgrading(browser: &Browser) -> Browser {
    browser.with_field("upgrade", "websocket").with_field("connection", "Upgrade")
}

async fn a_prefetch_of_a_stale_cookie_is_told_to_come_again_and_renews_nothing(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    stage.pass(FRESH);
    for purpose in ["prefetch", "prefetch;prerender", "prefetch; anonymous-client-ip", "Prefetch"] {
        browser.with_field("sec-purpose", purpose).ask(who).await.assert_unavailable();
        let lone = browser.with_jar(browser.jar.without(SESSION));
        lone.with_field("sec-purpose", purpose).ask(who).await.assert_unavailable();
    }
    assert_eq!(stage.store.calls(), [""; 0]);
    assert!(browser.visit(who).await.cookies.sets(RENEWAL).is_some());
}

async fn a_prefetch_of_a_fresh_cookie_is_an_ordinary_request(stage: Stage) {
    let browser = stage.signed_in("alice").await;
    let answer = browser.with_field("sec-purpose", "prefetch").ask(who).await;
    assert_eq!(answer.ok(), "alice");
    assert!(answer.cookies.is_empty());
    assert_eq!(stage.browser().with_field("sec-purpose", "prefetch").ask(who).await.ok(), "nobody");
}

async fn a_cross_site_subresource_is_nobody_and_renews_nothing(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let embedded = |mode| {
        let from = browser.with_field("sec-fetch-site", "cross-site");
        from.with_field("sec-fetch-mode", mode)
    };
    let embeds = ["no-cors", "cors", "same-origin", "websocket"].map(embedded);
    for _ in 0..2 {
        for embed in &embeds {
            let answer = embed.ask(who).await;
            assert_eq!(answer.ok(), "nobody", "a browser should have withheld them");
            assert!(answer.cookies.is_empty());
            assert_eq!(stage.events.names(), ["cookies_not_withheld"]);
        }
        stage.pass(FRESH);
    }
    assert_eq!(stage.store.calls(), [""; 0]);
    assert!(browser.visit(who).await.cookies.sets(RENEWAL).is_some());
}

async fn a_cross_site_navigation_of_a_stale_cookie_renews(stage: Stage) {
    let browser = stage.signed_in("alice").await;
    stage.pass(FRESH);
    let follows = browser.with_field("sec-fetch-site", "cross-site").with_field("sec-fetch-mode", "navigate");
    let answer = follows.ask(who).await;
    assert_eq!(answer.ok(), "alice");
    assert!(answer.cookies.sets(RENEWAL).is_some());
}

/// A15, A74: otherwise `Upgrade` would be a way to stay without ever renewing.
async fn an_upgrade_of_an_ordinary_page_with_a_stale_cookie_is_a_503(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    stage.pass(FRESH);
    let writes = |session: Session| async move {
        session.insert("colour", "green").await.unwrap();
    };
    upgrading(&browser).ask(page).await.assert_unavailable();
    upgrading(&browser).ask(writes).await.assert_unavailable();
    assert!(!stage.store.calls().contains(&"commit"));
    let answer = browser.visit(crate::handlers::read("colour")).await;
    assert_eq!(answer.ok(), "nothing");
    assert!(answer.cookies.sets(RENEWAL).is_some(), "the token is not used up");
}

async fn three_sockets_a_generation_are_opened_with_a_stale_cookie(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    for _ in 0..2 {
        stage.pass(FRESH);
        stage.forget();
        for _ in 0..3 {
            let answer = upgrading(&browser).ask(socket).await;
            assert_eq!(answer.status, StatusCode::SWITCHING_PROTOCOLS);
            assert_eq!(answer.field("upgrade"), "alice");
            assert!(answer.cookies.is_empty());
        }
        for _ in 0..2 {
            let answer = upgrading(&browser).ask(socket).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
            assert!(answer.cookies.is_empty());
        }
        assert_eq!(stage.events.names(), ["upgrade_refused"; 2]);
        assert!(browser.visit(who).await.cookies.sets(RENEWAL).is_some());
    }
    // The token before opens none, not even as a race.
    let mut loser = browser.clone();
    stage.pass(FRESH);
    browser.who().await;
    loser.jar = loser.jar.without(SESSION);
    assert_eq!(upgrading(&loser).ask(socket).await.status, StatusCode::UNAUTHORIZED);
}

async fn a_socket_of_a_stale_cookie_sees_no_recent_authentication(stage: Stage) {
    let stage = stage.rebuilt(|builder| builder.recent(IDLE));
    stage.layer.ready().await.unwrap();
    let browser = stage.signed_in("alice").await;
    let asks = |identity: portcullis::Identity| async move {
        let recent = if identity.is_recent() { "recent" } else { "not recent" };
        (StatusCode::SWITCHING_PROTOCOLS, [(header::UPGRADE, recent)])
    };
    assert_eq!(upgrading(&browser).ask(asks).await.field("upgrade"), "recent");
    stage.pass(FRESH);
    assert_eq!(upgrading(&browser).ask(asks).await.field("upgrade"), "not recent");
    upgrading(&browser).ask(recent).await.assert_unavailable();
    assert_eq!(browser.ask(recent).await.ok(), "recent");
}

async fn sockets_do_not_keep_a_session_alive(stage: Stage) {
    let browser = stage.signed_in("alice").await;
    stage.pass(IDLE - GRACE);
    assert_eq!(upgrading(&browser).ask(socket).await.status, StatusCode::SWITCHING_PROTOCOLS);
    stage.pass(GRACE);
    assert_eq!(upgrading(&browser).ask(socket).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(browser.ask(who).await.ok(), "nobody");
}

async fn a_socket_of_a_fresh_cookie_costs_nothing(stage: Stage) {
    let browser = stage.signed_in("alice").await;
    for _ in 0..5 {
        assert_eq!(upgrading(&browser).ask(socket).await.status, StatusCode::SWITCHING_PROTOCOLS);
    }
    assert_eq!(upgrading(&browser).ask(page).await.ok(), "a page");
    assert_eq!(stage.store.calls(), [""; 0]);
}
