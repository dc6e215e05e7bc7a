//! Chromium fetches pages before anybody wants them.

use serde_json::json;

use crate::{
    lab::FRESH,
    stage::{APP, Stage},
};

crate::in_browser!(on_chromium Chromium:
    a_prefetch_with_a_stale_cookie_renews_nothing,
    a_prerendering_with_a_stale_cookie_renews_nothing
);

fn a_prefetch_with_a_stale_cookie_renews_nothing(stage: &mut Stage) {
    preload(stage, "prefetch");
}

fn a_prerendering_with_a_stale_cookie_renews_nothing(stage: &mut Stage) {
    preload(stage, "prerender");
}

/// It is told to come back, and the click that follows renews.
fn preload(stage: &mut Stage, how: &str) {
    stage.sign_in("alice");
    stage.pass(FRESH + 1);
    let rules = json!({ how: [{ "urls": ["/"], "eagerness": "immediate" }] });
    let page = format!("<script type=speculationrules>{rules}</script><a href=/>go</a>");
    stage.open_page(&format!("{APP}/pages/rules"), &page);
    let early = stage.seen.wait("GET", "/");
    assert!(early.purpose.starts_with("prefetch"), "{early:?}");
    assert_eq!(early.status, 503);
    assert_eq!(stage.lab.told("session_renewed"), 0);
    stage.seen.forget();
    stage.browser.click("a");
    let wanted = stage.seen.wait("GET", "/");
    assert_eq!((wanted.purpose.as_str(), wanted.status), ("", 200), "{wanted:?}");
    assert_eq!(stage.lab.told("session_renewed"), 1);
    assert_eq!(stage.who().as_deref(), Some("alice"));
}
