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

fn cause(browser: &Browser) -> CookieCause {
    browser.stage.layer.diagnose(&browser.request(http::Method::GET))
}

async fn a_request_tells_why_its_session_did_not_arrive(stage: Stage) {
    let alice = stage.signed_in("alice").await;
    let value = alice.jar.value(SESSION).unwrap().to_owned();
    let nobody = stage.browser();
    let fine = CookieCause::Fine;
    assert_eq!(cause(&alice), fine);
    assert_eq!(cause(&alice.with_field("host", "evil.example")), CookieCause::Misplaced(Misplaced::Host));
    assert_eq!(
        cause(&alice.with_field("x-forwarded-proto", "http")),
        CookieCause::Misplaced(Misplaced::Scheme)
    );
    assert_eq!(cause(&nobody), CookieCause::Nothing);
    assert_eq!(cause(&nobody.with_field("cookie", "a=b")), CookieCause::Others);
    assert_eq!(cause(&nobody.with_field("sec-fetch-site", "cross-site")), CookieCause::Withheld);
    assert_eq!(
        cause(&nobody.with_field("cookie", "__host-http-session=x")),
        CookieCause::NearMiss(NearMiss::Case)
    );
    assert_eq!(cause(&alice.with_field("cookie", format!("{SESSION}=x"))), CookieCause::Twice);
    let refused = |value: String| cause(&nobody.with_field("cookie", format!("{SESSION}={value}")));
    assert_eq!(refused("x".into()), CookieCause::Refused(CookieFault::Malformed));
    let mut forged = value.clone();
    forged.replace_range(60..61, if &value[60..61] == "A" { "B" } else { "A" });
    assert_eq!(refused(forged), CookieCause::Refused(CookieFault::Forged));
    let mut other_client = alice.clone();
    other_client.user_agent = Some(CHROME);
    assert_eq!(cause(&other_client), CookieCause::OtherClient(ContextSignal::Family));
    let mut out = stage.signed_in("bob").await;
    let copy = out.clone();
    out.visit(logout).await.ok();
    assert_eq!(cause(&copy), CookieCause::Ended(Reason::Revoked));
    stage.pass(FRESH);
    assert_eq!(cause(&alice), fine, "its token renews it");
    assert_eq!(cause(&alice.with_jar(alice.jar.without(RENEWAL))), CookieCause::Stale);
    let token = alice.jar.value(RENEWAL).unwrap();
    let with_token = |token: &str| cause(&nobody.with_field("cookie", format!("{RENEWAL}={token}")));
    assert_eq!(with_token(token), fine);
    assert_eq!(with_token("x"), CookieCause::Refused(CookieFault::Forged));
    let embedded = alice.with_field("sec-fetch-site", "cross-site").with_field("sec-fetch-mode", "no-cors");
    assert_eq!(cause(&embedded), CookieCause::Withheld);
    stage.forget();
    assert!(cause(&alice.with_field("host", "evil.example")).to_string().contains("proxy_set_header"));
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
    assert!(text.contains("no cookie came at all"), "{text}");
    assert_eq!(
        ask(&builder("https://app.example.com").build().unwrap()).await,
        (StatusCode::NOT_FOUND, String::new())
    );
}
