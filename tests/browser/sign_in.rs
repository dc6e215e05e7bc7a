//! From the sign-in to the sign-out, as a browser sees it.

use crate::{
    lab::FRESH,
    stage::{APP, DESK, Stage, ours},
};

crate::in_every_browser!(
    a_sign_in_is_stored_and_sent_and_no_script_reads_it,
    a_script_writes_over_neither_cookie,
    a_renewal_keeps_the_user_in,
    a_logout_removes_both_cookies,
);

fn a_sign_in_is_stored_and_sent_and_no_script_reads_it(stage: &mut Stage) {
    assert_eq!(stage.who(), None);
    stage.sign_in("alice");
    assert_eq!(stage.who().as_deref(), Some("alice"));
    assert_eq!(stage.arrived(), ours());
    stage.browser.open(DESK);
    assert_eq!(stage.script_sees(), "");
    // The page's own requests carry them as well.
    assert_eq!(stage.fetch_here("GET", "/sessions", None), 200);
    assert!(stage.seen.all().iter().all(|request| request.status < 400), "{:#?}", stage.seen.all());
}

fn a_script_writes_over_neither_cookie(stage: &mut Stage) {
    stage.sign_in("alice");
    for name in ours().into_keys() {
        for line in [
            format!("{name}=evil; Path=/; Secure"),
            format!("{name}=; Path=/; Secure; Max-Age=0"),
            format!("{name}=evil; Path=/pages; Secure"),
        ] {
            stage.browser.run(&format!("document.cookie = {}", serde_json::json!(line)));
        }
    }
    assert_eq!(stage.who().as_deref(), Some("alice"));
    assert_eq!(stage.arrived(), ours());
}

fn a_renewal_keeps_the_user_in(stage: &mut Stage) {
    stage.sign_in("alice");
    for renewals in 1..=2 {
        stage.pass(FRESH + 1);
        // By a navigation once, by a page's own request then.
        if renewals == 1 {
            assert_eq!(stage.who().as_deref(), Some("alice"));
        } else {
            assert_eq!(stage.fetch("GET", "/sessions", None), 200);
        }
        assert_eq!(stage.who().as_deref(), Some("alice"));
        assert_eq!(stage.lab.told("session_renewed"), renewals);
        assert_eq!(stage.arrived(), ours());
    }
}

fn a_logout_removes_both_cookies(stage: &mut Stage) {
    stage.sign_in("alice");
    assert_eq!(stage.arrived(), ours());
    assert_eq!(stage.fetch("POST", "/logout", None), 204);
    assert_eq!(stage.arrived(), [].into());
    assert_eq!(stage.who(), None);
    assert_eq!(stage.seen.wait("GET", "/").status, 200, "{APP}");
}
