//! W3C WebDriver: JSON over HTTP, as chromedriver and `WebKitWebDriver` speak it.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
};

use serde_json::{Value, json};

use super::{PATIENCE, process::Process};

/// A session of a browser behind a driver.
#[derive(Debug)]
pub(crate) struct Classic {
    driver: Process,
    session: String,
}

impl Classic {
    pub(crate) fn new(driver: Process, capabilities: &Value) -> Result<Self, String> {
        let body = json!({ "capabilities": { "alwaysMatch": capabilities } });
        let mut new = Self { driver, session: "/session".into() };
        let answer = new.ask("POST", "", &body).map_err(|error| format!("{error}\n{}", new.driver.log()))?;
        let id = answer["sessionId"].as_str().ok_or_else(|| format!("no session: {answer}"))?;
        new.session = format!("/session/{id}");
        let limit = PATIENCE.as_millis();
        new.ask("POST", "/timeouts", &json!({ "pageLoad": limit, "script": limit }))?;
        Ok(new)
    }

    pub(crate) fn navigate(&self, url: &str) -> Result<(), String> {
        self.ask("POST", "/url", &json!({ "url": url })).map(drop)
    }

    /// Runs an async function of this body.
    pub(crate) fn run(&self, body: &str) -> Result<Value, String> {
        let script = format!(
            "const done = arguments[arguments.length - 1];
             (async () => {{ {body} }})().then(
                 (value) => done(JSON.stringify({{ value }})),
                 (error) => done(JSON.stringify({{ error: String(error) }})));"
        );
        let answer = self.ask("POST", "/execute/async", &json!({ "script": script, "args": [] }))?;
        super::outcome(answer.as_str())
    }

    pub(crate) fn click(&self, css: &str) -> Result<(), String> {
        let found = self.ask("POST", "/element", &json!({ "using": "css selector", "value": css }))?;
        let id = found.as_object().and_then(|found| found.values().next()).and_then(Value::as_str);
        let id = id.ok_or_else(|| format!("no element: {found}"))?;
        self.ask("POST", &format!("/element/{id}/click"), &json!({})).map(drop)
    }

    pub(crate) fn forget_cookie(&self, name: &str) -> Result<(), String> {
        self.ask("DELETE", &format!("/cookie/{name}"), &Value::Null).map(drop)
    }

    pub(crate) fn cookie(&self, name: &str) -> Result<String, String> {
        let cookie = self.ask("GET", &format!("/cookie/{name}"), &Value::Null)?;
        cookie["value"].as_str().map(str::to_owned).ok_or_else(|| format!("no value: {cookie}"))
    }

    pub(crate) fn put_cookie(&self, name: &str, value: &str) -> Result<(), String> {
        let cookie = json!({
            "name": name, "value": value, "path": "/", "secure": true, "httpOnly": true, "sameSite": "Lax",
        });
        self.ask("POST", "/cookie", &json!({ "cookie": cookie })).map(drop)
    }

    pub(crate) fn back(&self) -> Result<(), String> {
        self.ask("POST", "/back", &json!({})).map(drop)
    }

    pub(crate) fn close(&self) -> Result<(), String> {
        self.ask("DELETE", "", &Value::Null).map(drop)
    }

    /// One command, over a connection of its own.
    fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let (port, session) = (self.driver.port, &self.session);
        let answer = exchange(port, method, &format!("{session}{path}"), body)
            .map_err(|error| format!("{method} {path}: {error}"))?;
        match answer["value"]["error"].as_str() {
            Some(error) => Err(format!("{method} {path}: {error}: {}", answer["value"]["message"])),
            None => Ok(answer["value"].clone()),
        }
    }
}

fn exchange(port: u16, method: &str, path: &str, body: &Value) -> std::io::Result<Value> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    // The driver gives up before this does.
    stream.set_read_timeout(Some(PATIENCE * 2))?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    let mut stream = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while stream.read_line(&mut line)? > 2 {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer)?;
    Ok(serde_json::from_slice(&answer)?)
}
