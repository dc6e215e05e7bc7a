//! Device-bound sessions in a Chromium that binds them: what it signs, when it waits, and that a copy of its cookies dies.

use serde_json::json;

use crate::{
    driver::{Browser, Kind, poll},
    jar::RENEWAL,
    seen::Request,
    stage::{APP, DESK, OTHER, SIBLING, Stage, folder, play_with},
};

crate::in_browser!(on_chromium BindingChromium with OFFERS;
    a_login_is_bound_and_goes_on_by_its_key,
    fifty_requests_at_once_wait_for_one_refresh,
    a_copied_jar_is_dead_when_its_cookie_is,
    a_cookie_that_the_server_finds_stale_is_refreshed,
    a_link_from_another_site_arrives_signed_in_at_its_address,
    a_signed_out_session_is_ended_in_the_browser,
    somebody_else_in_the_same_browser_is_never_turned_back,
    a_new_authentication_keeps_the_key,
    a_copied_jar_in_another_profile_dies_with_its_cookie,
    a_payment_is_held_until_the_device_has_proven_itself,
);

crate::in_browser!(on_chromium_with_initiators BindingChromium with INITIATORS;
    a_link_from_a_named_site_is_refreshed_before_it_is_followed,
);

crate::in_browser!(on_chromium_of_a_whole_site BindingChromium with WHOLE_SITE;
    every_host_of_the_site_has_it_refreshed,
);

crate::in_browser!(on_rationed_chromium RationedChromium with OFFERS;
    a_browser_that_may_not_sign_is_not_signed_out,
);

crate::in_browser!(on_firefox Firefox with OFFERS;
    a_browser_that_cannot_bind_goes_on_without,
);

const INITIATORS: &[&str] = &[
    "--device-binding",
    "offer",
    "--refresh-initiator",
    "other.test",
    "--refresh-initiator",
    "evil.site.test",
];
const WHOLE_SITE: &[&str] =
    &["--device-binding", "offer", "--cookie-domain", "site.test", "--include-site", "on"];
pub(crate) const OFFERS: &[&str] = &["--device-binding", "offer"];

/// A browser without keys goes on as ever.
fn a_browser_that_cannot_bind_goes_on_without(stage: &mut Stage) {
    stage.sign_in("alice");
    stage.pass(301);
    assert_eq!(stage.who().as_deref(), Some("alice"));
    assert_eq!(strength(stage), "context");
    assert!(requests(stage, "POST", REGISTER).is_empty());
}

/// Chromium binds no cookie of the other prefix.
pub(crate) const SESSION: &str = "__Host-session";

const REGISTER: &str = "/portcullis/device/register";
pub(crate) const REFRESH: &str = "/portcullis/device/refresh";

/// Signs in, and waits until the browser has bound its key.
pub(crate) fn sign_in(stage: &mut Stage, user: &str) {
    stage.seen.forget();
    stage.sign_in(user);
    assert_eq!(stage.seen.wait("POST", REGISTER).status, 200);
    // The answer has left the proxy; the browser takes it a moment later.
    poll(|| (strength_here(stage) == "device").then_some(())).expect("the session is bound");
    stage.seen.forget();
}

pub(crate) fn requests(stage: &Stage, method: &str, path: &str) -> Vec<Request> {
    stage.seen.all().into_iter().filter(|seen| seen.method == method && seen.path == path).collect()
}

fn strength(stage: &mut Stage) -> String {
    stage.browser.open(DESK);
    strength_here(stage)
}

pub(crate) fn strength_here(stage: &mut Stage) -> String {
    let script = "const answer = await fetch('/'); return (await answer.json()).strength;";
    stage.browser.run(script).as_str().unwrap_or_default().to_owned()
}

