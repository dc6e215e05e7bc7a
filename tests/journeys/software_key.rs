//! The lower tier: a script keeps the key where the browser keeps none, and renews by token and key together (A01, A72).

use axum::Router;
use http::{Method, StatusCode};
use portcullis::{
    DeviceBinding, RequireDevice, SessionEvent, SessionInfo, dbsc::ProofError, session::Reason,
};
use serde_json::Value;

use crate::{
    bound::{ask, navigation, refresh, register},
    browser::{Answer, Browser, CHROME, answer},
    device::{Device, Offer},
    handlers::{details, login, login_remembered, logout, page, reauthenticate, recent, who, write},
    stage::{ABSOLUTE, FRESH, GRACE, IDLE, MS, SECOND, Stage},
};

on_every_store!(
    a_login_is_bound_to_a_script_s_key,
    it_goes_on_by_token_and_key_together,
    a_copied_jar_is_dead_when_its_cookie_is,
    a_copied_profile_is_found_out,
    a_page_that_is_opened_late_comes_by_another,
    a_script_is_told_to_renew_first,
    a_lost_answer_to_the_binding_is_asked_for_again,
    a_lost_answer_to_a_renewal_is_asked_for_again,
    two_keys_for_one_login_end_it,
    a_stolen_cookie_is_worth_no_key_after_five_minutes,
    what_is_signed_for_one_use_is_worth_nothing_for_another,
    a_bad_proof_costs_nothing,
    a_browser_that_binds_by_itself_comes_first,
    a_browser_that_binds_later_takes_over,
    a_lost_key_ends_the_session,
    another_browser_with_the_profile_is_refused,
    nobody_has_nothing_to_keep,
    a_silent_store_ends_nothing,
    a_new_authentication_keeps_the_key,
    new_claims_reach_a_request_that_carries_the_old_ones,
    it_lasts_no_longer_than_a_session_without,
    a_remembered_one_that_was_silent_is_only_remembered,
    it_is_no_device,
    a_site_that_requires_a_device_takes_none,
    the_list_shows_it,
    only_the_site_s_own_pages_are_answered,
    the_script_and_the_page_are_served,
);

async fn keeping(stage: &Stage) -> Stage {
    let stage = stage.rebuilt(|builder| builder.device_binding(DeviceBinding::Offer).software_keys());
    stage.layer.ready().await.unwrap();
    stage
}

/// What the script asks, with a proof or without.
async fn call(browser: &Browser, proof: Option<&str>) -> Answer {
    let mut fields = vec![("portcullis-key", "ask")];
    fields.extend(proof.map(|proof| ("secure-session-response", proof)));
    ask(browser, "/portcullis/key", &fields).await
}

fn state(answer: &Answer) -> Value {
    serde_json::from_str(&answer.ok()).unwrap()
}

/// Asserts the state that an answer tells, and gives the challenge in it.
fn told(answer: &Answer, wanted: &str) -> String {
    let told = state(answer);
    assert_eq!(told["state"], wanted, "{answer:?}");
    told["challenge"].as_str().unwrap_or_default().to_owned()
}

async fn signed_in(stage: &Stage) -> Browser {
    let alice = stage.signed_in("alice").await;
    stage.pass(SECOND * 3);
    alice
}

/// A browser in which alice has signed in, with a key of a script's, and what that has to sign the next time.
async fn bound(stage: &Stage) -> (Browser, Device) {
    let mut alice = signed_in(stage).await;
    let mut key = Device::new(7);
    let challenge = told(&call(&alice, None).await, "unbound");
    renewed(&mut alice, &mut key, &challenge).await;
    assert_eq!(stage.events.names(), ["software_key_bound"]);
    stage.forget();
    (alice, key)
}

/// Signs `challenge`, which must be taken.
async fn renewed(browser: &mut Browser, key: &mut Device, challenge: &str) -> Answer {
    let answer = call(browser, Some(&key.by_script(challenge))).await;
    browser.take(&answer);
    key.challenge = told(&answer, "bound");
    answer
}

/// Renews by what it was told to sign the last time.
async fn renew(browser: &mut Browser, key: &mut Device) {
    let challenge = key.challenge.clone();
    renewed(browser, key, &challenge).await;
}

