//! The lower tier in real browsers: the script makes a key that no script can export, renews by it, and has requests wait.

use serde_json::json;

use crate::{
    bound::{requests, strength_here},
    driver::poll,
    jar::RENEWAL,
    stage::{APP, DESK, OTHER, Stage},
};

crate::in_browser!(on_chromium Chromium with KEEPS;
    a_login_is_bound_to_a_key_that_no_script_can_export,
    a_page_that_is_opened_late_arrives_at_its_address,
    a_link_from_another_site_arrives_signed_in,
    fifty_requests_at_once_wait_for_one_renewal,
    frames_share_one_key,
    a_form_waits,
    a_lost_key_ends_the_session_and_nothing_goes_round,
    a_copied_jar_is_dead_when_its_cookie_is,
    a_page_that_cannot_renew_says_so,
    the_page_leads_to_no_other_site,
    a_signed_out_user_stays_signed_out,
);

crate::in_browser!(on_firefox Firefox with KEEPS;
    a_login_is_bound_to_a_key_that_no_script_can_export,
    a_page_that_is_opened_late_arrives_at_its_address,
    a_link_from_another_site_arrives_signed_in,
    fifty_requests_at_once_wait_for_one_renewal,
    frames_share_one_key,
    a_form_waits,
    a_lost_key_ends_the_session_and_nothing_goes_round,
    a_page_that_cannot_renew_says_so,
    a_signed_out_user_stays_signed_out,
);

crate::in_browser!(on_webkitgtk WebKitGtk with KEEPS;
    a_login_is_bound_to_a_key_that_no_script_can_export,
    a_page_that_is_opened_late_arrives_at_its_address,
    a_link_from_another_site_arrives_signed_in,
    fifty_requests_at_once_wait_for_one_renewal,
    a_form_waits,
    a_lost_key_ends_the_session_and_nothing_goes_round,
);

crate::in_browser!(on_binding_chromium BindingChromium with KEEPS;
    a_browser_that_binds_by_itself_comes_first,
);

const KEEPS: &[&str] = &["--device-binding", "offer", "--software-keys", "on"];

const KEY: &str = "/portcullis/key";
const PAGE: &str = "/portcullis/renew";

/// As a page of the site has it.
const SCRIPT: &str = "<script src=/portcullis/keeper.js defer></script>";

/// Signs in, and opens a page with the script once the browser's own turn is over.
fn sign_in(stage: &mut Stage, user: &str) {
    stage.sign_in(user);
    stage.pass(3);
    stage.seen.forget();
    stage.open_page(DESK, SCRIPT);
    poll(|| (strength_here(stage) == "software_key").then_some(())).expect("the session is bound");
    stage.seen.forget();
}

/// The sum of what the script has asked.
fn asked(stage: &Stage) -> usize {
    requests(stage, "POST", KEY).len()
}

fn a_login_is_bound_to_a_key_that_no_script_can_export(stage: &mut Stage) {
    sign_in(stage, "alice");
    let tried = stage.browser.run(
        "const opened = await new Promise((done) => {
             const opening = indexedDB.open('portcullis');
             opening.onsuccess = () => done(opening.result);
         });
         const own = await new Promise((done) => {
             const request = opened.transaction('keys').objectStore('keys').get('own');
             request.onsuccess = () => done(request.result);
         });
         opened.close();
         const refused = async (form) => {
             try { await crypto.subtle.exportKey(form, own.key); return 'exported'; } catch (error) { return error.name; }
         };
         return [own.key.type, own.key.extractable, await refused('jwk'), await refused('pkcs8')];",
    );
    assert_eq!(tried, json!(["private", false, "InvalidAccessError", "InvalidAccessError"]));
    for _ in 0..3 {
        stage.open_page(DESK, SCRIPT);
        assert_eq!(strength_here(stage), "software_key");
    }
    assert_eq!(asked(stage), 0, "while it is fresh nothing is asked");
}