fn a_login_is_bound_and_goes_on_by_its_key(stage: &mut Stage) {
    sign_in(stage, "alice");
    for _ in 0..3 {
        stage.browser.forget_cookie(SESSION);
        assert_eq!(stage.who().as_deref(), Some("alice"));
        let refreshes = requests(stage, "POST", REFRESH);
        assert_eq!(
            refreshes.iter().map(|request| request.status).collect::<Vec<_>>(),
            [200],
            "one round trip"
        );
        let page = requests(stage, "GET", "/").pop().expect("the page");
        assert_eq!(page.cookies(SESSION), 1, "the page waits for it");
        stage.seen.forget();
        assert_eq!(stage.fetch("GET", "/device", None), 200);
        stage.seen.forget();
    }
}

fn fifty_requests_at_once_wait_for_one_refresh(stage: &mut Stage) {
    sign_in(stage, "alice");
    stage.browser.open(DESK);
    stage.browser.forget_cookie(SESSION);
    stage.seen.forget();
    let statuses = stage.browser.run(
        "const all = Array.from({ length: 50 }, (_, at) => fetch('/data/note?' + at, { method: 'POST', body: 'x' }));
         return (await Promise.all(all)).map((answer) => answer.status);",
    );
    assert_eq!(statuses, json!(vec![204; 50]));
    assert_eq!(requests(stage, "POST", REFRESH).len(), 1);
    assert_eq!(stage.fetch("GET", "/data/note", None), 200);
}

fn a_copied_jar_is_dead_when_its_cookie_is(stage: &mut Stage) {
    sign_in(stage, "alice");
    stage.browser.open(DESK);
    let user_agent = stage.browser.run("return navigator.userAgent").as_str().expect("a text").to_owned();
    let mut thief = stage.lab.browser();
    thief.user_agent = Some(user_agent.leak());
    for name in [SESSION, RENEWAL] {
        thief.jar.put(name, stage.browser.cookie(name));
    }
    let user = |stage: &Stage| stage.ask(&thief, "/").user();
    assert_eq!(user(stage).as_deref(), Some("alice"), "while it is fresh");
    stage.pass(329);
    assert_eq!(user(stage).as_deref(), Some("alice"), "until its end and the grace");
    stage.pass(1);
    assert_eq!(user(stage), None);
    // The browser itself only has to prove that it has the key.
    stage.browser.forget_cookie(SESSION);
    assert_eq!(stage.who().as_deref(), Some("alice"));
    assert_eq!(user(stage), None, "the copy does not come back with it");
}

/// Its clock is behind, or the server's policy has changed: what it holds does not count, so it must lose it first.
fn a_cookie_that_the_server_finds_stale_is_refreshed(stage: &mut Stage) {
    sign_in(stage, "alice");
    stage.pass(331);
    assert_eq!(stage.who().as_deref(), Some("alice"));
    assert_eq!(requests(stage, "GET", "/").len(), 2, "a page that loads itself again");
    assert_eq!(requests(stage, "POST", REFRESH).last().map(|request| request.status), Some(200));
}