async fn a_login_is_bound_to_a_script_s_key(stage: Stage) {
    let stage = keeping(&stage).await;
    let mut alice = stage.signed_in("alice").await;
    let asked = state(&call(&alice, None).await);
    assert_eq!((&asked["state"], &asked["wait"]), (&"unbound".into(), &3000.into()), "the browser's turn");
    stage.pass(SECOND * 3);
    let asked = state(&call(&alice, None).await);
    assert_eq!(asked["wait"], 0);
    assert!(stage.store.calls().is_empty(), "asking costs no store call");
    let mut key = Device::new(7);
    let answer = renewed(&mut alice, &mut key, asked["challenge"].as_str().unwrap()).await;
    assert_eq!(stage.store.calls().len(), 1);
    assert_eq!(stage.events.names(), ["software_key_bound"]);
    assert_eq!(state(&answer)["lasts"], u64::try_from(FRESH.as_millis()).unwrap());
    // It ends when it would have: three seconds have passed.
    let left = Some((ABSOLUTE - SECOND * 3).as_secs());
    for name in ["__Host-session", "__Host-Http-renewal"] {
        assert_eq!(answer.cookies.max_age(name), left, "no browser refreshes it");
    }
    assert!(alice.visit(details).await.ok().contains("\"strength\":\"software_key\""));
    assert!(stage.store.calls().is_empty());
}

async fn it_goes_on_by_token_and_key_together(stage: Stage) {
    let stage = keeping(&stage).await;
    let (mut alice, mut key) = bound(&stage).await;
    for _ in 0..5 {
        stage.pass(FRESH - MS);
        assert_eq!(alice.who().await, "alice");
        stage.pass(MS);
        stage.forget();
        assert_eq!(alice.ask(who).await.ok(), "nobody", "the token alone renews nothing");
        assert!(matches!(stage.events.take()[..], [SessionEvent::Refused(_, Reason::Unproven)]));
        assert!(stage.store.calls().is_empty());
        let before = alice.jar.value("__Host-Http-renewal").map(str::to_owned);
        renew(&mut alice, &mut key).await;
        assert_eq!(stage.store.calls().len(), 1, "one call");
        assert_eq!(stage.events.names(), ["session_renewed"]);
        assert_ne!(
            alice.jar.value("__Host-Http-renewal").map(str::to_owned),
            before,
            "and the token is used up"
        );
        assert_eq!(alice.who().await, "alice");
    }
}

async fn a_copied_jar_is_dead_when_its_cookie_is(stage: Stage) {
    let stage = keeping(&stage).await;
    let before = signed_in(&stage).await;
    let mut alice = before.clone();
    let mut key = Device::new(7);
    let challenge = told(&call(&alice, None).await, "unbound");
    renewed(&mut alice, &mut key, &challenge).await;
    let mut thieves = [before, alice.clone()];
    stage.pass(FRESH);
    for thief in &mut thieves {
        assert_eq!(thief.who().await, "nobody");
        let own = Device::new(9);
        for challenge in [key.challenge.clone(), "AAAA".into()] {
            let answer = call(thief, Some(&own.by_script(&challenge))).await;
            assert_ne!(state(&answer)["state"], "bound", "{answer:?}");
            assert!(answer.cookies.is_empty());
        }
    }
    renew(&mut alice, &mut key).await;
    assert_eq!(alice.who().await, "alice", "and its user is none the wiser");
    for thief in &mut thieves {
        assert_eq!(thief.who().await, "nobody");
    }
}

/// Jar and key: what lies in a browser's profile on the disk.
async fn a_copied_profile_is_found_out(stage: Stage) {
    let stage = keeping(&stage).await;
    let (mut alice, mut key) = bound(&stage).await;
    stage.pass(FRESH);
    let (mut thief, mut copy) = (alice.clone(), key.clone());
    renew(&mut thief, &mut copy).await;
    assert_eq!(thief.who().await, "alice");
    stage.pass(FRESH);
    let challenge = told(&call(&alice, Some(&key.by_script(&key.challenge))).await, "stale");
    renewed(&mut alice, &mut key, &challenge).await;
    stage.pass(FRESH);
    stage.events.take();
    for (browser, key) in [(&mut thief, &mut copy), (&mut alice, &mut key)] {
        let answer = call(browser, Some(&key.by_script(&key.challenge))).await;
        if state(&answer)["state"] == "stale" {
            let challenge = told(&answer, "stale");
            let answer = call(browser, Some(&key.by_script(&challenge))).await;
            browser.take(&answer);
        } else {
            browser.take(&answer);
        }
    }
    assert!(stage.events.names().contains(&"authn_token_reuse"), "both have used one token");
    for browser in [&mut thief, &mut alice] {
        assert_eq!(browser.who().await, "nobody", "whoever is the user signs in again");
    }
}

