//! What is no cookie of ours: anonymous, whatever its shape, and nothing about the answer tells shapes apart.

use portcullis::events::SessionEvent;

use crate::{
    browser::{Answer, Browser},
    handlers::{details, login},
    jar::{Jar, RENEWAL, SESSION},
    stage::{FRESH, Stage},
};

on_every_store!(
    no_forgery_gets_in_or_is_told_from_another,
    the_token_of_another_origin_is_known_as_such,
    a_forged_session_cookie_does_not_stop_a_good_token,
    names_that_only_resemble_ours_are_not_ours,
);

/// Each a pair of values for the two cookies; `None` leaves one out.
fn forgeries(real: &Browser, foreign: &Browser, old: &Browser) -> Vec<(&'static str, [Option<String>; 2])> {
    let session = real.jar.value(SESSION).unwrap().to_owned();
    let token = real.jar.value(RENEWAL).unwrap().to_owned();
    let of = |browser: &Browser, name| browser.jar.value(name).unwrap().to_owned();
    let flipped = |text: &str, at: usize| {
        let mut bytes = text.as_bytes().to_vec();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        String::from_utf8(bytes).unwrap()
    };
    let with_key = |id: &str| {
        let mut bytes = base64_simd::URL_SAFE_NO_PAD.decode_to_vec(&session).unwrap();
        bytes[1..5].copy_from_slice(id.as_bytes());
        base64_simd::URL_SAFE_NO_PAD.encode_to_string(bytes)
    };
    let parts: Vec<&str> = token.split('.').collect();
    let none = base64_simd::URL_SAFE_NO_PAD.encode_to_string(r#"{"alg":"none"}"#);
    let both = |value: &str| [Some(value.to_owned()), Some(value.to_owned())];
    let as_token = |value: String| [None, Some(value)];
    let as_session = |value: String| [Some(value), None];
    let mut forgeries = vec![
        ("empty", both("")),
        ("a word", both("admin")),
        ("a number", both("1")),
        ("not base64url", both("+/+/+/+/")),
        ("not ASCII", both("\u{e9}\u{2603}")),
        ("JSON", both(r#"{"sub":"alice"}"#)),
        ("10 KiB", both(&"A".repeat(10 * 1024))),
        ("4096 bytes", both(&"A".repeat(4096))),
        ("the token as session cookie", as_session(token.clone())),
        ("the session cookie as token", as_token(session.clone())),
        ("both swapped", [Some(token.clone()), Some(session.clone())]),
        ("another origin's", [Some(of(foreign, SESSION)), Some(of(foreign, RENEWAL))]),
        ("another origin's session cookie", as_session(of(foreign, SESSION))),
        ("another origin's token", as_token(of(foreign, RENEWAL))),
        ("of another key ring", [Some(of(old, SESSION)), Some(of(old, RENEWAL))]),
        ("of an unknown key", as_session(with_key("????"))),
        ("padded", as_session(format!("{session}="))),
        ("quoted", [Some(format!("\"{session}\"")), Some(format!("\"{token}\""))]),
        ("a token without a signature", as_token(format!("{}.{}.", parts[0], parts[1]))),
        ("a token of two parts", as_token(format!("{}.{}", parts[0], parts[1]))),
        ("a token of four parts", as_token(format!("{token}.{}", parts[2]))),
        ("a token that says it is not signed", as_token(format!("{none}.{}.", parts[1]))),
        ("a token with another signature", as_token(flipped(&token, token.len() - 20))),
        ("a token with other claims", as_token(flipped(&token, parts[0].len() + 40))),
        ("a token with another header", as_token(flipped(&token, 20))),
    ];
    for kept in [1, 5, 29, 45, session.len() - 22, session.len() - 1] {
        forgeries.push(("truncated", [Some(session[..kept].into()), Some(token[..kept].into())]));
    }
    for at in [0, 3, 10, 40, session.len() / 2, session.len() - 10] {
        forgeries.push(("one character changed", as_session(flipped(&session, at))));
    }
    forgeries
}

/// A39, A40, A42, A43, A49.
async fn no_forgery_gets_in_or_is_told_from_another(stage: Stage) {
    let real = stage.signed_in("alice").await;
    let other_site = stage.beside("https://other.example.com", stage.keys.clone());
    let foreign = other_site.signed_in("alice").await;
    let elsewhere = Stage::memory().await;
    elsewhere.pass(FRESH);
    let old = elsewhere.signed_in("alice").await;
    let stranger = stage.browser().ask(details).await;
    for (shape, [session, token]) in forgeries(&real, &foreign, &old) {
        let mut browser = real.with_jar(Jar::default());
        for (name, value) in [(SESSION, session), (RENEWAL, token)] {
            if let Some(value) = value {
                browser.jar.put(name, value);
            }
        }
        stage.forget();
        let answer = browser.ask(details).await;
        assert_alike(shape, &answer, &stranger);
        assert_eq!(stage.store.calls(), [""; 0], "{shape}");
        // Whoever then signs in gets a session of their own, and nobody else's ends.
        let answer = browser.ask(login("bob")).await;
        assert!(answer.cookies.sets(SESSION).is_some(), "{shape}");
        assert_eq!(real.ask(crate::handlers::who).await.ok(), "alice", "{shape}");
    }
}

fn assert_alike(shape: &str, answer: &Answer, stranger: &Answer) {
    assert_eq!(answer.body, stranger.body, "{shape}");
    assert_eq!(answer.status, stranger.status, "{shape}");
    assert_eq!(answer.headers, stranger.headers, "{shape}");
    assert!(answer.cookies.is_empty(), "{shape}");
}

/// Outside all forgeries are alike; whoever reads the events learns that two sites share a ring and mix up their cookies.
async fn the_token_of_another_origin_is_known_as_such(stage: Stage) {
    let other_site = stage.beside("https://other.example.com", stage.keys.clone());
    let mut foreign = other_site.signed_in("alice").await.at(&stage);
    foreign.jar = foreign.jar.without(SESSION);
    stage.forget();
    assert_eq!(foreign.ask(crate::handlers::who).await.ok(), "nobody");
    let details: Vec<String> = stage.events.take().iter().map(SessionEvent::detail).collect();
    assert_eq!(details, ["renewal token: NotForHere"]);
}

async fn a_forged_session_cookie_does_not_stop_a_good_token(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    browser.jar.put(SESSION, "tossed-by-a-sibling");
    stage.pass(FRESH);
    let answer = browser.visit(crate::handlers::who).await;
    assert_eq!(answer.ok(), "alice");
    assert_eq!(stage.events.names(), ["crypt_decrypt_fail", "session_renewed"]);
}

/// A19-A22: another server would trim, decode or fold these into ours; a browser protects none of them.
async fn names_that_only_resemble_ours_are_not_ours(stage: Stage) {
    let real = stage.signed_in("alice").await;
    let value = real.jar.value(SESSION).unwrap();
    for name in [
        "__host-http-session",
        "__Host-Http-Session",
        "%5F_Host-Http-session",
        "\u{a0}__Host-Http-session",
        "__Host-Http-session ",
        "__Host-Http-session\u{2000}",
        "=__Host-Http-session",
        "session",
        "__Host-session",
        "__Secure-session",
        "__Host-Http-session.0",
        "$Version=1; a",
    ] {
        let browser = real.with_jar(Jar::default()).with_field("cookie", format!("{name}={value}"));
        let answer = browser.ask(crate::handlers::who).await;
        assert_eq!(answer.ok(), "nobody", "{name}");
        assert!(answer.cookies.is_empty());
    }
    assert_eq!(stage.store.calls(), [""; 0]);
    // Junk beside a good cookie spoils nothing (A23).
    for junk in ["\u{ff}=\u{fe}", "a=%FF", "=", ";;; ;", "$Version=1", "x"] {
        let field = format!("{junk}; __Host-Http-session={value}; {junk}");
        let browser = real.with_jar(Jar::default()).with_field("cookie", field);
        assert_eq!(browser.ask(crate::handlers::who).await.ok(), "alice", "{junk:?}");
    }
}

/// A38: the name of the cookie enters the seal.
#[tokio::test]
async fn a_cookie_sealed_under_one_name_does_not_open_under_another() {
    let stage = Stage::memory().await;
    let shared = stage.rebuilt(|builder| builder.cookie_domain("example.com"));
    let real = stage.signed_in("alice").await;
    let mut browser = real.at(&shared).with_jar(Jar::default());
    browser.jar.put("__Secure-session", real.jar.value(SESSION).unwrap());
    assert_eq!(browser.ask(crate::handlers::who).await.ok(), "nobody");
}
