//! Requests that another site makes a browser send (A31, A32, A35), and honest ones that browsers label oddly.

use http::{Method, StatusCode};
use portcullis::{Auth, CrossSite, SessionEvent, cookie::SameSite, events::CrossSiteReason};

use crate::{
    browser::{Answer, Browser},
    handlers::{login, logout, page, who},
    stage::Stage,
};

on_every_store!(
    a_foreign_origin_is_refused_before_the_application_runs,
    a_sibling_and_a_null_origin_are_refused,
    the_site_s_own_origin_is_enough,
    without_an_origin_fetch_metadata_decides,
    who_says_nothing_is_refused_with_cookies_and_heard_without,
    safe_methods_are_not_asked,
    a_login_is_asked_without_a_session,
    a_foreign_socket_is_refused,
    a_trusted_origin_is_as_good_as_the_own,
    a_route_that_is_bypassed_is_not_asked,
    a_report_lets_through_and_tells,
    cookies_that_should_have_been_withheld_do_not_count,
    cookies_that_do_not_count_end_no_session,
    a_route_that_is_bypassed_for_get_may_be_embedded,
    a_refusal_says_nothing_and_is_not_cached,
    a_link_to_a_strict_site_loads_again_where_the_site_wants_it,
);

fn assert_refused(answer: &Answer, stage: &Stage, reason: CrossSiteReason) {
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{answer:?}");
    assert!(answer.body.is_empty() && answer.cookies.is_empty(), "{answer:?}");
    assert_eq!(stage.events.take(), [SessionEvent::CrossSite(reason)]);
}

fn from(browser: &Browser, origin: &str) -> Browser {
    browser.with_field("origin", origin)
}

async fn a_foreign_origin_is_refused_before_the_application_runs(stage: Stage) {
    let alice = stage.signed_in("alice").await;
    for origin in [
        "https://evil.example",
        "http://app.example.com",
        "https://app.example.com:8443",
        "https://APP.example.com",
        "",
    ] {
        for site in ["same-origin", "none", "cross-site"] {
            let answer = from(&alice, origin).with_field("sec-fetch-site", site).post(logout).await;
            assert_refused(&answer, &stage, CrossSiteReason::ForeignOrigin);
        }
    }
    assert_eq!(stage.store.calls(), [""; 0]);
    assert_eq!(alice.ask(who).await.ok(), "alice");
}

async fn a_sibling_and_a_null_origin_are_refused(stage: Stage) {
    let alice = stage.signed_in("alice").await;
    let sibling = from(&alice, "https://evil.app.example.com").with_field("sec-fetch-site", "same-site");
    assert_refused(&sibling.post(logout).await, &stage, CrossSiteReason::ForeignOrigin);
    for site in ["same-site", "cross-site", "none", "Same-Origin"] {
        let answer = from(&alice, "null").with_field("sec-fetch-site", site).post(logout).await;
        assert_refused(&answer, &stage, CrossSiteReason::NullOrigin);
    }
    assert_refused(&from(&alice, "null").post(logout).await, &stage, CrossSiteReason::NullOrigin);
    assert_refused(&from(&stage.browser(), "null").post(page).await, &stage, CrossSiteReason::NullOrigin);
}

/// WebKit says `cross-site` of honest forms that open a window without an opener.
async fn the_site_s_own_origin_is_enough(stage: Stage) {
    let alice = stage.signed_in("alice").await;
    for site in ["same-origin", "cross-site", "none", "same-site"] {
        let answer = alice.with_field("sec-fetch-site", site).post(who).await;
        assert_eq!(answer.ok(), "alice", "{site}");
    }
    assert_eq!(stage.events.names(), [""; 0]);
}

/// Pages that keep their address to themselves send `null`, and are the site's own by the other header.
async fn without_an_origin_fetch_metadata_decides(stage: Stage) {
    let alice = stage.signed_in("alice").await;
    assert_eq!(
        from(&alice, "null").with_field("sec-fetch-site", "same-origin").post(who).await.ok(),
        "alice"
    );
    let silent = silent(&alice);
    assert_eq!(silent.with_field("sec-fetch-site", "same-origin").post(who).await.ok(), "alice");
    for site in ["same-site", "cross-site", "none", ""] {
        let answer = silent.with_field("sec-fetch-site", site).post(who).await;
        assert_refused(&answer, &stage, CrossSiteReason::FetchMetadata);
    }
}

/// A browser that sends no Origin.
fn silent(browser: &Browser) -> Browser {
    let mut silent = browser.clone();
    silent.states_origin = false;
    silent
}