fn a_link_from_another_site_arrives_signed_in_at_its_address(stage: &mut Stage) {
    sign_in(stage, "alice");
    stage.browser.open(DESK);
    stage.browser.forget_cookie(SESSION);
    stage.seen.forget();
    let path = "/client?from=elsewhere&x=%2F";
    stage.open_page(&format!("{OTHER}/"), &format!("<a href='{APP}{path}'>go</a>"));
    stage.browser.click("a");
    let address = poll(|| {
        let address = stage.browser.try_run("return document.querySelector('pre') && location.href").ok()?;
        address.as_str().map(str::to_owned)
    });
    assert_eq!(address.as_deref(), Some(format!("{APP}{path}").as_str()));
    let pages = requests(stage, "GET", path);
    assert_eq!(
        pages.iter().map(|page| page.site.as_str()).collect::<Vec<_>>(),
        ["cross-site", "same-origin"]
    );
    assert_eq!(pages.iter().map(|page| page.cookies(SESSION)).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(stage.who().as_deref(), Some("alice"));
}

fn a_signed_out_session_is_ended_in_the_browser(stage: &mut Stage) {
    sign_in(stage, "alice");
    assert_eq!(stage.fetch("POST", "/logout", None), 204);
    stage.seen.forget();
    assert_eq!(stage.who(), None);
    assert_eq!(requests(stage, "POST", REFRESH).len(), 1, "it asks, and is told that the session is over");
    stage.seen.forget();
    assert_eq!(stage.who(), None);
    assert!(requests(stage, "POST", REFRESH).is_empty(), "it asks no more");
}

fn somebody_else_in_the_same_browser_is_never_turned_back(stage: &mut Stage) {
    sign_in(stage, "alice");
    stage.browser.open(DESK);
    for name in [SESSION, RENEWAL] {
        stage.browser.forget_cookie(name);
    }
    // Deleting cookies does not end the browser's own session: the request to sign in brings the old one back first, and ends it.
    sign_in(stage, "bob");
    for _ in 0..3 {
        stage.browser.open(DESK);
        stage.browser.forget_cookie(SESSION);
        assert_eq!(stage.who().as_deref(), Some("bob"));
    }
    assert_eq!(strength(stage), "device");
}

fn a_new_authentication_keeps_the_key(stage: &mut Stage) {
    sign_in(stage, "alice");
    assert_eq!(stage.fetch("POST", "/reauthenticate", None), 204);
    stage.browser.forget_cookie(SESSION);
    assert_eq!(stage.who().as_deref(), Some("alice"));
    assert!(requests(stage, "POST", REGISTER).is_empty());
    assert_eq!(strength(stage), "device");
}

fn a_browser_that_may_not_sign_is_not_signed_out(stage: &mut Stage) {
    sign_in(stage, "alice");
    let mut answers = Vec::new();
    for _ in 0..8 {
        stage.browser.open(DESK);
        stage.browser.forget_cookie(SESSION);
        answers.push(stage.fetch_here("GET", "/device", None));
    }
    // It may sign six times in nine minutes, the registration included; then it says so.
    assert_eq!(answers, [200, 200, 200, 200, 200, 503, 503, 503]);
    assert_eq!(stage.browser.run("return document.cookie"), "");
    let mut names = stage.arrived();
    names.remove(SESSION);
    assert_eq!(names.get(RENEWAL), Some(&1), "its token is still there");
}

/// Cookies as an infostealer takes them, in a browser that has keys, and not this one.
fn a_copied_jar_in_another_profile_dies_with_its_cookie(stage: &mut Stage) {
    sign_in(stage, "alice");
    stage.browser.open(DESK);
    let jar = [SESSION, RENEWAL].map(|name| (name, stage.browser.cookie(name)));
    let mut thief = Browser::start(stage.kind(), &folder().expect("the folder of tests/browsers"));
    thief.open(DESK);
    for (name, value) in &jar {
        thief.put_cookie(name, value);
    }
    let user = "const answer = await fetch('/'); return (await answer.json()).user";
    assert_eq!(thief.run(user), "alice", "while it is fresh");
    stage.pass(331);
    thief.open(&format!("{APP}/pages/desk?again"));
    assert_eq!(thief.run(user), json!(null));
    thief.open(&format!("{APP}/"));
    assert_eq!(thief.run(user), json!(null), "a page that loads itself again finds no key either");
    assert_eq!(stage.who().as_deref(), Some("alice"));
    assert_eq!(thief.run(user), json!(null), "the copy does not come back with it");
    thief.close();
}

fn a_payment_is_held_until_the_device_has_proven_itself(stage: &mut Stage) {
    sign_in(stage, "alice");
    stage.browser.open(DESK);
    assert_eq!(stage.fetch_here("POST", "/prove", None), 200);
    for _ in 0..2 {
        stage.pass(121);
        stage.seen.forget();
        let script = "const answer = await fetch('/prove', { method: 'POST', body: '42 to bob' });
                      return [answer.status, await answer.text()];";
        assert_eq!(stage.browser.run(script), json!([200, "42 to bob"]), "method and body as they were");
        let asked = requests(stage, "POST", "/prove");
        assert_eq!(asked.iter().map(|request| request.status).collect::<Vec<_>>(), [307, 200]);
        assert_eq!(requests(stage, "POST", REFRESH).len(), 1);
    }
    // As a form, which is a navigation.
    stage.pass(121);
    stage.submit(DESK, "/prove", "<input name=to value=bob>");
    assert_eq!(stage.text(), "to=bob");
}

/// One that may learn by the time it takes whether somebody is signed in.
fn a_link_from_a_named_site_is_refreshed_before_it_is_followed(stage: &mut Stage) {
    sign_in(stage, "alice");
    for (from, site) in [(OTHER, "cross-site"), (SIBLING, "same-site")] {
        stage.browser.open(DESK);
        stage.browser.forget_cookie(SESSION);
        stage.open_page(&format!("{from}/"), &format!("<a href='{APP}/client'>go</a>"));
        stage.seen.forget();
        stage.browser.click("a");
        stage.text();
        let pages = requests(stage, "GET", "/client");
        assert_eq!(
            pages.iter().map(|page| page.site.as_str()).collect::<Vec<_>>(),
            [site],
            "no page comes between"
        );
        assert_eq!(pages.iter().map(|page| page.cookies(SESSION)).collect::<Vec<_>>(), [1]);
    }
}

fn every_host_of_the_site_has_it_refreshed(stage: &mut Stage) {
    let session = "__Secure-session";
    // Before the domain itself says that the application may, the browser binds nothing.
    stage.sign_in("alice");
    assert_eq!(stage.seen.wait("POST", REGISTER).status, 200);
    stage.browser.open(DESK);
    stage.browser.forget_cookie(session);
    stage.seen.forget();
    assert_eq!(stage.who(), None);
    assert!(requests(stage, "POST", REFRESH).is_empty(), "it has kept no key");
    stage.put_file(
        "https://site.test/.well-known/device-bound-sessions",
        r#"{"registering_origins":["https://app.site.test"]}"#,
    );
    sign_in(stage, "alice");
    for sibling in [SIBLING, "https://site.test"] {
        stage.browser.open(DESK);
        stage.browser.forget_cookie(session);
        stage.open_page(&format!("{sibling}/page"), &format!("<a href='{APP}/client'>go</a>"));
        // Its own pages are in scope as well: the browser has refreshed before the first of them.
        assert_eq!(
            requests(stage, "POST", REFRESH).last().map(|request| request.status),
            Some(200),
            "{sibling}"
        );
        stage.seen.forget();
        stage.browser.click("a");
        stage.text();
        let pages = requests(stage, "GET", "/client");
        assert_eq!(pages.iter().map(|page| page.cookies(session)).collect::<Vec<_>>(), [1]);
    }
    assert_eq!(stage.who().as_deref(), Some("alice"));
}

/// How much later a page comes where the browser refreshes first. It prints figures and holds nothing to them.
#[test]
#[ignore = "it measures: tests/browsers cargo test --all-features --test browser -- --ignored --nocapture"]
fn what_a_refresh_costs_a_page() {
    play_with(Kind::BindingChromium, OFFERS, |stage| {
        sign_in(stage, "alice");
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..40 {
            for (refreshes, times) in [false, true].into_iter().zip(&mut times) {
                stage.browser.open(DESK);
                if refreshes {
                    stage.browser.forget_cookie(SESSION);
                }
                stage.browser.open(&format!("{APP}/client"));
                let script =
                    "const [page] = performance.getEntriesByType('navigation'); return page.responseEnd";
                times.push(stage.browser.run(script).as_f64().expect("milliseconds"));
            }
        }
        for (what, times) in ["with its cookie", "after a refresh"].iter().zip(&mut times) {
            times.sort_by(f64::total_cmp);
            eprintln!("MEASURED a page {what}: median {:.1} ms, worst of 40 {:.1} ms", times[20], times[39]);
        }
    });
}
