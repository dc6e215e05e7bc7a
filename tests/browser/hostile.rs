//! Requests that another origin makes the browser send, with the user's cookies or to give him the attacker's. Each is
//! refused, and changes nothing.

use serde_json::json;

use crate::stage::{APP, OTHER, SIBLING, Stage};

crate::in_every_browser!(
    a_foreign_form_signs_nobody_in,
    a_foreign_form_writes_nothing,
    a_foreign_script_writes_nothing,
    a_foreign_page_gets_no_socket,
);

/// Who is not the application: another site, a sibling, and its own name without TLS.
const FOREIGN: [&str; 3] = [OTHER, SIBLING, "http://app.site.test"];

fn a_foreign_form_signs_nobody_in(stage: &mut Stage) {
    for origin in FOREIGN {
        let field = "<input type=hidden name=user value=mallory>";
        submit(stage, origin, "/login", field);
        assert_eq!(stage.who(), None, "{origin}");
    }
    // Nor is somebody who is there made another.
    stage.sign_in("alice");
    for origin in FOREIGN {
        submit(stage, origin, "/login", "<input type=hidden name=user value=mallory>");
        assert_eq!(stage.who().as_deref(), Some("alice"), "{origin}");
        submit(stage, origin, "/logout", "");
        assert_eq!(stage.who().as_deref(), Some("alice"), "{origin}");
    }
}

fn a_foreign_form_writes_nothing(stage: &mut Stage) {
    stage.sign_in("alice");
    for origin in FOREIGN {
        submit(stage, origin, "/data/note", "<input type=hidden name=text value=evil>");
        assert_eq!(stage.fetch("GET", "/data/note", None), 404, "{origin}");
    }
}

fn a_foreign_script_writes_nothing(stage: &mut Stage) {
    stage.sign_in("alice");
    for origin in FOREIGN {
        stage.seen.forget();
        stage.open_page(&format!("{origin}/pages/script"), "script");
        let what = json!({ "method": "POST", "mode": "no-cors", "credentials": "include", "body": "evil" });
        stage.browser.run(&format!("await fetch({}, {what})", json!(format!("{APP}/data/note"))));
        assert_eq!(stage.seen.wait("POST", "/data/note").status, 403, "{origin}");
        assert_eq!(stage.fetch("GET", "/data/note", None), 404, "{origin}");
    }
}

/// Not even where the browser sends the cookies along, as it does for a sibling.
fn a_foreign_page_gets_no_socket(stage: &mut Stage) {
    stage.sign_in("alice");
    for origin in FOREIGN {
        stage.seen.forget();
        stage.open_page(&format!("{origin}/pages/script"), "script");
        let opened = stage.browser.run(
            "const socket = new WebSocket('wss://app.site.test/ws');
             const opened = await new Promise((resolve) => {
                 socket.onopen = () => resolve(true);
                 socket.onerror = () => resolve(false);
             });
             socket.close();
             return opened;",
        );
        assert_eq!(opened, false, "{origin}");
        assert_eq!(stage.seen.wait("GET", "/ws").status, 403, "{origin}");
    }
}

/// Has a page of `origin` send a form of these fields, which is refused.
fn submit(stage: &mut Stage, origin: &str, path: &str, fields: &str) {
    let request = stage.submit(&format!("{origin}/pages/form"), path, fields);
    assert_eq!(request.status, 403, "{origin}: {request:?}");
}