async fn who_says_nothing_is_refused_with_cookies_and_heard_without(stage: Stage) {
    let alice = stage.signed_in("alice").await;
    assert_refused(&silent(&alice).post(who).await, &stage, CrossSiteReason::NothingSaid);
    let mut token_alone = silent(&alice);
    token_alone.jar = token_alone.jar.without(crate::jar::SESSION);
    assert_refused(&token_alone.post(who).await, &stage, CrossSiteReason::NothingSaid);
    // A program without a session: nobody's cookies are at stake.
    assert_eq!(silent(&stage.browser()).post(who).await.ok(), "nobody");
}

async fn safe_methods_are_not_asked(stage: Stage) {
    let alice = stage.signed_in("alice").await;
    let link = from(&alice, "https://evil.example")
        .with_field("sec-fetch-site", "cross-site")
        .with_field("sec-fetch-mode", "navigate")
        .with_field("sec-fetch-dest", "document");
    assert_eq!(link.ask(who).await.ok(), "alice", "a link from elsewhere arrives signed in");
    for method in [Method::HEAD, Method::OPTIONS] {
        assert_eq!(link.send(method, who).await.status, StatusCode::OK);
    }
    for method in [Method::TRACE, Method::PUT, Method::PATCH, Method::DELETE, "QUERY".parse().unwrap()] {
        assert_eq!(link.send(method.clone(), who).await.status, StatusCode::FORBIDDEN, "{method}");
    }
}

/// A31.
async fn a_login_is_asked_without_a_session(stage: Stage) {
    let mut victim = stage.browser();
    let answer = from(&victim, "https://evil.example").post(login("mallory")).await;
    assert_refused(&answer, &stage, CrossSiteReason::ForeignOrigin);
    assert_eq!(victim.who().await, "nobody");
    assert_eq!(stage.store.calls(), [""; 0]);
}

/// A35.
async fn a_foreign_socket_is_refused(stage: Stage) {
    let alice = stage.signed_in("alice").await;
    let socket = alice.with_field("upgrade", "websocket");
    assert_eq!(socket.ask(who).await.ok(), "alice");
    assert_refused(
        &from(&socket, "https://evil.example").ask(who).await,
        &stage,
        CrossSiteReason::ForeignOrigin,
    );
    assert_refused(&silent(&socket).ask(who).await, &stage, CrossSiteReason::NothingSaid);
    let connect = from(&alice, "https://evil.example");
    assert_refused(&connect.send(Method::CONNECT, who).await, &stage, CrossSiteReason::ForeignOrigin);
    assert_ne!(alice.send(Method::CONNECT, who).await.status, StatusCode::FORBIDDEN);
}

async fn a_trusted_origin_is_as_good_as_the_own(stage: Stage) {
    let policy = CrossSite::enforce().trust_origin("https://accounts.example.com");
    let stage = stage.rebuilt(|builder| builder.cross_site(policy));
    stage.layer.ready().await.unwrap();
    let alice = stage.signed_in("alice").await;
    let sibling = from(&alice, "https://accounts.example.com").with_field("sec-fetch-site", "same-site");
    assert_eq!(sibling.post(who).await.ok(), "alice");
    // Of another site: it may post, and the session does not come along.
    let foreign = from(&alice, "https://accounts.example.com").with_field("sec-fetch-site", "cross-site");
    assert_eq!(foreign.post(who).await.ok(), "nobody");
    assert_eq!(stage.events.names(), ["cookies_not_withheld"]);
    assert_refused(
        &from(&alice, "https://accounts.example.org").post(who).await,
        &stage,
        CrossSiteReason::ForeignOrigin,
    );
}

async fn a_route_that_is_bypassed_is_not_asked(stage: Stage) {
    let stage = stage.rebuilt(|builder| builder.cross_site(CrossSite::enforce().bypass(Method::POST, "/")));
    stage.layer.ready().await.unwrap();
    let alice = stage.signed_in("alice").await;
    let foreign = from(&alice, "https://idp.example").with_field("sec-fetch-site", "cross-site");
    assert_eq!(foreign.post(who).await.ok(), "nobody", "it is nobody's session that it asks");
    stage.forget();
    assert_refused(&foreign.send(Method::PUT, who).await, &stage, CrossSiteReason::ForeignOrigin);
}

async fn a_report_lets_through_and_tells(stage: Stage) {
    let stage = stage.rebuilt(|builder| builder.cross_site(CrossSite::report()));
    stage.layer.ready().await.unwrap();
    let alice = stage.signed_in("alice").await;
    assert_eq!(from(&alice, "https://evil.example").post(who).await.ok(), "alice");
    assert_eq!(stage.events.take(), [SessionEvent::CrossSite(CrossSiteReason::ForeignOrigin)]);
    let answer =
        from(&alice, "https://evil.example").with_field("sec-fetch-site", "cross-site").post(who).await;
    assert_eq!(answer.ok(), "nobody");
    assert_eq!(stage.events.names(), ["cross_site_refused", "cookies_not_withheld"]);
}

