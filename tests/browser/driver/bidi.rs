//! `WebDriver` BiDi: JSON over a WebSocket, as Firefox speaks it without a driver between.

use std::net::TcpStream;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Message, WebSocket, client::client};

use super::{
    PATIENCE,
    process::{Process, poll},
};

/// A session of Firefox.
#[derive(Debug)]
pub(crate) struct Bidi {
    socket: WebSocket<TcpStream>,
    tab: String,
    last: u64,
    _firefox: Process,
}

impl Bidi {
    pub(crate) fn new(firefox: Process) -> Result<Self, String> {
        let stream = TcpStream::connect(("127.0.0.1", firefox.port)).map_err(|error| error.to_string())?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(|error| error.to_string())?;
        let url = format!("ws://127.0.0.1:{}/session", firefox.port);
        let (socket, _) = client(url, stream).map_err(|error| format!("{error}\n{}", firefox.log()))?;
        let mut new = Self { socket, tab: String::new(), last: 0, _firefox: firefox };
        new.ask(
            "session.new",
            &json!({ "capabilities": { "alwaysMatch": { "acceptInsecureCerts": true } } }),
        )?;
        let tree = new.ask("browsingContext.getTree", &json!({}))?;
        tree["contexts"][0]["context"].as_str().ok_or("no tab")?.clone_into(&mut new.tab);
        Ok(new)
    }

    /// Firefox is not asked to say when the page is there: it may never do, where another navigation was under way.
    pub(crate) fn navigate(&mut self, url: &str) -> Result<(), String> {
        // A mark on the page that is left, which may be the same one.
        let _ = self.run("window.isLeft = true");
        // What it answers may be about the other one as well.
        let asked =
            self.ask("browsingContext.navigate", &json!({ "context": self.tab, "url": url, "wait": "none" }));
        let question = format!(
            "return !window.isLeft && document.readyState == 'complete' && location.href == {}",
            json!(url)
        );
        let there = poll(|| self.run(&question).ok().filter(|there| *there == true));
        there.map(drop).ok_or_else(|| format!("{asked:?}, and then {:?}", self.run("return location.href")))
    }

    /// Runs an async function of this body.
    pub(crate) fn run(&mut self, body: &str) -> Result<Value, String> {
        let script = format!(
            "(async () => {{ {body} }})().then(
                 (value) => JSON.stringify({{ value }}),
                 (error) => JSON.stringify({{ error: String(error) }}))"
        );
        let target = json!({ "context": self.tab });
        let what = json!({ "expression": script, "target": target, "awaitPromise": true });
        let answer = self.ask("script.evaluate", &what)?;
        super::outcome(answer["result"]["value"].as_str())
    }

    pub(crate) fn click(&mut self, css: &str) -> Result<(), String> {
        let tab = self.tab.clone();
        let what = json!({ "context": tab, "locator": { "type": "css", "value": css } });
        let found = self.ask("browsingContext.locateNodes", &what)?;
        let id = found["nodes"][0]["sharedId"].as_str().ok_or_else(|| format!("no element {css}"))?;
        let origin = json!({ "type": "element", "element": { "sharedId": id } });
        let actions = json!([
            { "type": "pointerMove", "x": 0, "y": 0, "origin": origin },
            { "type": "pointerDown", "button": 0 },
            { "type": "pointerUp", "button": 0 },
        ]);
        let mouse = json!({ "type": "pointer", "id": "mouse", "actions": actions });
        self.ask("input.performActions", &json!({ "context": tab, "actions": [mouse] })).map(drop)
    }

    pub(crate) fn back(&mut self) -> Result<(), String> {
        let tab = &self.tab;
        let back = json!({ "context": tab, "delta": -1 });
        self.ask("browsingContext.traverseHistory", &back).map(drop)
    }

    pub(crate) fn close(&mut self) -> Result<(), String> {
        self.ask("browser.close", &json!({})).map(drop)
    }

    /// One command. What arrives meanwhile and is no answer to it is of no interest.
    fn ask(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        self.last += 1;
        let command = json!({ "id": self.last, "method": method, "params": params });
        let failed = |error| format!("{method}: {error}");
        self.socket.send(Message::text(command.to_string())).map_err(failed)?;
        loop {
            let message = self.socket.read().map_err(failed)?;
            let Ok(text) = message.to_text() else { continue };
            let Ok(mut answer) = serde_json::from_str::<Value>(text) else { continue };
            if answer["id"] == self.last {
                return match answer["error"].as_str() {
                    Some(error) => Err(format!("{method}: {error}: {}", answer["message"])),
                    None => Ok(answer["result"].take()),
                };
            }
        }
    }
}
