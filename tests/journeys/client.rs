//! The client a session belongs to: what may change about it, and what may not.

use std::net::IpAddr;

use http::StatusCode;
use serde_json::Value;

use crate::{
    browser::{Browser, CHROME, FIREFOX_ON_WINDOWS, FIREFOX_UPDATED},
    handlers::{details, reauthenticate, recent, who},
    jar::SESSION,
    stage::{FRESH, Stage},
};

on_every_store!(
    another_browser_family_is_nobody_and_the_owner_is_unaffected,
    an_updated_browser_is_the_same_client,
    a_move_within_the_network_is_the_same_client,
    another_network_is_admitted_noted_and_marked_at_the_next_renewal,
    another_platform_is_admitted_noted_and_marked_at_the_next_renewal,
    a_change_stays_marked_until_the_next_authentication,
    a_change_never_becomes_what_the_session_is_bound_to,
    a_lone_token_from_another_network_is_noted_as_well,
    a_changed_client_is_asked_to_step_up,
);

const ELSEWHERE: [u8; 4] = [198, 51, 100, 7];

async fn changed(browser: &mut Browser) -> bool {
    let told: Value = serde_json::from_str(&browser.visit(details).await.ok()).unwrap();
    told["context_changed"].as_bool().unwrap()
}

async fn another_browser_family_is_nobody_and_the_owner_is_unaffected(stage: Stage) {
    let owner = stage.signed_in("alice").await;
    let stranger = stage.browser().ask(who).await;
    for span in [FRESH / 2, FRESH] {
        for user_agent in [Some(CHROME), Some("curl/8.5.0"), Some(""), None] {
            let mut thief = owner.clone();
            thief.user_agent = user_agent;
            stage.forget();
            let answer = thief.ask(who).await;
            assert_eq!(answer.ok(), "nobody", "{user_agent:?}");
            assert_eq!(answer.headers, stranger.headers);
            assert_eq!(stage.store.calls(), [""; 0]);
            assert_eq!(stage.events.names(), ["session_refused"]);
        }
        // The token alone says as much of whose it is.
        let mut lone = owner.with_jar(owner.jar.without(SESSION));
        lone.user_agent = Some(CHROME);
        assert_eq!(lone.ask(who).await.ok(), "nobody");
        // Two fields are none: proxies disagree on which one counts.
        let twice = owner.with_field("user-agent", CHROME);
        assert_eq!(twice.ask(who).await.ok(), "nobody");
        assert_eq!(stage.store.calls(), [""; 0]);
        stage.pass(span);
    }
    assert_eq!(owner.ask(who).await.ok(), "alice");
}

async fn an_updated_browser_is_the_same_client(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    browser.user_agent = Some(FIREFOX_UPDATED);
    assert_eq!(browser.who().await, "alice");
    for _ in 0..3 {
        stage.pass(FRESH);
        assert_eq!(browser.who().await, "alice");
    }
    assert!(!changed(&mut browser).await);
    assert_eq!(stage.events.names(), ["session_renewed"; 3]);
}

async fn a_move_within_the_network_is_the_same_client(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    for address in ["192.0.2.200", "::ffff:192.0.2.9", "2001:db8:1:2::3", "2001:db8:1:9::9", "192.0.2.7"] {
        browser.address = address.parse().unwrap();
        assert_eq!(browser.who().await, "alice");
        stage.pass(FRESH);
        assert!(!changed(&mut browser).await, "{address}");
    }
    assert_eq!(stage.events.names(), ["session_renewed"; 5]);
}

/// What is promised of any change that does not refuse.
async fn is_admitted_noted_and_marked(stage: &Stage, change: impl Fn(&mut Browser)) {
    let mut browser = stage.signed_in("alice").await;
    change(&mut browser);
    assert_eq!(browser.who().await, "alice");
    assert_eq!(stage.events.names(), ["session_context_changed"]);
    assert_eq!(stage.store.calls(), [""; 0]);
    stage.pass(FRESH);
    assert!(changed(&mut browser).await);
    stage.forget();
    assert_eq!(browser.who().await, "alice");
    assert_eq!(stage.events.names(), [""; 0], "what is marked is not told at every request");
}

async fn another_network_is_admitted_noted_and_marked_at_the_next_renewal(stage: Stage) {
    is_admitted_noted_and_marked(&stage, |browser| browser.address = IpAddr::from(ELSEWHERE)).await;
}

async fn another_platform_is_admitted_noted_and_marked_at_the_next_renewal(stage: Stage) {
    is_admitted_noted_and_marked(&stage, |browser| browser.user_agent = Some(FIREFOX_ON_WINDOWS)).await;
}

async fn a_change_stays_marked_until_the_next_authentication(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    browser.address = IpAddr::from(ELSEWHERE);
    stage.pass(FRESH);
    assert!(changed(&mut browser).await);
    let mut home = browser.clone();
    home.address = IpAddr::from([192, 0, 2, 1]);
    stage.pass(FRESH);
    assert!(changed(&mut home).await, "also back at home");
    home.visit(reauthenticate).await.ok();
    assert!(!changed(&mut home).await);
    stage.pass(FRESH);
    assert!(!changed(&mut home).await);
    let mut anew = home.clone();
    anew.address = IpAddr::from(ELSEWHERE);
    anew.login("alice").await;
    assert!(!changed(&mut anew).await, "a login binds to where it was");
    stage.pass(FRESH);
    assert!(!changed(&mut anew).await);
}

/// A80.
async fn a_change_never_becomes_what_the_session_is_bound_to(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    browser.user_agent = Some(FIREFOX_ON_WINDOWS);
    for _ in 0..3 {
        stage.pass(FRESH);
        assert!(changed(&mut browser).await);
    }
    // The mark lasts, and the next echo from here is still from another client.
    let thief = browser.clone();
    stage.pass(FRESH);
    browser.who().await;
    stage.forget();
    assert_eq!(thief.ask(who).await.ok(), "nobody");
    assert_eq!(stage.events.names(), ["renewal_from_other_client"]);
}

/// A01: "never silent". Whoever took the token alone must not be quieter than whoever took both cookies.
async fn a_lone_token_from_another_network_is_noted_as_well(stage: Stage) {
    let mut thief = stage.signed_in("alice").await;
    thief.address = IpAddr::from(ELSEWHERE);
    thief.jar = thief.jar.without(SESSION);
    stage.pass(FRESH);
    assert!(changed(&mut thief).await);
    let events = stage.events.names();
    assert!(events.contains(&"session_context_changed"), "{events:?}");
}

/// A01, A80: whoever copied the cookies gets no further than the pages that ask for nothing.
async fn a_changed_client_is_asked_to_step_up(stage: Stage) {
    let stage = stage.rebuilt(|builder| builder.recent(FRESH * 3));
    stage.layer.ready().await.unwrap();
    let mut thief = stage.signed_in("alice").await;
    assert_eq!(thief.visit(recent).await.ok(), "recent");
    thief.address = IpAddr::from(ELSEWHERE);
    stage.pass(FRESH);
    assert!(changed(&mut thief).await);
    assert_eq!(thief.visit(recent).await.status, StatusCode::FORBIDDEN);
}