async fn a_page_that_is_opened_late_comes_by_another(stage: Stage) {
    let stage = keeping(&stage).await;
    let (mut alice, mut key) = bound(&stage).await;
    stage.pass(FRESH);
    let wanted = "/portcullis/renew?to=/";
    for from in ["cross-site", "same-site", "same-origin", "none"] {
        let answer = navigation(&alice, from).ask(who).await;
        assert_eq!(
            (answer.status, answer.field("location").as_str()),
            (StatusCode::SEE_OTHER, wanted),
            "{from}"
        );
        assert_eq!(answer.field("cache-control"), "no-store");
        assert!(answer.cookies.is_empty() && answer.body.is_empty());
    }
    let address = navigation(&alice, "none").ask_at("/a%20b?c=d&e=%2F", who).await;
    assert_eq!(address.field("location"), "/portcullis/renew?to=/a%2520b%3Fc%3Dd%26e%3D%252F");
    let old_safari = alice.with_field("accept", "text/html,application/xhtml+xml");
    assert_eq!(old_safari.ask(who).await.status, StatusCode::SEE_OTHER, "it does not say that it navigates");
    renew(&mut alice, &mut key).await;
    assert_eq!(navigation(&alice, "same-origin").ask(who).await.ok(), "alice");
    // What is sent to change something never goes astray.
    stage.pass(FRESH);
    assert_eq!(navigation(&alice, "same-origin").post(who).await.ok(), "nobody");
    assert_eq!(navigation(&stage.browser(), "none").ask(who).await.ok(), "nobody");
}

async fn a_script_is_told_to_renew_first(stage: Stage) {
    let stage = keeping(&stage).await;
    let (alice, _) = bound(&stage).await;
    stage.pass(FRESH);
    let fetch = alice.with_field("sec-fetch-dest", "empty").with_field("sec-fetch-site", "same-origin");
    for _ in 0..3 {
        let answer = fetch.ask(who).await;
        answer.assert_unavailable();
        assert_eq!(answer.field("portcullis-key"), "stale");
    }
    assert_eq!(stage.events.names(), ["session_refused"], "told once, not silent");
    let image = alice.with_field("sec-fetch-dest", "image").with_field("sec-fetch-site", "same-origin");
    let picture = image.ask(write("a", "b")).await;
    assert_eq!(picture.ok(), "written", "what everybody may see, a tag of a page gets");
    assert!(picture.cookies.is_empty(), "and nothing is set over what the browser holds");
}

async fn a_lost_answer_to_the_binding_is_asked_for_again(stage: Stage) {
    let stage = keeping(&stage).await;
    let mut alice = signed_in(&stage).await;
    let mut key = Device::new(7);
    let challenge = told(&call(&alice, None).await, "unbound");
    told(&call(&alice, Some(&key.by_script(&challenge))).await, "bound");
    // The browser has not seen it. Its cookie says nothing of a key, so it is asked to bind one again.
    stage.pass(SECOND);
    let challenge = told(&call(&alice, None).await, "unbound");
    let challenge = told(&call(&alice, Some(&key.by_script(&challenge))).await, "stale");
    renewed(&mut alice, &mut key, &challenge).await;
    assert!(alice.visit(details).await.ok().contains("\"strength\":\"software_key\""));
    stage.pass(FRESH);
    assert_eq!(navigation(&alice, "none").ask(who).await.status, StatusCode::SEE_OTHER);
    renew(&mut alice, &mut key).await;
    assert_eq!(alice.who().await, "alice");
}

async fn a_lost_answer_to_a_renewal_is_asked_for_again(stage: Stage) {
    let stage = keeping(&stage).await;
    let (mut alice, mut key) = bound(&stage).await;
    for passes in [SECOND, GRACE, FRESH] {
        stage.pass(FRESH);
        told(&call(&alice, Some(&key.by_script(&key.challenge))).await, "bound");
        stage.pass(passes);
        let challenge = told(&call(&alice, Some(&key.by_script(&key.challenge))).await, "stale");
        renewed(&mut alice, &mut key, &challenge).await;
        assert_eq!(alice.who().await, "alice", "{passes:?}");
    }
}

