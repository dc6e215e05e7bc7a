//! The policy for the application's own cookies (A29, A33, A57), over whatever a handler or an inner layer writes.

use axum::{Router, body::Body, response::AppendHeaders, routing::get};
use http::{HeaderMap, Request, header};
use portcullis::{
    CookiePolicy, SessionEvent,
    cookie::{CookieAction, CookieFinding, CookieRule},
};
use tower::ServiceExt as _;

use crate::{
    browser::Answer,
    handlers::{login, who},
    jar::{RENEWAL, SESSION},
    stage::{FRESH, Stage},
};

on_every_store!(
    a_cookie_of_a_handler_says_everything_before_it_leaves,
    what_cannot_be_mended_is_dropped_and_told,
    a_handler_cannot_touch_the_session_s_own_cookies,
    a_report_touches_nothing,
    an_exception_is_for_one_cookie,
    ours_and_theirs_leave_together,
    an_answer_with_a_cookie_is_kept_out_of_caches,
    the_path_that_a_browser_would_default_is_written_out,
    a_cookie_for_another_site_s_page_is_dropped,
    a_layer_inside_a_layer_does_nothing_twice,
    a_layer_of_another_site_inside_judges_by_itself,
);

fn emits(lines: &'static [&'static str]) -> impl Fn() -> Emitted + Clone + Send + Sync + 'static {
    move || std::future::ready(AppendHeaders(lines.iter().map(|line| (header::SET_COOKIE, *line)).collect()))
}

