//! Cookies of the application that are sealed on their way out and opened on their way in (A38, A39).

use std::time::Duration;

use http::{HeaderMap, header};

use crate::{
    browser::{Answer, Browser},
    handlers::{login, logout, reauthenticate, who},
    stage::{FRESH, Stage},
};

on_every_store!(
    a_handler_sees_what_it_set_and_the_browser_cannot_read_it,
    a_cookie_belongs_to_the_session_it_was_set_in,
    it_follows_the_session_to_a_new_id,
    its_lifetime_is_inside_the_seal,
    a_value_that_does_not_open_is_absent_and_told,
    two_of_one_name_are_absent,
    a_removal_passes_as_it_is,
    a_value_that_would_be_too_long_is_dropped_and_told,
    a_sealed_value_may_hold_anything,
    a_name_that_a_laxer_jar_takes_for_a_sealed_one_is_absent,
    many_of_one_name_cost_no_more_than_others,
    a_request_refused_for_now_writes_over_no_sealed_cookie,
    other_cookies_are_left_as_they_are,
);

fn sealing(stage: &Stage) -> Stage {
    stage.rebuilt(|builder| builder.seal_cookie("prefs").seal_cookie("__Host-cart"))
}

async fn set() -> [(http::HeaderName, &'static str); 1] {
    [(header::SET_COOKIE, "prefs=dark.wide; Path=/; Max-Age=600")]
}

async fn cookies(headers: HeaderMap) -> String {
    let fields = headers.get_all(header::COOKIE).iter().map(|field| field.to_str().unwrap());
    let pairs = fields.flat_map(|field| field.split("; ")).filter(|pair| !pair.starts_with("__Host-Http-"));
    pairs.collect::<Vec<_>>().join("; ")
}

/// The pair that an answer sets `prefs` to.
fn pair(answer: &Answer) -> String {
    let lines = answer.headers.get_all(header::SET_COOKIE).iter().map(|line| line.to_str().unwrap());
    let line = lines.filter(|line| line.starts_with("prefs=")).collect::<Vec<_>>();
    assert_eq!(line.len(), 1, "{answer:?}");
    line[0].split("; ").next().unwrap().to_owned()
}

fn holding(browser: &Browser, pair: &str) -> Browser {
    browser.with_field("cookie", pair)
}

async fn a_handler_sees_what_it_set_and_the_browser_cannot_read_it(stage: Stage) {
    let stage = sealing(&stage);
    let alice = stage.signed_in("alice").await;
    for browser in [stage.browser(), alice] {
        let (one, other) = (browser.ask(set).await, browser.ask(set).await);
        assert_ne!(pair(&one), pair(&other), "sealed anew each time");
        assert!(!pair(&one).contains("dark"));
        let line = one.headers.get(header::SET_COOKIE).unwrap().to_str().unwrap();
        assert!(line.ends_with("; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=600"), "{line}");
        for answer in [&one, &other] {
            assert_eq!(holding(&browser, &pair(answer)).ask(cookies).await.ok(), "prefs=dark.wide");
        }
        assert_eq!(
            holding(&browser, &format!("a=1; {}; b=2", pair(&one))).ask(cookies).await.ok(),
            "a=1; prefs=dark.wide; b=2"
        );
    }
}

async fn a_cookie_belongs_to_the_session_it_was_set_in(stage: Stage) {
    let stage = sealing(&stage);
    let (nobody, alice, bob) =
        (stage.browser(), stage.signed_in("alice").await, stage.signed_in("bob").await);
    let browsers = [&nobody, &alice, &bob];
    let mut pairs = Vec::new();
    for browser in browsers {
        pairs.push(pair(&browser.ask(set).await));
    }
    stage.forget();
    for (i, browser) in browsers.iter().enumerate() {
        for (j, pair) in pairs.iter().enumerate() {
            let seen = holding(browser, pair).ask(cookies).await.ok();
            assert_eq!(seen, if i == j { "prefs=dark.wide" } else { "" }, "{i} {j}");
        }
    }
    assert_eq!(stage.events.names(), ["sealed_cookie_refused"; 6]);
    let mut gone = alice.clone();
    gone.visit(logout).await.ok();
    assert_eq!(holding(&gone, &pairs[1]).ask(cookies).await.ok(), "", "not after the logout");
}

async fn it_follows_the_session_to_a_new_id(stage: Stage) {
    let stage = sealing(&stage);
    let mut alice = stage.signed_in("alice").await;
    let old = pair(&alice.ask(set).await);
    let answer = holding(&alice, &old).ask(reauthenticate).await;
    alice.take(&answer);
    let new = pair(&answer);
    assert_eq!(holding(&alice, &new).ask(cookies).await.ok(), "prefs=dark.wide");
    assert_eq!(holding(&alice, &old).ask(cookies).await.ok(), "");
    stage.pass(Duration::from_secs(300));
    let answer = holding(&alice, &new).ask(who).await;
    assert!(
        answer.headers.get_all(header::SET_COOKIE).iter().all(|line| !line.as_bytes().starts_with(b"prefs")),
        "a renewal keeps the id"
    );
    alice.take(&answer);
    stage.pass(Duration::from_secs(299));
    assert_eq!(holding(&alice, &new).ask(cookies).await.ok(), "prefs=dark.wide");
    stage.pass(Duration::from_secs(1));
    assert_eq!(holding(&alice, &new).ask(cookies).await.ok(), "", "the lifetime does not begin anew");
    // Another user's login takes nothing along.
    let pair_now = pair(&alice.ask(set).await);
    let answer = holding(&alice, &pair_now).ask(login("bob")).await;
    assert!(
        !answer.headers.get_all(header::SET_COOKIE).iter().any(|line| line.as_bytes().starts_with(b"prefs"))
    );
}

async fn its_lifetime_is_inside_the_seal(stage: Stage) {
    let stage = sealing(&stage);
    let browser = stage.browser();
    let pair = pair(&browser.ask(set).await);
    stage.pass(Duration::from_secs(599));
    assert_eq!(holding(&browser, &pair).ask(cookies).await.ok(), "prefs=dark.wide");
    stage.pass(Duration::from_secs(1));
    assert_eq!(holding(&browser, &pair).ask(cookies).await.ok(), "", "though the browser still sends it");
    let unsaid = browser.ask(|| async { [(header::SET_COOKIE, "prefs=x; Path=/")] }).await;
    let pair = self::pair(&unsaid);
    assert!(!unsaid.field("set-cookie").contains("Max-Age"), "a cookie of the browser's session stays one");
    stage.pass(FRESH);
    assert_eq!(holding(&browser, &pair).ask(cookies).await.ok(), "prefs=x");
    stage.pass(Duration::from_secs(12 * 3600));
    assert_eq!(holding(&browser, &pair).ask(cookies).await.ok(), "");
}

async fn a_value_that_does_not_open_is_absent_and_told(stage: Stage) {
    let other = stage.beside("https://other.example.com", stage.keys.clone());
    let other = other.rebuilt(|builder| builder);
    let (stage, browser) = (sealing(&stage), sealing(&stage).browser());
    let good = pair(&browser.ask(set).await);
    let cart = browser.ask(|| async { [(header::SET_COOKIE, "__Host-cart=dark.wide")] }).await;
    let cart = cart.field("set-cookie").split([';', '=']).nth(1).unwrap().to_owned();
    stage.forget();
    for wrong in [
        "prefs=dark.wide".to_owned(),
        "prefs=".to_owned(),
        format!("prefs={cart}"),
        good[..good.len() - 2].to_owned(),
        format!("{good}A"),
    ] {
        assert_eq!(holding(&browser, &wrong).ask(cookies).await.ok(), "", "{wrong}");
        assert_eq!(stage.events.names(), ["sealed_cookie_refused"]);
    }
    assert_eq!(holding(&browser.at(&other), &good).ask(cookies).await.ok(), good, "not sealed there");
}

async fn two_of_one_name_are_absent(stage: Stage) {
    let stage = sealing(&stage);
    let browser = stage.browser();
    let good = pair(&browser.ask(set).await);
    stage.forget();
    for pairs in [format!("{good}; prefs=x"), format!("prefs=x; a=1; {good}"), format!("{good}; {good}")] {
        assert!(!holding(&browser, &pairs).ask(cookies).await.ok().contains("prefs"));
        assert_eq!(stage.events.names(), ["sealed_cookie_refused"]);
    }
}

async fn a_removal_passes_as_it_is(stage: Stage) {
    let stage = sealing(&stage);
    let removes = || async { [(header::SET_COOKIE, "prefs=; Path=/; Max-Age=0")] };
    let answer = stage.browser().ask(removes).await;
    assert_eq!(answer.field("set-cookie"), "prefs=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax");
}

async fn a_value_that_would_be_too_long_is_dropped_and_told(stage: Stage) {
    let stage = sealing(&stage);
    let long = |length: usize| {
        move || async move { [(header::SET_COOKIE, format!("prefs={}; Path=/", "x".repeat(length)))] }
    };
    let fits = stage.browser().ask(long(2_800)).await;
    assert!(fits.field("set-cookie").len() < 4096);
    assert_eq!(holding(&stage.browser(), &pair(&fits)).ask(cookies).await.ok().len(), 2_806);
    stage.forget();
    assert_eq!(stage.browser().ask(long(3_000)).await.field("set-cookie"), "");
    assert_eq!(stage.events.names().last(), Some(&"cookie_policy"));
}

/// A library's raw JSON: the seal makes a cookie's value of it.
async fn a_sealed_value_may_hold_anything(stage: Stage) {
    let stage = sealing(&stage);
    let json = || async { [(header::SET_COOKIE, "prefs={\"a\": [1, 2]}; Path=/")] };
    let answer = stage.browser().ask(json).await;
    assert_eq!(holding(&stage.browser(), &pair(&answer)).ask(cookies).await.ok(), "prefs={\"a\": [1, 2]}");
    let elsewhere = holding(&stage.browser(), &pair(&answer)).with_field("host", "evil.example");
    assert_eq!(elsewhere.ask(cookies).await.ok(), "", "not where the request does not belong");
}

/// A jar that decodes or trims names would hand a handler what nobody sealed.
async fn a_name_that_a_laxer_jar_takes_for_a_sealed_one_is_absent(stage: Stage) {
    let stage = sealing(&stage);
    let browser = stage.browser();
    let good = pair(&browser.ask(set).await);
    stage.forget();
    for name in ["%70refs", "prefs ", "prefs\t", "%20prefs", "\"prefs\"", "prefs%20", "=prefs"] {
        let seen = holding(&browser, &format!("a=1; {name}=admin")).ask(cookies).await.ok();
        assert_eq!(seen, "a=1", "{name}");
        assert_eq!(stage.events.names(), ["sealed_cookie_refused"], "{name}");
        let beside = holding(&browser, &format!("{good}; {name}=admin")).ask(cookies).await.ok();
        assert_eq!(beside, "prefs=dark.wide", "{name}");
        stage.forget();
    }
    for other in ["prefsx=1", "xprefs=1", "%71refs=1", "Prefs=1"] {
        assert_eq!(holding(&browser, other).ask(cookies).await.ok(), other);
    }
}

/// A jar full of one name costs no more than a jar full of others, and is told of once.
async fn many_of_one_name_cost_no_more_than_others(stage: Stage) {
    let stage = sealing(&stage);
    let junk = "prefs=; ".repeat(20_000) + &"__Host-cart=; ".repeat(20_000);
    let answer =
        tokio::time::timeout(Duration::from_secs(5), holding(&stage.browser(), &junk).ask(cookies)).await;
    assert_eq!(answer.expect("in time").ok(), "");
    assert_eq!(stage.events.names(), ["sealed_cookie_refused"; 2]);
}

/// A request that is refused for now does not see the cookie, and what it sets instead must not replace it.
async fn a_request_refused_for_now_writes_over_no_sealed_cookie(stage: Stage) {
    let stage = sealing(&stage);
    let alice = stage.signed_in("alice").await;
    let embedded = alice.with_field("sec-fetch-site", "cross-site").with_field("sec-fetch-mode", "cors");
    assert_eq!(embedded.ask(set).await.field("set-cookie"), "");
}

async fn other_cookies_are_left_as_they_are(stage: Stage) {
    let stage = sealing(&stage);
    for field in ["a=1; b=\"2\"; =c; d", "a=1;b=2", ""] {
        let seen = holding(&stage.browser(), field).ask(cookies).await.ok();
        assert_eq!(seen, field);
    }
}
