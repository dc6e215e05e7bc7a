//! Three real browsers with one interface.
//!
//! Chromium and WebKitGTK are driven by W3C WebDriver, Firefox by WebDriver BiDi. Each starts with an empty profile, and
//! as its makers ship it, but for what a test needs: no first-run pages, and the certificate of the proxy taken.

mod bidi;
mod classic;
mod process;

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use serde_json::{Value, json};

use bidi::Bidi;
use classic::Classic;
pub(crate) use process::poll;
use process::{Process, installed};

/// Which browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Chromium,
    /// Chromium as it comes with a key store, which Linux has none of: sessions are bound, and signing is not rationed.
    BindingChromium,
    /// The same with the ration that it ships with: six signatures in nine minutes.
    RationedChromium,
    Firefox,
    /// `WebCore` as in Safari, but the cookie jar of libsoup.
    WebKitGtk,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Chromium, Self::Firefox, Self::WebKitGtk];

    /// What has to be installed and is not.
    pub(crate) fn missing(self) -> Option<&'static str> {
        let programs: &[&str] = match self {
            Self::Chromium | Self::BindingChromium | Self::RationedChromium => &["chromium", "chromedriver"],
            Self::Firefox => &["firefox-esr"],
            Self::WebKitGtk => &["WebKitWebDriver", "Xvfb"],
        };
        let missing = programs.iter().copied().find(|name| installed(name).is_none());
        missing.or_else(|| (self == Self::WebKitGtk && mini_browser().is_none()).then_some("MiniBrowser"))
    }

    /// Whether the browser knows the prefixes of cookie names, and keeps to the limits on cookies.
    pub(crate) fn has_a_modern_jar(self) -> bool {
        self != Self::WebKitGtk
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Chromium => "Chromium",
            Self::BindingChromium => "Chromium that binds",
            Self::RationedChromium => "Chromium that binds, rationed",
            Self::Firefox => "Firefox",
            Self::WebKitGtk => "WebKitGTK",
        })
    }
}

/// A running browser with one window.
#[derive(Debug)]
pub(crate) struct Browser {
    pub(crate) kind: Kind,
    wire: Wire,
}

#[derive(Debug)]
enum Wire {
    Classic(Classic),
    Bidi(Box<Bidi>),
}

impl Browser {
    /// Starts a browser that was never anywhere. `folder` is that of `tests/browsers`.
    pub(crate) fn start(kind: Kind, folder: &Path) -> Self {
        let start = || match kind {
            Kind::Chromium => chromium(folder, None).map(Wire::Classic),
            Kind::BindingChromium => chromium(folder, Some(UNRATIONED)).map(Wire::Classic),
            Kind::RationedChromium => chromium(folder, Some(RATIONED)).map(Wire::Classic),
            Kind::Firefox => firefox().map(Box::new).map(Wire::Bidi),
            Kind::WebKitGtk => webkit_gtk().map(Wire::Classic),
        };
        // A browser that does not come up on a busy machine is not what is tested here.
        let wire = start().or_else(|first| start().map_err(|second| format!("{first}\nand again: {second}")));
        Self { kind, wire: wire.unwrap_or_else(|error| panic!("{kind} does not start: {error}")) }
    }

    /// Goes to an address as if it was typed, and waits until the page is loaded.
    pub(crate) fn open(&mut self, url: &str) {
        let done = match &mut self.wire {
            Wire::Classic(wire) => wire.navigate(url),
            Wire::Bidi(wire) => wire.navigate(url),
        };
        done.unwrap_or_else(|error| panic!("{}: {url}: {error}", self.kind));
    }

    /// Runs an async function of this body in the page, and gives what it returns.
    pub(crate) fn run(&mut self, body: &str) -> Value {
        self.try_run(body).unwrap_or_else(|error| panic!("{}: {body}: {error}", self.kind))
    }

    /// The same, where the page may be on its way out.
    pub(crate) fn try_run(&mut self, body: &str) -> Result<Value, String> {
        match &mut self.wire {
            Wire::Classic(wire) => wire.run(body),
            Wire::Bidi(wire) => wire.run(body),
        }
    }

    /// Clicks on the element of a CSS selector, as a person does.
    pub(crate) fn click(&mut self, css: &str) {
        let done = match &mut self.wire {
            Wire::Classic(wire) => wire.click(css),
            Wire::Bidi(wire) => wire.click(css),
        };
        done.unwrap_or_else(|error| panic!("{}: click on {css}: {error}", self.kind));
    }

    /// Deletes a cookie of the open page, as if it had expired. Chromium and WebKitGTK only.
    pub(crate) fn forget_cookie(&mut self, name: &str) {
        let Wire::Classic(wire) = &self.wire else { panic!("{}: it is not driven by WebDriver", self.kind) };
        wire.forget_cookie(name).unwrap_or_else(|error| panic!("{}: {name}: {error}", self.kind));
    }

    /// Puts a cookie of the open page's host into the browser's jar, as the application sets them. Chromium and WebKitGTK only.
    pub(crate) fn put_cookie(&mut self, name: &str, value: &str) {
        let Wire::Classic(wire) = &self.wire else { panic!("{}: it is not driven by WebDriver", self.kind) };
        wire.put_cookie(name, value).unwrap_or_else(|error| panic!("{}: {name}: {error}", self.kind));
    }

