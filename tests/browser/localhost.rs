//! The development mode on `http://localhost`, where some browsers refuse `Secure` and with it every prefix.

use crate::{
    lab::{FRESH, Flags, Lab},
    stage::Stage,
};

crate::in_every_browser!(on_localhost_one_signs_in_and_out_as_well);

fn on_localhost_one_signs_in_and_out_as_well(stage: &mut Stage) {
    const HERE: &str = "http://localhost:3002";
    let mut flags = Flags::memory().with(&["--listen", "127.0.0.1:3002"]);
    flags.origin = Some(HERE.into());
    stage.lab = Lab::start(&flags);
    let open = |stage: &mut Stage, path: &str| {
        stage.browser.open(&format!("{HERE}{path}"));
        serde_json::from_str::<serde_json::Value>(&stage.text()).expect("JSON")
    };
    assert_eq!(open(stage, "/")["user"], serde_json::Value::Null);
    assert_eq!(stage.fetch_here("POST", "/login", Some("user=alice")), 204);
    assert_eq!(open(stage, "/")["user"], "alice");
    stage.pass(FRESH + 1);
    assert_eq!(open(stage, "/")["user"], "alice");
    assert_eq!(stage.lab.told("session_renewed"), 1);
    assert_eq!(open(stage, "/lab/arrived"), serde_json::json!({ "session": 1, "renewal": 1 }));
    assert_eq!(stage.script_sees(), "");
    assert_eq!(stage.fetch_here("POST", "/logout", None), 204);
    assert_eq!(open(stage, "/lab/arrived"), serde_json::json!({}));
    assert_eq!(open(stage, "/")["user"], serde_json::Value::Null);
}