fn a_page_that_is_opened_late_arrives_at_its_address(stage: &mut Stage) {
    sign_in(stage, "alice");
    for _ in 0..2 {
        stage.pass(301);
        stage.seen.forget();
        let path = "/client?from=elsewhere&x=%2F";
        stage.browser.open(&format!("{APP}{path}#part"));
        let address = shown(stage);
        assert_eq!(address.as_deref(), Some(format!("{APP}{path}#part").as_str()));
        assert_eq!(asked(stage), 1, "one round trip");
        assert_eq!(stage.who().as_deref(), Some("alice"));
    }
}

/// Waits until a page of the application is shown, and gives its address.
fn shown(stage: &mut Stage) -> Option<String> {
    poll(|| {
        let address = stage.browser.try_run("return document.querySelector('pre') && location.href").ok()?;
        address.as_str().map(str::to_owned)
    })
}

fn a_link_from_another_site_arrives_signed_in(stage: &mut Stage) {
    sign_in(stage, "alice");
    stage.pass(301);
    stage.open_page(&format!("{OTHER}/"), &format!("<a href='{APP}/client?a=b'>go</a>"));
    stage.browser.click("a");
    assert_eq!(shown(stage).as_deref(), Some(format!("{APP}/client?a=b").as_str()));
    assert_eq!(stage.who().as_deref(), Some("alice"));
}

fn fifty_requests_at_once_wait_for_one_renewal(stage: &mut Stage) {
    sign_in(stage, "alice");
    stage.pass(301);
    let statuses = stage.browser.run(
        "const all = Array.from({ length: 50 }, (_, at) => fetch('/data/note?' + at, { method: 'POST', body: 'x' }));
         return (await Promise.all(all)).map((answer) => answer.status);",
    );
    assert_eq!(statuses, json!(vec![204; 50]));
    assert_eq!(asked(stage), 1);
    assert_eq!(stage.fetch_here("GET", "/data/note", None), 200);
    assert_eq!(strength_here(stage), "software_key");
}

fn frames_share_one_key(stage: &mut Stage) {
    stage.sign_in("alice");
    stage.pass(3);
    stage.open_page(DESK, SCRIPT);
    stage.seen.forget();
    let frames = format!("{APP}/pages/frames");
    stage.open_page(&frames, &format!("{SCRIPT}{}", format!("<iframe src={DESK}></iframe>").repeat(4)));
    poll(|| (strength_here(stage) == "software_key").then_some(())).expect("the session is bound");
    stage.pass(301);
    stage.seen.forget();
    // Each asks at the same time, as tabs do.
    let users = stage.browser.run(
        "const ask = async (from) => (await (await from.fetch('/')).json()).user;
         return await Promise.all([window, ...Array.from(window.frames)].map(ask));",
    );
    assert_eq!(users, json!(vec!["alice"; 5]));
    assert!((1..=5).contains(&asked(stage)), "one after the other, and none is refused");
    assert_eq!(stage.who().as_deref(), Some("alice"));
}

fn a_form_waits(stage: &mut Stage) {
    sign_in(stage, "alice");
    let form = "<form method=post action=/data/note><input name=a value=b><button>go</button></form>";
    stage.open_page(DESK, &format!("{SCRIPT}{form}"));
    // As after a night with the lid closed.
    stage.pass(301);
    stage.browser.run("localStorage.setItem('portcullis', Date.now() - 1)");
    stage.seen.forget();
    stage.browser.click("button");
    assert_eq!(stage.seen.wait("POST", "/data/note").status, 204);
    assert_eq!(asked(stage), 1);
    assert_eq!(stage.fetch("GET", "/data/note", None), 200);
    assert_eq!(stage.who().as_deref(), Some("alice"));
}

fn a_lost_key_ends_the_session_and_nothing_goes_round(stage: &mut Stage) {
    sign_in(stage, "alice");
    // The browser has thrown its storage away, and kept its cookies.
    stage.open_page(DESK, "");
    stage.browser.run("await new Promise((done) => { indexedDB.deleteDatabase('portcullis').onsuccess = done; }); localStorage.clear();");
    stage.pass(301);
    stage.seen.forget();
    stage.browser.open(&format!("{APP}/client"));
    assert_eq!(shown(stage).as_deref(), Some(format!("{APP}/client").as_str()));
    assert_eq!(requests(stage, "GET", PAGE).len(), 0, "its path has a query");
    assert_eq!(asked(stage), 2, "what to sign, and that the key is lost");
    assert_eq!(stage.who(), None);
    assert!(!stage.arrived().contains_key(RENEWAL));
    stage.sign_in("alice");
    assert_eq!(stage.who().as_deref(), Some("alice"));
}