type Emitted = std::future::Ready<AppendHeaders<Vec<(http::HeaderName, &'static str)>>>;

fn lines(headers: &HeaderMap) -> Vec<&str> {
    headers.get_all(header::SET_COOKIE).iter().map(|line| line.to_str().unwrap()).collect()
}

fn rules(stage: &Stage) -> Vec<(String, CookieRule, CookieAction)> {
    let finding = |event| match event {
        SessionEvent::CookiePolicy(CookieFinding { name, rule, action, .. }) => Some((name, rule, action)),
        _ => None,
    };
    stage.events.take().into_iter().filter_map(finding).collect()
}

async fn a_cookie_of_a_handler_says_everything_before_it_leaves(stage: Stage) {
    let alice = stage.signed_in("alice").await;
    for browser in [stage.browser(), alice] {
        stage.pass(FRESH);
        let answer = browser.ask(emits(&["theme=dark"])).await;
        assert_eq!(lines(&answer.headers)[..1], ["theme=dark; Path=/; Secure; HttpOnly; SameSite=Lax"]);
        browser.ask(emits(&["theme=dark"])).await;
        let told = rules(&stage);
        let expected = [CookieRule::Secure, CookieRule::HttpOnly, CookieRule::SameSite, CookieRule::Path];
        assert_eq!(told.iter().map(|(_, rule, _)| *rule).collect::<Vec<_>>(), expected);
        assert!(told.iter().all(|(name, _, action)| name == "theme" && *action == CookieAction::Mended));
        let whole = "theme=dark; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=60";
        let answer =
            browser.ask(emits(&["theme=dark; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=60"])).await;
        assert_eq!(lines(&answer.headers)[..1], [whole], "what obeys is left as it is");
        assert_eq!(rules(&stage), []);
    }
}

async fn what_cannot_be_mended_is_dropped_and_told(stage: Stage) {
    let answer = stage.browser().ask(emits(&["__Host-a=b; Domain=example.com; Path=/", "b=c d"])).await;
    assert!(lines(&answer.headers).is_empty());
    let dropped = CookieAction::Dropped;
    let expected =
        [("__Host-a".into(), CookieRule::Prefix, dropped), ("b".into(), CookieRule::Value, dropped)];
    assert_eq!(rules(&stage), expected);
}

async fn a_handler_cannot_touch_the_session_s_own_cookies(stage: Stage) {
    let off = stage.rebuilt(|builder| builder.cookie_policy(CookiePolicy::off()));
    for stage in [stage, off] {
        stage.layer.ready().await.unwrap();
        let mut alice = stage.signed_in("alice").await;
        let forged = emits(&[
            "__Host-Http-session=x; Path=/; Secure; HttpOnly; SameSite=Lax",
            "__HOST-http-renewal=; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=0",
        ]);
        let answer = alice.visit(forged.clone()).await;
        assert!(lines(&answer.headers).is_empty(), "{answer:?}");
        assert!(rules(&stage).iter().all(|(_, rule, _)| *rule == CookieRule::Reserved));
        assert_eq!(alice.who().await, "alice");
        stage.pass(FRESH);
        let answer = alice.visit(forged).await;
        assert_eq!(lines(&answer.headers).len(), 2, "ours, renewed");
        assert_eq!(alice.who().await, "alice");
    }
}

async fn a_report_touches_nothing(stage: Stage) {
    let stage = stage.rebuilt(|builder| builder.cookie_policy(CookiePolicy::report()));
    let answer = stage.browser().ask(emits(&["a=b", "c=d e"])).await;
    assert_eq!(lines(&answer.headers), ["a=b", "c=d e"]);
    assert!(rules(&stage).iter().all(|(_, _, action)| *action == CookieAction::Reported));
    let stage = stage.rebuilt(|builder| builder.cookie_policy(CookiePolicy::off()));
    let answer = stage.browser().ask(emits(&["a=b", "c=d e"])).await;
    assert_eq!(lines(&answer.headers), ["a=b", "c=d e"]);
    assert_eq!(rules(&stage), []);
}

async fn an_exception_is_for_one_cookie(stage: Stage) {
    let policy = CookiePolicy::enforce().except("theme", CookieRule::HttpOnly, "theme.js reads it");
    let stage = stage.rebuilt(|builder| builder.cookie_policy(policy));
    let answer = stage.browser().ask(emits(&["theme=a; Path=/", "other=b; Path=/"])).await;
    assert_eq!(
        lines(&answer.headers),
        ["theme=a; Path=/; Secure; SameSite=Lax", "other=b; Path=/; Secure; HttpOnly; SameSite=Lax"]
    );
}

async fn ours_and_theirs_leave_together(stage: Stage) {
    let mut alice = stage.signed_in("alice").await;
    stage.pass(FRESH);
    let answer = alice.visit(emits(&["theme=dark; Path=/", "theme=light; Path=/"])).await;
    let names: Vec<&str> =
        lines(&answer.headers).iter().map(|line| line.split('=').next().unwrap()).collect();
    assert_eq!(names, ["theme", SESSION, RENEWAL]);
    assert!(lines(&answer.headers)[0].starts_with("theme=light; "), "of two the last");
    assert!(rules(&stage).contains(&("theme".into(), CookieRule::Repeated, CookieAction::Dropped)));
    assert_eq!(alice.who().await, "alice");
}

async fn an_answer_with_a_cookie_is_kept_out_of_caches(stage: Stage) {
    let field = |answer: &Answer| answer.field("cache-control");
    assert_eq!(field(&stage.browser().ask(emits(&["a=b"])).await), "private, no-store");
    // What is dropped is not in the answer.
    assert_eq!(field(&stage.browser().ask(emits(&["=b"])).await), "");
    let says = || async { [(header::SET_COOKIE, "a=b"), (header::CACHE_CONTROL, "private, max-age=5")] };
    assert_eq!(field(&stage.browser().ask(says).await), "private, max-age=5");
}

async fn the_path_that_a_browser_would_default_is_written_out(stage: Stage) {
    let app = Router::new().route("/account/login", get(emits(&["a=b"]))).layer(stage.layer.clone());
    let request = Request::builder().uri("/account/login?next=/").body(Body::empty()).unwrap();
    let answer = app.oneshot(request).await.unwrap();
    assert_eq!(lines(answer.headers()), ["a=b; Path=/account; Secure; HttpOnly; SameSite=Lax"]);
}

async fn a_cookie_for_another_site_s_page_is_dropped(stage: Stage) {
    let browser =
        stage.browser().with_field("sec-fetch-site", "cross-site").with_field("sec-fetch-mode", "no-cors");
    let answer = browser.ask(emits(&["a=b; Path=/; Secure; HttpOnly; SameSite=Lax"])).await;
    assert!(lines(&answer.headers).is_empty());
    assert_eq!(rules(&stage)[0].1, CookieRule::CrossSite);
}

/// A router that is layered as a whole and again in a part.
async fn a_layer_inside_a_layer_does_nothing_twice(stage: Stage) {
    let inner = Router::new().route("/login", get(login("alice"))).layer(stage.layer.clone());
    let app = Router::new().route("/", get(who)).merge(inner).layer(stage.layer.clone());
    let request = Request::builder().uri("/login").header("user-agent", "x").body(Body::empty()).unwrap();
    let answer = app.oneshot(request).await.unwrap();
    assert_eq!(lines(answer.headers()).len(), 2);
    assert_eq!(stage.events.names(), ["client_address_unknown", "authn_login_success"]);
}

/// An inner layer of another site is another layer: nothing of it is skipped.
async fn a_layer_of_another_site_inside_judges_by_itself(stage: Stage) {
    let inner = stage.beside("https://app.example.com", stage.keys.clone());
    let outer = stage.rebuilt(|builder| builder.cross_site(portcullis::CrossSite::report()));
    outer.layer.ready().await.unwrap();
    let app = Router::new()
        .route("/", axum::routing::any(who))
        .layer(inner.layer.clone())
        .layer(outer.layer.clone());
    let request = Request::builder().method("POST").uri("/").header("origin", "https://evil.example");
    let answer = app.oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(answer.status(), 403);
}
