//! What another site can make a browser send: nothing of ours, but along with a link.

use serde_json::json;

use crate::{
    jar::{RENEWAL, SESSION},
    stage::{APP, OTHER, Stage},
};

crate::in_every_browser!(
    a_form_of_another_site_carries_no_cookie,
    a_request_of_another_site_carries_no_cookie,
    a_frame_in_another_site_carries_no_cookie,
    a_link_from_another_site_finds_the_user_signed_in,
);

crate::in_browser!(on_strict_chromium Chromium with STRICT; a_link_to_a_strict_site_arrives_by_a_page_more);
crate::in_browser!(on_strict_firefox Firefox with STRICT; a_link_to_a_strict_site_arrives_by_a_page_more);

const STRICT: &[&str] = &["--same-site", "strict", "--first-party-links", "on"];

fn a_link_to_a_strict_site_arrives_by_a_page_more(stage: &mut Stage) {
    stage.sign_in("alice");
    stage.open_page(&format!("{OTHER}/link"), &format!("<a href={APP}/>go</a>"));
    stage.seen.forget();
    stage.browser.click("a");
    let page: serde_json::Value = serde_json::from_str(&stage.text()).expect("JSON");
    assert_eq!(page["user"], "alice");
    let pages: Vec<_> = stage.seen.all().into_iter().filter(|page| page.path == "/").collect();
    assert_eq!(pages.iter().map(|page| page.cookies(SESSION)).collect::<Vec<_>>(), [0, 1]);
}

fn a_form_of_another_site_carries_no_cookie(stage: &mut Stage) {
    stage.sign_in("alice");
    stage.submit(&format!("{OTHER}/form"), "/lab/arrived", "");
    assert_withheld(stage, "POST", "/lab/arrived");
}

fn a_request_of_another_site_carries_no_cookie(stage: &mut Stage) {
    stage.sign_in("alice");
    for method in ["GET", "POST"] {
        stage.open_page(&format!("{OTHER}/script"), "script");
        let what = json!({ "method": method, "mode": "no-cors", "credentials": "include" });
        let path = format!("/lab/arrived?{method}");
        stage.browser.run(&format!("await fetch({}, {what})", json!(format!("{APP}{path}"))));
        assert_withheld(stage, method, &path);
    }
}

fn a_frame_in_another_site_carries_no_cookie(stage: &mut Stage) {
    stage.sign_in("alice");
    stage.open_page(&format!("{OTHER}/frame"), &format!("<iframe src={APP}/lab/arrived></iframe>"));
    assert_withheld(stage, "GET", "/lab/arrived");
}

fn a_link_from_another_site_finds_the_user_signed_in(stage: &mut Stage) {
    stage.sign_in("alice");
    stage.open_page(&format!("{OTHER}/link"), &format!("<a href={APP}/data/none>go</a>"));
    stage.browser.click("a");
    let request = stage.seen.wait("GET", "/data/none");
    assert_eq!((request.cookies(SESSION), request.cookies(RENEWAL)), (1, 1), "{request:?}");
    assert_eq!(request.site, "cross-site");
    assert_eq!(request.status, 404, "a session, and nothing in it under that name");
}

/// The request arrived without our cookies, and they are still there.
fn assert_withheld(stage: &mut Stage, method: &str, path: &str) {
    let request = stage.seen.wait(method, path);
    assert_eq!((request.cookies(SESSION), request.cookies(RENEWAL)), (0, 0), "{request:?}");
    assert_eq!((request.site.as_str(), request.status), ("cross-site", 200), "{request:?}");
    assert_eq!(stage.who().as_deref(), Some("alice"));
}
