//! Tokens of forms, for sites whose service worker makes foreign forms look like their own.

use axum::{Router, body::Body, routing::any};
use http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use portcullis::{AuthRejection, CrossSite, FormToken, extract::RequireFormToken};
use tower::ServiceExt as _;

use crate::{
    browser::Browser,
    handlers::{reauthenticate, who, write},
    stage::{FRESH, Stage},
};

on_every_store!(
    a_token_is_good_for_its_session_alone,
    a_token_is_masked_anew_in_every_answer,
    a_new_id_wants_new_forms,
    every_unsafe_request_wants_a_token,
    the_handler_still_gets_its_form,
);

async fn token(token: FormToken) -> String {
    token.to_string()
}

/// Checks what the request states in a header of the test's own.
async fn check(token: FormToken, headers: http::HeaderMap) -> Result<&'static str, AuthRejection> {
    token.verify(headers.get("sent").map_or("", |sent| sent.to_str().unwrap()))?;
    Ok("good")
}

async fn sends(browser: &Browser, token: &str) -> StatusCode {
    browser.with_field("sent", token).ask(check).await.status
}

async fn a_token_is_good_for_its_session_alone(stage: Stage) {
    let mut anonymous = stage.browser();
    anonymous.visit(write("basket", "tea")).await.ok();
    let browsers =
        [stage.browser(), anonymous, stage.signed_in("alice").await, stage.signed_in("alice").await];
    let mut tokens = Vec::new();
    for browser in &browsers {
        tokens.push(browser.ask(token).await.ok());
    }
    stage.forget();
    for (i, browser) in browsers.iter().enumerate() {
        for (j, token) in tokens.iter().enumerate() {
            let expected = if i == j { StatusCode::OK } else { StatusCode::FORBIDDEN };
            assert_eq!(sends(browser, token).await, expected, "{i} {j}");
        }
        for wrong in ["", "x", &"A".repeat(43), &tokens[i][1..]] {
            assert_eq!(sends(browser, wrong).await, StatusCode::FORBIDDEN);
        }
    }
    assert_eq!(stage.events.names(), ["form_token_refused"; 4 * 3 + 4 * 4]);
}

/// BREACH: a token that stands the same in every answer can be guessed from their lengths.
async fn a_token_is_masked_anew_in_every_answer(stage: Stage) {
    let alice = stage.signed_in("alice").await;
    let (one, other) = (alice.ask(token).await, alice.ask(token).await);
    assert_ne!(one.ok(), other.ok());
    assert_eq!((one.ok().len(), other.ok().len()), (43, 43));
    for answer in [&one, &other] {
        assert_eq!(sends(&alice, &answer.ok()).await, StatusCode::OK);
        assert_eq!(answer.field("cache-control"), "private, no-store");
    }
    let shown = alice.ask(|token: FormToken| async move { format!("{token:?}") }).await.ok();
    assert_eq!(shown, "FormToken(..)");
}

async fn a_new_id_wants_new_forms(stage: Stage) {
    let mut alice = stage.signed_in("alice").await;
    let before = alice.ask(token).await.ok();
    stage.pass(FRESH);
    alice.who().await;
    assert_eq!(sends(&alice, &before).await, StatusCode::OK, "a renewal keeps the id");
    alice.visit(reauthenticate).await.ok();
    assert_eq!(sends(&alice, &before).await, StatusCode::FORBIDDEN);
    let after = alice.ask(token).await.ok();
    assert_eq!(sends(&alice, &after).await, StatusCode::OK);
}

/// A request through a router that wants tokens.
async fn post(
    browser: &Browser,
    method: Method,
    fields: &[(&str, &str)],
    body: &str,
) -> (StatusCode, String) {
    let handler = |body: String| async move { body };
    let app = Router::new()
        .route("/", any(handler))
        .layer(RequireFormToken::new())
        .layer(browser.stage.layer.clone());
    let mut request =
        Request::builder().method(method).uri("/").header(header::ORIGIN, &browser.stage.origin);
    request = request.header(header::USER_AGENT, browser.user_agent.unwrap());
    if let Some(cookies) = browser.jar.field(browser.stage.second()) {
        request = request.header(header::COOKIE, cookies);
    }
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let request = request.extension(browser.address).body(Body::from(body.to_owned())).unwrap();
    let response = app.oneshot(request).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded; charset=utf-8");

async fn every_unsafe_request_wants_a_token(stage: Stage) {
    let alice = stage.signed_in("alice").await;
    let good = alice.ask(token).await.ok();
    let field = format!("a=1&form_token={good}&b=2");
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        for (fields, body, expected) in [
            (&[][..], "", StatusCode::FORBIDDEN),
            (&[FORM], "a=1", StatusCode::FORBIDDEN),
            (&[FORM], "form_token=", StatusCode::FORBIDDEN),
            (&[FORM], &format!("{field}&form_token={good}"), StatusCode::FORBIDDEN),
            (&[("content-type", "text/plain")], &field, StatusCode::FORBIDDEN),
            (&[("x-form-token", "x"), FORM], &field, StatusCode::FORBIDDEN),
            (&[("x-form-token", &good), ("x-form-token", "x")], "", StatusCode::FORBIDDEN),
            (&[("x-form-token", &good)], "", StatusCode::OK),
            (&[FORM], &field, StatusCode::OK),
        ] {
            assert_eq!(
                post(&alice, method.clone(), fields, body).await.0,
                expected,
                "{method} {fields:?} {body}"
            );
        }
    }
    for method in [Method::GET, Method::HEAD, Method::OPTIONS, Method::CONNECT] {
        assert_ne!(post(&alice, method, &[], "").await.0, StatusCode::FORBIDDEN);
    }
    assert_eq!(
        post(&stage.browser(), Method::POST, &[FORM], "a=1").await.0,
        StatusCode::OK,
        "nobody has none"
    );
    let bypass = stage.rebuilt(|builder| builder.cross_site(CrossSite::enforce().bypass(Method::POST, "/")));
    assert_eq!(
        post(&alice.at(&bypass), Method::POST, &[FORM], "a=1").await.0,
        StatusCode::OK,
        "nor is a bypassed route asked"
    );
    let long = format!("form_token={good}&a={}", "x".repeat(3_000_000));
    assert_eq!(post(&alice, Method::POST, &[FORM], &long).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(alice.ask(who).await.ok(), "alice");
}

async fn the_handler_still_gets_its_form(stage: Stage) {
    let alice = stage.signed_in("alice").await;
    let page = alice.ask(|token: FormToken| async move { token.field() }).await.ok();
    let token = page.split("value=\"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(page, format!("<input type=\"hidden\" name=\"form_token\" value=\"{token}\">"));
    let (status, body) = post(&alice, Method::POST, &[FORM], &format!("a=1&form_token={token}")).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(body, format!("a=1&form_token={token}"));
}