async fn two_keys_for_one_login_end_it(stage: Stage) {
    let stage = keeping(&stage).await;
    let mut alice = signed_in(&stage).await;
    let (key, thief) = (Device::new(7), Device::new(9));
    let challenge = told(&call(&alice, None).await, "unbound");
    told(&call(&alice, Some(&thief.by_script(&challenge))).await, "bound");
    stage.forget();
    let answer = call(&alice, Some(&key.by_script(&challenge))).await;
    told(&answer, "none");
    alice.take(&answer);
    assert_eq!(stage.events.names(), ["device_already_bound", "session_revoked"]);
    assert_eq!(alice.jar.value("__Host-session"), None);
    assert_eq!(alice.who().await, "nobody");
}

async fn a_stolen_cookie_is_worth_no_key_after_five_minutes(stage: Stage) {
    let stage = keeping(&stage).await;
    let mut alice = stage.signed_in("alice").await;
    stage.pass(FRESH - MS);
    let challenge = told(&call(&alice, None).await, "unbound");
    stage.pass(MS);
    assert_eq!(alice.who().await, "alice");
    for proof in [None, Some(Device::new(9).by_script(&challenge))] {
        told(&call(&alice, proof.as_deref()).await, "none");
    }
    stage.pass(FRESH);
    // Nor later: beside the token, which would renew it alone, a signature binds nothing.
    let thief = Device::new(9);
    let challenge = told(&call(&alice, Some(&thief.by_script(&challenge))).await, "stale");
    let answer = call(&alice, Some(&thief.by_script(&challenge))).await;
    told(&answer, "none");
    alice.take(&answer);
    assert_eq!(alice.who().await, "alice");
    assert!(alice.visit(details).await.ok().contains("\"strength\":\"context\""));
}

