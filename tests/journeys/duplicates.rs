//! Either cookie sent twice, or the cookies of two sessions together: neither is believed, nothing is cleared.

use crate::{
    browser::Browser,
    handlers::{login, who, write},
    jar::{Jar, RENEWAL, SESSION},
    stage::{FRESH, Stage},
};

on_every_store!(
    a_cookie_sent_twice_is_believed_in_neither_order,
    cookies_sent_twice_renew_nothing,
    a_stale_session_with_the_token_of_another_is_nobody,
    a_fresh_session_is_admitted_whatever_token_lies_beside_it,
    a_write_of_somebody_with_duplicates_touches_neither_session,
);

fn field(name: &str, browser: &Browser) -> String {
    format!("{name}={}", browser.jar.value(name).unwrap())
}

/// Every way to send `own` and `other` of the cookie `name`: in one field or in two, either first.
fn both(own: &Browser, other: &Browser, name: &str) -> Vec<Browser> {
    let (a, b) = (field(name, own), field(name, other));
    let bare = own.with_jar(Jar::default());
    let kept = if name == SESSION { field(RENEWAL, own) } else { field(SESSION, own) };
    let with = |fields: &[String]| {
        fields.iter().fold(bare.clone(), |browser, field| browser.with_field("cookie", field.as_str()))
    };
    vec![
        with(&[format!("{a}; {b}; {kept}")]),
        with(&[format!("{b}; {kept}; {a}")]),
        with(&[a.clone(), format!("{kept}; {b}")]),
        with(&[format!("{a};\t{a}"), kept.clone()]),
        with(&[b, format!("{kept};{a}")]),
    ]
}

async fn a_cookie_sent_twice_is_believed_in_neither_order(stage: Stage) {
    let (alice, mallory) = (stage.signed_in("alice").await, stage.signed_in("mallory").await);
    for name in [SESSION, RENEWAL] {
        for browser in both(&alice, &mallory, name) {
            stage.forget();
            let answer = browser.ask(who).await;
            assert_eq!(answer.ok(), "nobody", "{:?}", browser.fields);
            assert!(answer.cookies.is_empty());
            assert_eq!(stage.store.calls(), [""; 0]);
            assert_eq!(stage.events.names(), ["duplicate_cookie"]);
        }
    }
    for browser in [alice, mallory] {
        assert_ne!(browser.ask(who).await.ok(), "nobody");
    }
}

async fn cookies_sent_twice_renew_nothing(stage: Stage) {
    let (mut alice, mallory) = (stage.signed_in("alice").await, stage.signed_in("mallory").await);
    stage.pass(FRESH);
    for name in [SESSION, RENEWAL] {
        for browser in both(&alice, &mallory, name) {
            let answer = browser.ask(who).await;
            assert_eq!(answer.ok(), "nobody");
            assert!(answer.cookies.is_empty());
        }
    }
    assert_eq!(stage.store.calls(), [""; 0]);
    assert!(alice.visit(who).await.cookies.sets(RENEWAL).is_some(), "her token is not used up");
}

async fn a_stale_session_with_the_token_of_another_is_nobody(stage: Stage) {
    let (alice, mallory) = (stage.signed_in("alice").await, stage.signed_in("mallory").await);
    stage.pass(FRESH);
    let mut mixed = alice.clone();
    mixed.jar.put(RENEWAL, mallory.jar.value(RENEWAL).unwrap());
    let answer = mixed.ask(who).await;
    assert_eq!(answer.ok(), "nobody");
    assert!(answer.cookies.is_empty());
    assert_eq!(stage.store.calls(), [""; 0]);
    assert_eq!(stage.events.names(), ["session_refused"]);
    for (browser, user) in [(alice, "alice"), (mallory, "mallory")] {
        assert_eq!(browser.ask(who).await.ok(), user);
    }
}

async fn a_fresh_session_is_admitted_whatever_token_lies_beside_it(stage: Stage) {
    let (alice, mallory) = (stage.signed_in("alice").await, stage.signed_in("mallory").await);
    for token in [mallory.jar.value(RENEWAL).unwrap(), "nonsense", ""] {
        let mut browser = alice.clone();
        browser.jar.put(RENEWAL, token);
        let answer = browser.ask(who).await;
        assert_eq!(answer.ok(), "alice");
        assert!(answer.cookies.is_empty());
    }
}

async fn a_write_of_somebody_with_duplicates_touches_neither_session(stage: Stage) {
    let (alice, mallory) = (stage.signed_in("alice").await, stage.signed_in("mallory").await);
    let browser = both(&alice, &mallory, SESSION).remove(0);
    assert!(browser.ask(write("colour", "green")).await.cookies.is_empty(), "nothing is written over");
    assert_eq!(stage.store.calls(), [""; 0]);
    assert_eq!(stage.events.names(), ["duplicate_cookie", "write_of_refused_request"]);
    for mut owner in [alice, mallory] {
        assert_eq!(owner.visit(crate::handlers::read("colour")).await.ok(), "nothing");
    }
    // A login ends both, because whoever sent them may hold both.
    let browser = stage.browser();
    browser.ask(login("bob")).await.ok();
}
