//! What becomes of sessions when keys are rotated and revoked.

use portcullis::{
    KeyRing,
    crypto::{KeyId, KeyState},
};

use crate::{
    browser::Browser,
    handlers::{details, read, who, write},
    jar::{RENEWAL, SESSION},
    stage::{FRESH, Stage},
};

on_every_store!(
    a_retired_key_opens_and_renewal_seals_under_the_new_one,
    a_pending_key_opens_and_does_not_seal,
    a_revoked_key_signs_out_and_looks_like_any_forgery,
    data_written_under_the_old_key_is_read_after_renewal,
    a_session_outlives_its_old_key_once_it_was_renewed,
);

/// The ring of `stage` with its key in `state`, and a new active key.
fn rotated(stage: &Stage, state: &str) -> KeyRing {
    let old = stage.keys.to_text();
    let new = KeyRing::generate().unwrap().to_text();
    let new_key = new.lines().find(|line| line.contains(" active ")).unwrap().to_owned();
    let text = old.replace(" active ", &format!(" {state} "));
    KeyRing::from_text(&format!("{}\n{new_key}\n", text.trim_end())).unwrap()
}

/// The ring of `stage` with a key beside its own that does not seal yet.
fn with_pending(stage: &Stage) -> KeyRing {
    let new = KeyRing::generate().unwrap().to_text();
    let new_key =
        new.lines().find(|line| line.contains(" active ")).unwrap().replace(" active ", " pending ");
    KeyRing::from_text(&format!("{}\n{new_key}\n", stage.keys.to_text().trim_end())).unwrap()
}

fn active(keys: &KeyRing) -> KeyId {
    keys.keys().find(|(_, state)| *state == KeyState::Active).unwrap().0
}

/// The key that a browser's cookies hang on: named in the clear part of the one, and in the header of the other.
fn assert_hangs_on(browser: &Browser, key: KeyId) {
    let decode = |text: &str| base64_simd::URL_SAFE_NO_PAD.decode_to_vec(text).unwrap();
    let sealed = decode(browser.jar.value(SESSION).unwrap());
    let id: String = sealed[1..5].iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!((sealed[0], id), (1, key.to_string()));
    let header = decode(browser.jar.value(RENEWAL).unwrap().split('.').next().unwrap());
    let header: serde_json::Value = serde_json::from_slice(&header).unwrap();
    assert_eq!(header["kid"], key.to_string());
}

async fn a_retired_key_opens_and_renewal_seals_under_the_new_one(stage: Stage) {
    let browser = stage.signed_in("alice").await;
    assert_hangs_on(&browser, active(&stage.keys));
    let restarted = stage.restarted_with(rotated(&stage, "retired"));
    restarted.layer.ready().await.unwrap();
    let mut browser = browser.at(&restarted);
    let answer = browser.visit(who).await;
    assert_eq!(answer.ok(), "alice");
    assert!(answer.cookies.is_empty());
    stage.pass(FRESH);
    assert_eq!(browser.who().await, "alice");
    assert_hangs_on(&browser, active(&restarted.keys));
    assert_ne!(active(&restarted.keys), active(&stage.keys));
}

/// A66: while a key is being spread, an instance that knows it and one that does not get on with each other.
async fn a_pending_key_opens_and_does_not_seal(stage: Stage) {
    let ahead = stage.restarted_with(with_pending(&stage));
    ahead.layer.ready().await.unwrap();
    let mut browser = stage.signed_in("alice").await;
    for instance in [&ahead, &stage, &ahead, &stage] {
        stage.pass(FRESH);
        browser = browser.at(instance);
        assert_eq!(browser.who().await, "alice");
        assert_hangs_on(&browser, active(&stage.keys));
    }
}

async fn a_revoked_key_signs_out_and_looks_like_any_forgery(stage: Stage) {
    let browser = stage.signed_in("alice").await;
    let restarted = stage.restarted_with(rotated(&stage, "revoked"));
    restarted.layer.ready().await.unwrap();
    let stranger = restarted.browser().ask(details).await;
    let browser = browser.at(&restarted);
    stage.forget();
    for span in [FRESH / 2, FRESH] {
        let answer = browser.ask(details).await;
        assert_eq!((&answer.body, &answer.headers), (&stranger.body, &stranger.headers));
        assert_eq!(stage.store.calls(), [""; 0]);
        stage.pass(span);
    }
}

async fn data_written_under_the_old_key_is_read_after_renewal(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    browser.visit(write("colour", "green")).await.ok();
    let restarted = stage.restarted_with(rotated(&stage, "retired"));
    let mut browser = browser.at(&restarted);
    assert_eq!(browser.visit(read("colour")).await.ok(), "green");
    stage.pass(FRESH);
    assert_eq!(browser.visit(read("colour")).await.ok(), "green");
    browser.visit(write("shape", "round")).await.ok();
    assert_eq!(browser.visit(read("colour")).await.ok(), "green");
    assert_eq!(browser.visit(read("shape")).await.ok(), "round");
}

async fn a_session_outlives_its_old_key_once_it_was_renewed(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let retired = stage.restarted_with(rotated(&stage, "retired"));
    stage.pass(FRESH);
    browser = browser.at(&retired);
    assert_eq!(browser.who().await, "alice");
    let revoked = KeyRing::from_text(&retired.keys.to_text().replace(" retired ", " revoked ")).unwrap();
    browser = browser.at(&stage.restarted_with(revoked));
    assert_eq!(browser.who().await, "alice");
    stage.pass(FRESH);
    assert_eq!(browser.who().await, "alice");
}
