//! The back button.

use crate::{driver::poll, stage::Stage};

crate::in_every_browser!(after_a_logout_the_back_button_shows_no_name);

fn after_a_logout_the_back_button_shows_no_name(stage: &mut Stage) {
    stage.sign_in("alice");
    assert_eq!(stage.who().as_deref(), Some("alice"));
    assert_eq!(stage.fetch("POST", "/logout", None), 204);
    stage.seen.forget();
    stage.browser.back();
    // The page is asked for again.
    assert_eq!(stage.seen.wait("GET", "/").status, 200);
    let shown = poll(|| {
        let text = stage.browser.try_run("return document.querySelector('pre')?.textContent").ok()?;
        text.as_str().map(str::to_owned)
    });
    assert!(shown.expect("the page is shown").contains("\"user\":null"));
}
