//! Honest requests that browsers label oddly. They must go through.

use crate::stage::{APP, DESK, Stage};

crate::in_every_browser!(
    a_form_into_a_new_window_reaches_its_own_site,
    a_form_of_a_page_without_referrer_reaches_its_own_site,
    a_page_opens_a_socket_to_its_own_site,
);

/// A window without an opener: WebKit says `cross-site` here.
fn a_form_into_a_new_window_reaches_its_own_site(stage: &mut Stage) {
    stage.sign_in("alice");
    let form = "<form method=post target=_blank rel=noopener action=/data/note><button>go</button></form>";
    stage.open_page(&format!("{APP}/pages/form"), form);
    stage.browser.click("button");
    let request = stage.seen.wait("POST", "/data/note");
    assert_eq!((request.status, request.origin.as_str()), (204, APP), "{request:?}");
    assert_eq!(stage.fetch("GET", "/data/note", None), 200);
}

/// Its `Origin` is null.
fn a_form_of_a_page_without_referrer_reaches_its_own_site(stage: &mut Stage) {
    stage.sign_in("alice");
    let policy = "<meta name=referrer content=no-referrer>";
    let request = stage.submit(&format!("{APP}/pages/form"), "/data/note", policy);
    assert_eq!((request.status, request.origin.as_str()), (204, "null"), "{request:?}");
    assert_eq!(request.site, "same-origin");
    assert_eq!(stage.fetch("GET", "/data/note", None), 200);
}

fn a_page_opens_a_socket_to_its_own_site(stage: &mut Stage) {
    stage.sign_in("alice");
    stage.browser.open(DESK);
    let echo = stage.browser.run(
        "const socket = new WebSocket('/ws');
         const said = await new Promise((resolve, reject) => {
             socket.onopen = () => socket.send('are you there');
             socket.onmessage = (message) => resolve(message.data);
             socket.onerror = () => reject('refused');
         });
         socket.close();
         return said;",
    );
    assert_eq!(echo, "are you there");
    assert_eq!(stage.seen.wait("GET", "/ws").status, 101);
}
