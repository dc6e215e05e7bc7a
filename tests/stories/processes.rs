//! Several processes, one after the other or beside each other, over one file.

use std::time::Duration;

use http::StatusCode;

use crate::{
    lab::{Flags, Lab, eventually},
    scratch::Scratch,
};

#[tokio::test]
async fn a_sign_in_survives_a_restart() {
    let scratch = Scratch::new();
    let flags =
        Flags { keys: Some(Lab::new_keys()), manual_clock: false, ..Flags::sqlite(&scratch.file("lab.db")) };
    let first = Lab::start(&flags);
    let mut browser = first.signed_in("alice").await;
    browser.visit("POST", "/data/colour", "green").await;
    let mut out = first.signed_in("bob").await;
    let bob = out.clone();
    out.visit("POST", "/logout", "").await;
    first.stop();
    drop(out);
    let address = browser.lab.address();
    let mut browser = {
        let second = Lab::start(&flags);
        assert_ne!(second.address(), address);
        browser.at(&second)
    };
    assert_eq!(browser.who().await.as_deref(), Some("alice"));
    assert_eq!(browser.visit("GET", "/data/colour", "").await.body, "green");
    // A12: what was over stays over, although its cookie is still fresh.
    assert_eq!(bob.at(&browser.lab).who().await, None);
    // The token is good there too, once it is no longer young.
    let mut token = browser.with_token_alone();
    assert_eq!(token.who().await.as_deref(), Some("alice"));
}

#[tokio::test]
async fn a_restart_with_other_keys_does_not_start() {
    let scratch = Scratch::new();
    let flags = Flags { keys: Some(Lab::new_keys()), ..Flags::sqlite(&scratch.file("lab.db")) };
    drop(Lab::start(&flags).signed_in("alice").await);
    assert_eq!(Lab::refusal(&flags), None);
    let refusal = Lab::refusal(&Flags { keys: Some(Lab::new_keys()), ..flags }).unwrap();
    assert!(refusal.contains("store: the store was made with another index secret. Remedy: "), "{refusal}");
}

/// Both see the logout of the other, the fresh cookie asking nothing: the file is polled every 100 ms.
#[tokio::test]
async fn a_logout_in_one_process_is_seen_by_the_other() {
    let scratch = Scratch::new();
    let flags =
        Flags { keys: Some(Lab::new_keys()), manual_clock: false, ..Flags::sqlite(&scratch.file("lab.db")) };
    let (one, two) = (Lab::start(&flags), Lab::start(&flags));
    for (path, here, there) in
        [("/logout", &one, &two), ("/logout", &two, &one), ("/logout-everywhere", &one, &two)]
    {
        let mut browser = here.signed_in("alice").await;
        let copy = browser.at(there);
        assert_eq!(copy.ask("GET", "/", "").await.user().as_deref(), Some("alice"));
        assert_eq!(browser.visit("POST", path, "").await.status, StatusCode::NO_CONTENT);
        eventually(Duration::from_secs(10), || async { copy.ask("GET", "/", "").await.user().is_none() })
            .await;
        let mut token = copy.with_token_alone();
        assert_eq!(token.who().await, None);
    }
}