/// SameSite on the server too, so that a browser's exceptions do not matter.
async fn cookies_that_should_have_been_withheld_do_not_count(stage: Stage) {
    let mut alice = stage.signed_in("alice").await;
    let foreign = alice.with_field("sec-fetch-site", "cross-site");
    let framed = foreign.with_field("sec-fetch-mode", "navigate").with_field("sec-fetch-dest", "iframe");
    for (browser, expected) in [
        (framed, "nobody"),
        (foreign.with_field("sec-fetch-mode", "no-cors").with_field("sec-fetch-dest", "image"), "nobody"),
        (foreign.with_field("sec-fetch-mode", "cors"), "nobody"),
        (foreign.with_field("sec-fetch-mode", "navigate").with_field("sec-fetch-dest", "document"), "alice"),
        (foreign.with_field("sec-fetch-mode", "navigate"), "alice"),
    ] {
        let answer = browser.ask(who).await;
        assert_eq!(answer.ok(), expected, "{:?}", browser.fields);
        // What such a request writes leads to no session, whose cookies would replace the ones withheld.
        assert!(browser.ask(crate::handlers::write("a", "b")).await.cookies.is_empty());
    }
    assert_eq!(alice.who().await, "alice");
}

/// Otherwise SameSite on the server would let through what it is for: a sign-out that another site makes.
async fn cookies_that_do_not_count_end_no_session(stage: Stage) {
    let mut alice = stage.signed_in("alice").await;
    let embedded = alice.with_field("sec-fetch-site", "cross-site").with_field("sec-fetch-mode", "no-cors");
    let elsewhere = alice.with_field("host", "evil.example");
    for browser in [&embedded, &elsewhere] {
        assert!(browser.ask(logout).await.cookies.is_empty());
        browser.ask(login("mallory")).await;
    }
    assert_eq!(alice.who().await, "alice");
}

/// A silent sign-in in a frame comes back through the identity provider: one route may be opened for it.
async fn a_route_that_is_bypassed_for_get_may_be_embedded(stage: Stage) {
    let stage = stage.rebuilt(|builder| builder.cross_site(CrossSite::enforce().bypass(Method::GET, "/")));
    stage.layer.ready().await.unwrap();
    let alice = stage.signed_in("alice").await;
    let framed = alice.with_field("sec-fetch-site", "cross-site").with_field("sec-fetch-dest", "iframe");
    assert_eq!(framed.with_field("sec-fetch-mode", "navigate").ask(who).await.ok(), "alice");
}

async fn a_refusal_says_nothing_and_is_not_cached(stage: Stage) {
    let answer = from(&stage.browser(), "https://evil.example").post(|_: Auth| async { "not reached" }).await;
    assert_eq!(answer.field("cache-control"), "no-store");
    assert_eq!(answer.field("vary"), "Origin, Sec-Fetch-Site");
    assert!(answer.body.is_empty());
}

async fn a_link_to_a_strict_site_loads_again_where_the_site_wants_it(stage: Stage) {
    let strict = stage.rebuilt(|builder| builder.same_site(SameSite::Strict));
    let wants = stage.rebuilt(|builder| builder.same_site(SameSite::Strict).first_party_links());
    for stage in [&strict, &wants] {
        stage.layer.ready().await.unwrap();
    }
    let mut alice = wants.signed_in("alice").await;
    // What a browser sends along with a link of another site: nothing.
    let bare = alice.with_jar(crate::jar::Jar::default());
    let link = |browser: &Browser, site: &str, dest: &str| {
        let browser = browser.with_field("sec-fetch-mode", "navigate").with_field("sec-fetch-dest", dest);
        browser.with_field("sec-fetch-site", site)
    };
    let page = link(&bare, "cross-site", "document").ask(who).await;
    assert_eq!((page.ok().as_str(), page.field("refresh").as_str()), ("", "0"));
    assert!(page.cookies.is_empty());
    assert_eq!(
        link(&alice, "same-origin", "document").ask(who).await.ok(),
        "alice",
        "and then it is its own"
    );
    for (site, dest) in [
        ("cross-site", "iframe"),
        ("same-site", "document"),
        ("none", "document"),
        ("same-origin", "document"),
    ] {
        assert_eq!(link(&bare, site, dest).ask(who).await.ok(), "nobody", "{site} {dest}");
    }
    assert_eq!(
        link(&bare, "cross-site", "document").post(who).await.ok(),
        "nobody",
        "what changes something is sent once"
    );
    assert_eq!(bare.with_field("sec-fetch-site", "cross-site").ask(who).await.ok(), "nobody");
    assert_eq!(
        link(&bare.at(&strict), "cross-site", "document").ask(who).await.ok(),
        "nobody",
        "by default it does not"
    );
    assert_eq!(alice.who().await, "alice");
}
