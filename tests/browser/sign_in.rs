//! From the sign-in to the sign-out, as a browser sees it.

use crate::{
    driver::{Kind, poll},
    lab::FRESH,
    stage::{DESK, Stage, ours},
};

crate::in_every_browser!(
    a_sign_in_is_stored_and_sent_and_no_script_reads_it,
    a_script_writes_over_neither_cookie,
    a_renewal_keeps_the_user_in,
    requests_at_once_renew_once,
    a_renewal_whose_answer_is_lost_or_late_keeps_the_user_in,
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

fn requests_at_once_renew_once(stage: &mut Stage) {
    stage.sign_in("alice");
    stage.browser.open(DESK);
    stage.pass(FRESH + 1);
    let statuses = stage.browser.run(
        "const ask = (key) => fetch(`/data/${key}`, { method: 'POST', body: 'text' });
         const answers = await Promise.all([...Array(20).keys()].map(ask));
         return answers.map((answer) => answer.status);",
    );
    assert_eq!(statuses, serde_json::json!(vec![204; 20]));
    assert_eq!(stage.lab.told("session_renewed"), 1);
    stays_in(stage);
}

/// The page is left before the answer comes. Most browsers drop it with the new cookies; Chromium keeps the page for the
/// back button and takes them late, when newer ones are there.
fn a_renewal_whose_answer_is_lost_or_late_keeps_the_user_in(stage: &mut Stage) {
    let is_dropped = stage.kind() != Kind::Chromium;
    let path = format!("/slow/note?ms={}", if is_dropped { 20_000 } else { 2_000 });
    stage.sign_in("alice");
    stage.browser.open(DESK);
    stage.pass(FRESH + 1);
    stage.browser.run(&format!("fetch('{path}', {{ method: 'POST', body: 'text' }}).catch(() => {{}})"));
    poll(|| (stage.lab.told("session_renewed") == 1).then_some(())).expect("the request renews");
    assert_eq!(stage.who().as_deref(), Some("alice"));
    let answered = stage.seen.wait("POST", &path);
    // 499 is the proxy's word for a client that is gone.
    assert!(answered.status == 499 || !is_dropped, "{answered:?}");
    stays_in(stage);
}

/// The user is there after the next renewals too, and no alarm has rung.
fn stays_in(stage: &mut Stage) {
    for _ in 0..3 {
        assert_eq!(stage.who().as_deref(), Some("alice"));
        stage.pass(FRESH + 1);
    }
    assert_eq!(stage.who().as_deref(), Some("alice"));
    assert_eq!(stage.lab.told("authn_token_reuse"), 0);
}

fn a_logout_removes_both_cookies(stage: &mut Stage) {
    stage.sign_in("alice");
    assert_eq!(stage.arrived(), ours());
    assert_eq!(stage.fetch("POST", "/logout", None), 204);
    assert_eq!(stage.arrived(), [].into());
    assert_eq!(stage.who(), None);
}
