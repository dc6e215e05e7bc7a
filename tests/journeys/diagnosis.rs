//! Why a cookie did not arrive.

use axum::{Router, body::Body};
use http::{Request, StatusCode, header};
use http_body_util::BodyExt as _;
use portcullis::{
    KeyRing, MemoryStore, SessionLayer,
    cookie::NearMiss,
    events::{CookieFault, Misplaced},
    middleware::CookieCause,
    session::{ContextSignal, Reason},
};
use tower::ServiceExt as _;

use crate::{
    browser::{Browser, CHROME},
    handlers::logout,
    jar::{RENEWAL, SESSION},
    stage::{FRESH, Stage},
};

on_every_store!(a_request_tells_why_its_session_did_not_arrive);

fn causes(browser: &Browser) -> Vec<CookieCause> {
    browser.stage.layer.diagnose(&browser.request(http::Method::GET))
}

async fn a_request_tells_why_its_session_did_not_arrive(stage: Stage) {
    let alice = stage.signed_in("alice").await;
    let value = alice.jar.value(SESSION).unwrap().to_owned();
    let nobody = stage.browser();
    let fine = CookieCause::Fine;
    assert_eq!(causes(&alice), [fine]);
    assert_eq!(
        causes(&alice.with_field("host", "evil.example")),
        [CookieCause::Misplaced(Misplaced::Host), fine]
    );
    assert_eq!(
        causes(&alice.with_field("x-forwarded-proto", "http")),
        [CookieCause::Misplaced(Misplaced::Scheme), fine]
    );
    assert_eq!(causes(&nobody), [CookieCause::Nothing]);
    assert_eq!(causes(&nobody.with_field("cookie", "a=b")), [CookieCause::Others]);
    assert_eq!(
        causes(&nobody.with_field("sec-fetch-site", "cross-site")),
        [CookieCause::Withheld, CookieCause::Nothing]
    );
    assert_eq!(
        causes(&nobody.with_field("cookie", "__host-http-session=x")),
        [CookieCause::NearMiss(NearMiss::Case)]
    );
    assert_eq!(causes(&alice.with_field("cookie", format!("{SESSION}=x"))), [CookieCause::Twice]);
    let refused = |value: String| causes(&nobody.with_field("cookie", format!("{SESSION}={value}")));
    assert_eq!(refused("x".into()), [CookieCause::Refused(CookieFault::Malformed)]);
    let mut forged = value.clone();
    forged.replace_range(60..61, if &value[60..61] == "A" { "B" } else { "A" });
    assert_eq!(refused(forged), [CookieCause::Refused(CookieFault::Forged)]);
    let mut other_client = alice.clone();
    other_client.user_agent = Some(CHROME);
    assert_eq!(causes(&other_client), [CookieCause::OtherClient(ContextSignal::Family)]);
    let mut out = stage.signed_in("bob").await;
    let copy = out.clone();
    out.visit(logout).await.ok();
    assert_eq!(causes(&copy), [CookieCause::Ended(Reason::Revoked)]);
    stage.pass(FRESH);
    assert_eq!(causes(&alice), [fine], "its token renews it");
    assert_eq!(causes(&alice.with_jar(alice.jar.without(RENEWAL))), [CookieCause::Stale]);
    stage.forget();
    for cause in causes(&alice.with_field("host", "evil.example")) {
        assert!(cause.to_string().len() > 20, "{cause}");
    }
    assert_eq!(
        (stage.store.calls().len(), stage.events.names().len()),
        (0, 0),
        "it changes and tells nothing"
    );
}

#[tokio::test]
async fn the_page_is_for_development() {
    let page = |layer: &SessionLayer| Router::new().route_service("/why", layer.diagnosis_page());
    let ask = async |layer: &SessionLayer| {
        let request = Request::builder()
            .uri("/why")
            .header(header::HOST, "localhost:3000")
            .body(Body::empty())
            .unwrap();
        let answer = page(layer).oneshot(request).await.unwrap();
        let status = answer.status();
        (status, String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap())
    };
    let builder = |origin| SessionLayer::builder(origin, KeyRing::generate().unwrap(), MemoryStore::new());
    let development = builder("http://localhost:3000").danger_localhost_development().build().unwrap();
    let (status, text) = ask(&development).await;
    assert_eq!(status, StatusCode::OK);
    assert!(text.contains("- no cookie came at all"), "{text}");
    assert_eq!(
        ask(&builder("https://app.example.com").build().unwrap()).await,
        (StatusCode::NOT_FOUND, String::new())
    );
}