async fn what_is_signed_for_one_use_is_worth_nothing_for_another(stage: Stage) {
    let stage = keeping(&stage).await;
    let mut alice = stage.browser();
    let offer = Offer::read(&alice.visit(login("alice")).await.field("secure-session-registration")).unwrap();
    stage.pass(SECOND * 3);
    let key = Device::new(7);
    let challenge = told(&call(&alice, None).await, "unbound");
    // A script's key is never bound as a device: neither its challenge nor its proof is taken for one.
    assert_eq!(register(&alice, &key.registration(&challenge)).await.status, StatusCode::FORBIDDEN);
    assert_eq!(register(&alice, &key.by_script(&offer.challenge)).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(register(&alice, &key.by_script(&challenge)).await.status, StatusCode::BAD_REQUEST);
    told(&call(&alice, Some(&key.by_script(&offer.challenge))).await, "unbound");
    told(&call(&alice, Some(&key.registration(&challenge))).await, "unbound");
    let (mut bob, mut other) = bound(&stage).await;
    told(&call(&alice, Some(&key.by_script(&other.challenge))).await, "unbound");
    renew(&mut bob, &mut other).await;
}

async fn a_bad_proof_costs_nothing(stage: Stage) {
    let stage = keeping(&stage).await;
    let (mut alice, mut key) = bound(&stage).await;
    stage.pass(FRESH);
    stage.forget();
    let challenge = key.challenge.clone();
    let other = Device::new(9).by_script(&challenge);
    let (_, signature) = other.rsplit_once('.').unwrap();
    let own = key.by_script(&challenge);
    let forged = format!("{}.{signature}", own.rsplit_once('.').unwrap().0);
    let without_key = key.sign(r#"{"alg":"ES256","typ":"portcullis-key+jwt"}"#, &challenge);
    for (proof, error) in [
        (other.as_str(), ProofError::Signature),
        (forged.as_str(), ProofError::Signature),
        (without_key.as_str(), ProofError::Signature),
        ("x.y.z", ProofError::Malformed),
        (&key.registration(&challenge), ProofError::Type),
    ] {
        let answer = call(&alice, Some(proof)).await;
        told(&answer, "stale");
        assert!(answer.cookies.is_empty());
        let events = stage.events.take();
        assert!(
            matches!(events[..], [SessionEvent::DeviceProofRefused(_, found)] if found == error),
            "{proof}: {events:?}"
        );
    }
    assert!(stage.store.calls().is_empty());
    let bare = alice.with_jar(crate::jar::Jar::default());
    told(&call(&bare, Some(&own)).await, "none");
    renew(&mut alice, &mut key).await;
}

async fn a_browser_that_binds_by_itself_comes_first(stage: Stage) {
    let stage = keeping(&stage).await;
    let mut alice = stage.browser();
    let offer = Offer::read(&alice.visit(login("alice")).await.field("secure-session-registration")).unwrap();
    let before = alice.clone();
    let challenge = told(&call(&alice, None).await, "unbound");
    let mut device = crate::bound::bind(&mut alice, &offer).await;
    told(&call(&alice, None).await, "device");
    // Also where the page still holds the cookie from before.
    told(&call(&before, Some(&Device::new(9).by_script(&challenge))).await, "device");
    stage.pass(FRESH);
    refresh(&mut alice, &mut device).await;
    assert!(alice.visit(details).await.ok().contains("\"strength\":\"device\""));
}

async fn a_browser_that_binds_later_takes_over(stage: Stage) {
    let stage = keeping(&stage).await;
    let mut alice = stage.browser();
    let offer = Offer::read(&alice.visit(login("alice")).await.field("secure-session-registration")).unwrap();
    stage.pass(SECOND * 3);
    let (mut key, challenge) = (Device::new(9), told(&call(&alice, None).await, "unbound"));
    renewed(&mut alice, &mut key, &challenge).await;
    let scripted = alice.clone();
    let mut device = crate::bound::bind(&mut alice, &offer).await;
    assert!(alice.visit(details).await.ok().contains("\"strength\":\"device\""));
    stage.pass(FRESH);
    // The script's key is worth nothing any more, and it is told to go.
    let answer = call(&scripted, Some(&key.by_script(&key.challenge))).await;
    told(&answer, "device");
    assert_eq!(answer.cookies.max_age("__Host-session"), Some(0), "so that the browser refreshes");
    refresh(&mut alice, &mut device).await;
    assert_eq!(alice.who().await, "alice");
}

async fn a_lost_key_ends_the_session(stage: Stage) {
    let stage = keeping(&stage).await;
    let (mut alice, key) = bound(&stage).await;
    let copy = alice.clone();
    stage.pass(FRESH);
    told(&call(&alice, None).await, "stale");
    stage.forget();
    let answer = ask(&alice, "/portcullis/key", &[("portcullis-key", "lost")]).await;
    told(&answer, "none");
    alice.take(&answer);
    assert_eq!(stage.events.names(), ["authn_logout"]);
    assert_eq!(navigation(&alice, "none").ask(who).await.ok(), "nobody", "no page comes between any more");
    told(&call(&copy, Some(&key.by_script(&key.challenge))).await, "none");
    // It is no way to sign a session out that has none.
    let mut other = stage.signed_in("alice").await;
    ask(&other, "/portcullis/key", &[("portcullis-key", "lost")]).await;
    assert_eq!(other.who().await, "alice");
}

async fn another_browser_with_the_profile_is_refused(stage: Stage) {
    let stage = keeping(&stage).await;
    let (mut alice, mut key) = bound(&stage).await;
    stage.pass(FRESH);
    let chrome = Browser { user_agent: Some(CHROME), ..alice.clone() };
    stage.forget();
    told(&call(&chrome, Some(&key.by_script(&key.challenge))).await, "none");
    assert_eq!(navigation(&chrome, "none").ask(who).await.ok(), "nobody");
    assert!(
        stage.events.take().iter().all(|event| matches!(event, SessionEvent::Refused(_, Reason::Context(_))))
    );
    renew(&mut alice, &mut key).await;
    assert_eq!(alice.who().await, "alice");
}

async fn nobody_has_nothing_to_keep(stage: Stage) {
    let stage = keeping(&stage).await;
    let mut stranger = stage.browser();
    told(&call(&stranger, None).await, "none");
    stranger.visit(write("cart", "apples")).await.ok();
    told(&call(&stranger, None).await, "none");
    let (mut alice, key) = bound(&stage).await;
    alice.visit(logout).await.ok();
    told(&call(&alice, Some(&key.by_script(&key.challenge))).await, "none");
    let twice = signed_in(&stage).await.with_field("cookie", "__Host-session=x");
    told(&call(&twice, None).await, "none");
}

async fn a_silent_store_ends_nothing(stage: Stage) {
    let stage = keeping(&stage).await;
    let (alice, key) = bound(&stage).await;
    let fresh = signed_in(&stage).await;
    let challenge = told(&call(&fresh, None).await, "unbound");
    stage.pass(FRESH - SECOND * 4);
    stage.store.goes_down();
    call(&fresh, Some(&Device::new(9).by_script(&challenge))).await.assert_unavailable();
    stage.pass(SECOND * 4);
    call(&alice, Some(&key.by_script(&key.challenge))).await.assert_unavailable();
    stage.store.comes_back();
    stage.pass(SECOND * 5);
    let challenge = told(&call(&alice, Some(&key.by_script(&key.challenge))).await, "bound");
    assert!(!challenge.is_empty());
}

async fn a_new_authentication_keeps_the_key(stage: Stage) {
    async fn cycle(session: portcullis::Session) {
        session.cycle_id().await.unwrap();
        session.save().await.unwrap();
    }
    let stage = keeping(&stage).await;
    let (mut alice, mut key) = bound(&stage).await;
    stage.pass(FRESH - SECOND);
    alice.visit(reauthenticate).await.ok();
    assert_eq!(alice.visit(recent).await.ok(), "recent");
    alice.visit(cycle).await.ok();
    assert!(alice.visit(details).await.ok().contains("\"strength\":\"software_key\""));
    stage.pass(SECOND);
    assert_eq!(alice.ask(who).await.ok(), "nobody", "it proves nothing of the key");
    renew(&mut alice, &mut key).await;
    assert!(alice.visit(details).await.ok().contains("\"strength\":\"software_key\""));
}

async fn new_claims_reach_a_request_that_carries_the_old_ones(stage: Stage) {
    async fn promote(auth: portcullis::Auth) {
        auth.set_claims(serde_json::json!({ "role": "editor" })).await.unwrap();
    }
    let stage = keeping(&stage).await;
    let (mut alice, mut key) = bound(&stage).await;
    let mut under_way = alice.clone();
    alice.visit(promote).await.ok();
    for browser in [&mut under_way, &mut alice] {
        let says = browser.visit(details).await.ok();
        assert!(
            says.contains("\"role\":\"editor\"") && says.contains("\"strength\":\"software_key\""),
            "{says}"
        );
    }
    stage.pass(FRESH);
    assert_eq!(under_way.ask(who).await.ok(), "nobody");
    renew(&mut alice, &mut key).await;
    assert!(alice.visit(details).await.ok().contains("\"role\":\"editor\""));
}

async fn it_lasts_no_longer_than_a_session_without(stage: Stage) {
    let stage = keeping(&stage).await;
    let (mut alice, mut key) = bound(&stage).await;
    stage.pass(IDLE - MS);
    let challenge = told(&call(&alice, None).await, "stale");
    renewed(&mut alice, &mut key, &challenge).await;
    assert_eq!(alice.who().await, "alice");
    stage.pass(IDLE);
    let challenge = told(&call(&alice, None).await, "stale");
    told(&call(&alice, Some(&key.by_script(&challenge))).await, "none");
    assert_eq!(alice.who().await, "nobody");
}

async fn a_remembered_one_that_was_silent_is_only_remembered(stage: Stage) {
    let stage = keeping(&stage).await;
    let mut alice = stage.browser();
    alice.visit(login_remembered("alice")).await.ok();
    stage.pass(SECOND * 3);
    let (mut key, challenge) = (Device::new(7), told(&call(&alice, None).await, "unbound"));
    renewed(&mut alice, &mut key, &challenge).await;
    stage.pass(IDLE * 10);
    let challenge = told(&call(&alice, None).await, "stale");
    renewed(&mut alice, &mut key, &challenge).await;
    assert!(alice.visit(details).await.ok().contains("\"strength\":\"remembered\""));
    stage.pass(FRESH);
    assert_eq!(alice.ask(who).await.ok(), "nobody", "it is bound all the same");
    renew(&mut alice, &mut key).await;
    assert_eq!(alice.who().await, "alice");
}

async fn it_is_no_device(stage: Stage) {
    async fn pay(_: RequireDevice) -> &'static str {
        "paid"
    }
    let stage = keeping(&stage).await;
    let (alice, _) = bound(&stage).await;
    assert_eq!(alice.ask(pay).await.status, StatusCode::FORBIDDEN);
}

async fn a_site_that_requires_a_device_takes_none(stage: Stage) {
    let require = DeviceBinding::Require(FRESH);
    let stage = stage.rebuilt(|builder| builder.device_binding(require).software_keys());
    stage.layer.ready().await.unwrap();
    let (mut alice, key) = bound(&stage).await;
    stage.pass(FRESH);
    told(&call(&alice, Some(&key.by_script(&key.challenge))).await, "none");
    assert!(matches!(stage.events.take()[..], [SessionEvent::Refused(_, Reason::Unbound)]));
    assert_eq!(alice.who().await, "nobody");
}

async fn the_list_shows_it(stage: Stage) {
    async fn list(auth: portcullis::Auth) -> String {
        let sessions = auth.sessions().await.unwrap();
        let line = |session: &SessionInfo| {
            let proven = session.device.map(|device| (device.proven.unix_timestamp(), device.confirmed));
            format!("{} {proven:?}", session.strength.name())
        };
        sessions.iter().map(line).collect::<Vec<_>>().join("; ")
    }
    let stage = keeping(&stage).await;
    let (mut alice, mut key) = bound(&stage).await;
    let at = stage.second();
    assert_eq!(alice.visit(list).await.ok(), format!("software_key Some(({at}, false))"));
    stage.pass(FRESH);
    renew(&mut alice, &mut key).await;
    let at = stage.second();
    assert_eq!(alice.visit(list).await.ok(), format!("software_key Some(({at}, true))"));
}

async fn only_the_site_s_own_pages_are_answered(stage: Stage) {
    let off = stage.rebuilt(|builder| builder.device_binding(DeviceBinding::Offer));
    off.layer.ready().await.unwrap();
    let nobody = off.browser();
    assert_eq!(
        ask(&nobody, "/portcullis/key", &[("portcullis-key", "ask")]).await.status,
        StatusCode::NOT_FOUND
    );
    let stage = keeping(&stage).await;
    let (alice, _) = bound(&stage).await;
    let bare = ask(&alice, "/portcullis/key", &[]).await;
    assert_eq!(bare.status, StatusCode::BAD_REQUEST, "what another site's form could send");
    let elsewhere = alice.with_field("origin", "https://evil.example");
    assert_eq!(call(&elsewhere, None).await.status, StatusCode::FORBIDDEN);
    let at = alice.with_field("host", "evil.example");
    call(&at, None).await.assert_unavailable();
}

async fn the_script_and_the_page_are_served(stage: Stage) {
    let stage = keeping(&stage).await;
    let browser = stage.browser();
    let get = |path: &'static str, known: Option<String>| {
        let app = Router::new()
            .nest_service("/portcullis", stage.layer.device_endpoints())
            .fallback(page)
            .layer(stage.layer.clone());
        let mut request = browser.request(Method::GET);
        *request.uri_mut() = http::Uri::from_static(path);
        if let Some(known) = known {
            request.headers_mut().insert("if-none-match", known.parse().unwrap());
        }
        answer(app, request)
    };
    let script = get("/portcullis/keeper.js", None).await;
    assert!(script.ok().contains("'use strict'"));
    assert!(script.body.len() < 10_000, "a few kilobytes");
    assert_eq!(script.field("content-type"), "text/javascript; charset=utf-8");
    assert_eq!(script.field("cache-control"), "no-cache");
    let known = get("/portcullis/keeper.js", Some(script.field("etag"))).await;
    assert_eq!((known.status, known.body.as_str()), (StatusCode::NOT_MODIFIED, ""));
    let page = get("/portcullis/renew?to=%2F", None).await;
    assert!(page.ok().contains("/portcullis/keeper.js"));
    let policy = page.field("content-security-policy");
    assert!(policy.contains("default-src 'none'; script-src 'self'"), "{policy}");
    assert_eq!(get("/portcullis/key", None).await.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(get("/portcullis/else", None).await.status, StatusCode::NOT_FOUND);
    assert_eq!(get("/portcullish", None).await.ok(), "a page");
}
