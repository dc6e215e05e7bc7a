//! A sibling subdomain sets cookies for the whole site. It cannot say who is signed in.

use crate::{
    jar::{RENEWAL, SESSION},
    stage::{DESK, SIBLING, Stage, ours},
};

crate::in_every_browser!(
    a_cookie_tossed_under_our_names_takes_no_user_over,
    names_that_only_look_like_ours_change_nothing,
    a_sibling_that_pushes_cookies_out_leaves_a_stranger,
);

/// Browsers that know the prefix refuse it. Elsewhere it arrives beside ours, and two of one name are nobody's.
fn a_cookie_tossed_under_our_names_takes_no_user_over(stage: &mut Stage) {
    let toss = |stage: &mut Stage| {
        let (session, renewal) = mallory(stage);
        let lines = [(SESSION, session), (RENEWAL, renewal)].map(|(name, value)| tossed(name, &value));
        stage.toss(&format!("{SIBLING}/toss"), &lines.each_ref().map(String::as_bytes));
    };
    toss(stage);
    // Where no prefix is known, nothing tells a stranger's browser with these cookies from Mallory's.
    let stranger = if stage.kind().has_a_modern_jar() { None } else { Some("mallory") };
    assert_eq!(stage.who().as_deref(), stranger);
    stage.sign_in("alice");
    // Anew: whoever signs in over a session ends it.
    toss(stage);
    if stage.kind().has_a_modern_jar() {
        assert_eq!(stage.arrived(), ours());
        assert_eq!(stage.who().as_deref(), Some("alice"));
    } else {
        assert_eq!(stage.arrived(), [SESSION, RENEWAL].map(|name| (name.to_owned(), 2)).into());
        assert_eq!(stage.who(), None);
    }
    assert_no_failure(stage);
}

fn names_that_only_look_like_ours_change_nothing(stage: &mut Stage) {
    // Decoded, trimmed as text or split at a comma, these would be ours.
    let encoded = "%5F_Host-Http-session";
    let encoded_prefix = "__%48ost-Http-renewal";
    let encoded_name = "__Host-Http-%73ession";
    let space = "\u{2000}__Host-Http-session";
    let joined = "a=1,__Host-Http-session";
    let (session, renewal) = mallory(stage);
    let lines = [encoded, encoded_prefix, encoded_name, space, joined]
        .map(|name| tossed(name, if name == encoded_prefix { &renewal } else { &session }));
    let lines = lines.each_ref().map(String::as_bytes);
    stage.toss(&format!("{SIBLING}/toss"), &lines);
    assert_eq!(stage.who(), None);
    stage.sign_in("alice");
    stage.toss(&format!("{SIBLING}/toss"), &lines);
    assert_eq!(stage.who().as_deref(), Some("alice"));
    // They do arrive, but for the one that has the prefix, and where no prefix is known, the one with the space.
    let refused = if stage.kind().has_a_modern_jar() { encoded_name } else { space };
    let stored =
        [encoded, encoded_prefix, encoded_name, space, "a"].into_iter().filter(|name| *name != refused);
    let expected = ours().into_iter().chain(stored.map(|name| (name.to_owned(), 1))).collect();
    assert_eq!(stage.arrived(), expected);
    assert_eq!(stage.fetch("POST", "/logout", None), 204);
    assert_eq!(stage.who(), None);
    assert_no_failure(stage);
}

fn a_sibling_that_pushes_cookies_out_leaves_a_stranger(stage: &mut Stage) {
    stage.sign_in("alice");
    let lines: Vec<String> = (0..200).map(|number| tossed(&format!("c{number}"), "1")).collect();
    let lines: Vec<&[u8]> = lines.iter().map(String::as_bytes).collect();
    stage.toss(&format!("{SIBLING}/toss"), &lines);
    let arrived = stage.arrived();
    let mine: usize =
        arrived.iter().filter(|(name, _)| ours().contains_key(*name)).map(|(_, count)| count).sum();
    if stage.kind().has_a_modern_jar() {
        assert_eq!(mine, 0, "{arrived:?}");
        assert_eq!(stage.who(), None);
    } else {
        assert_eq!(mine, 2, "{arrived:?}");
        assert_eq!(stage.who().as_deref(), Some("alice"));
    }
    stage.sign_in("bob");
    assert_eq!(stage.who().as_deref(), Some("bob"));
    assert_no_failure(stage);
}

/// The session cookie and the renewal token of Mallory, who is signed in with a browser of the same make.
fn mallory(stage: &mut Stage) -> (String, String) {
    stage.browser.open(DESK);
    let name = stage.browser.run("return navigator.userAgent");
    let mut browser = stage.lab.browser();
    browser.user_agent = name.as_str().map(|name| &*name.to_owned().leak());
    stage.visit(&mut browser, "POST", "/login", "user=mallory");
    (browser.value(SESSION), browser.value(RENEWAL))
}

/// A cookie for the whole site.
fn tossed(name: &str, value: &str) -> String {
    format!("{name}={value}; Domain=site.test; Path=/; Secure; HttpOnly")
}

/// Whatever the sibling did, the application answered.
fn assert_no_failure(stage: &Stage) {
    let seen = stage.seen.all();
    assert!(seen.iter().all(|request| request.status < 400), "{seen:#?}");
}