    /// The value of a cookie of the open page, as one who reads the disk sees it. Chromium and WebKitGTK only.
    pub(crate) fn cookie(&mut self, name: &str) -> String {
        let Wire::Classic(wire) = &self.wire else { panic!("{}: it is not driven by WebDriver", self.kind) };
        wire.cookie(name).unwrap_or_else(|error| panic!("{}: {name}: {error}", self.kind))
    }

    /// The back button.
    pub(crate) fn back(&mut self) {
        let done = match &mut self.wire {
            Wire::Classic(wire) => wire.back(),
            Wire::Bidi(wire) => wire.back(),
        };
        done.unwrap_or_else(|error| panic!("{}: back: {error}", self.kind));
    }

    /// Quits. Whatever is still there afterwards is killed.
    pub(crate) fn close(mut self) {
        let _ = match &mut self.wire {
            Wire::Classic(wire) => wire.close(),
            Wire::Bidi(wire) => wire.close(),
        };
    }
}

/// What a script made of JSON says: its value, or its error.
fn outcome(json: Option<&str>) -> Result<Value, String> {
    let mut outcome: Value = json.and_then(|json| serde_json::from_str(json).ok()).ok_or("no outcome")?;
    match outcome["error"].as_str() {
        Some(error) => Err(error.to_owned()),
        None => Ok(outcome["value"].take()),
    }
}

fn chromium(folder: &Path, features: Option<&str>) -> Result<Classic, String> {
    let driver = Process::start(|_, port| {
        let mut command = Command::new("chromedriver");
        command.arg(format!("--port={port}"));
        command
    })?;
    let spki = fs::read_to_string(folder.join("spki")).map_err(|error| error.to_string())?;
    let trusted = format!("--ignore-certificate-errors-spki-list={}", spki.trim());
    let mut arguments = vec![
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-component-update",
        "--no-first-run",
        trusted.as_str(),
    ];
    arguments.extend(features);
    // Debian's defaults of these two are not those of Chromium: third-party cookies are let through, pages preloaded.
    let preferences = json!({ "profile.cookie_controls_mode": 0, "net.network_prediction_options": 0 });
    let options = json!({ "args": arguments, "prefs": preferences });
    Classic::new(driver, &json!({ "browserName": "chrome", "goog:chromeOptions": options }))
}

const UNRATIONED: &str = "--enable-features=DeviceBoundSessions:RefreshQuota/false,EnableBoundSessionCredentialsSoftwareKeysForManualTesting";
const RATIONED: &str =
    "--enable-features=DeviceBoundSessions,EnableBoundSessionCredentialsSoftwareKeysForManualTesting";

fn firefox() -> Result<Bidi, String> {
    let quiet: [(&str, Value); 12] = [
        ("app.update.enabled", json!(false)),
        ("browser.aboutwelcome.enabled", json!(false)),
        ("browser.newtabpage.enabled", json!(false)),
        ("browser.shell.checkDefaultBrowser", json!(false)),
        ("browser.startup.page", json!(0)),
        ("datareporting.policy.dataSubmissionEnabled", json!(false)),
        ("network.captive-portal-service.enabled", json!(false)),
        ("network.connectivity-service.enabled", json!(false)),
        ("termsofuse.bypassNotification", json!(true)),
        // JSON is shown as text.
        ("devtools.jsonview.enabled", json!(false)),
        // Without a network but loopback it would go offline.
        ("network.manage-offline-status", json!(false)),
        // No preferences for tests: what people have is tested.
        ("remote.prefs.recommended", json!(false)),
    ];
    let firefox = Process::start(|home, port| {
        let profile = home.file("profile");
        fs::create_dir(&profile).expect("the folder can be written");
        let lines = quiet.map(|(name, value)| format!("user_pref(\"{name}\", {value});\n")).concat();
        fs::write(profile.join("user.js"), lines).expect("the profile can be written");
        let mut command = Command::new("firefox-esr");
        command.args(["--headless", "--no-remote", "--profile"]).arg(profile);
        command.args(["--remote-debugging-port", &port.to_string()]);
        command
    })?;
    Bidi::new(firefox)
}

fn webkit_gtk() -> Result<Classic, String> {
    let driver = Process::start(|_, port| {
        let mut command = Command::new("WebKitWebDriver");
        command.arg(format!("--port={port}"));
        // There is no graphics card.
        command.env("LIBGL_ALWAYS_SOFTWARE", "1").env("WEBKIT_DISABLE_DMABUF_RENDERER", "1");
        command.env("WEBKIT_DISABLE_COMPOSITING_MODE", "1");
        command
    })?;
    let options = json!({ "binary": mini_browser().ok_or("no MiniBrowser")?, "args": ["--automation"] });
    Classic::new(driver, &json!({ "acceptInsecureCerts": true, "webkitgtk:browserOptions": options }))
}

/// The browser that comes with `WebKitWebDriver`: `/usr/lib/ARCHITECTURE/webkit2gtk-VERSION/MiniBrowser`.
fn mini_browser() -> Option<String> {
    let folders =
        |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let files = folders("/usr/lib".into()).flat_map(folders).map(|folder| folder.join("MiniBrowser"));
    files.filter(|file| file.is_file()).map(|file| file.to_string_lossy().into_owned()).max()
}

/// How long a page may take, or a script in it.
const PATIENCE: Duration = Duration::from_mins(1);