fn a_copied_jar_is_dead_when_its_cookie_is(stage: &mut Stage) {
    sign_in(stage, "alice");
    let user_agent = stage.browser.run("return navigator.userAgent").as_str().expect("a text").to_owned();
    let mut thief = stage.lab.browser();
    thief.user_agent = Some(user_agent.leak());
    for name in ["__Host-session", RENEWAL] {
        thief.jar.put(name, stage.browser.cookie(name));
    }
    assert_eq!(stage.ask(&thief, "/").user().as_deref(), Some("alice"), "while it is fresh");
    stage.pass(301);
    assert_eq!(stage.ask(&thief, "/").user(), None);
    assert_eq!(stage.who().as_deref(), Some("alice"));
    assert_eq!(stage.ask(&thief, "/").user(), None);
}

/// Where something in between throws the new cookies away, or answers nothing.
fn a_page_that_cannot_renew_says_so(stage: &mut Stage) {
    sign_in(stage, "alice");
    stage.browser.run("sessionStorage.setItem('portcullis-came', Array(3).fill(Date.now()).join(' '))");
    stage.browser.open(&format!("{APP}{PAGE}?to=/client"));
    let says = "const failed = document.getElementById('failed');
                return failed && !failed.hidden && document.getElementById('again').href";
    let link = poll(|| stage.browser.try_run(says).ok().filter(serde_json::Value::is_string));
    assert_eq!(link, Some(json!(format!("{APP}/client"))));
    assert_eq!(asked(stage), 0, "it goes round no more");
}

fn the_page_leads_to_no_other_site(stage: &mut Stage) {
    sign_in(stage, "alice");
    for to in
        ["//other.test/", "https://other.test/", "/%5Cother.test/", "@other.test/", "javascript:alert(1)", ""]
    {
        stage.open_page(DESK, "");
        stage.browser.run("sessionStorage.clear()");
        stage.seen.forget();
        stage.browser.open(&format!("{APP}{PAGE}?to={to}"));
        let page = poll(|| {
            let mut seen = stage.seen.all().into_iter();
            seen.find(|seen| seen.method == "GET" && !seen.path.starts_with("/portcullis"))
        });
        assert!(page.is_some(), "{to}");
        assert_eq!(stage.seen.elsewhere(), 0, "{to}");
    }
}

fn a_signed_out_user_stays_signed_out(stage: &mut Stage) {
    sign_in(stage, "alice");
    assert_eq!(stage.fetch_here("POST", "/logout", None), 204);
    stage.open_page(DESK, SCRIPT);
    assert_eq!(stage.who(), None);
    stage.pass(301);
    assert_eq!(stage.who(), None);
    // A minute later the script looks again whether somebody has signed in.
    stage.open_page(DESK, "");
    stage.browser.run("localStorage.setItem('portcullis-asked', Date.now() - 60_000)");
    sign_in(stage, "bob");
    assert_eq!(stage.who().as_deref(), Some("bob"));
}

fn a_browser_that_binds_by_itself_comes_first(stage: &mut Stage) {
    stage.sign_in("alice");
    stage.open_page(DESK, SCRIPT);
    poll(|| (strength_here(stage) == "device").then_some(())).expect("the session is bound");
    let remembered = poll(|| {
        let told = stage.browser.try_run("return sessionStorage.getItem('portcullis')").ok()?;
        told.as_str().map(str::to_owned)
    });
    assert_eq!(remembered.as_deref(), Some("device"));
    stage.seen.forget();
    stage.open_page(DESK, SCRIPT);
    assert_eq!(strength_here(stage), "device");
    assert_eq!(asked(stage), 0, "it asks no more");
}
