//! What each test plays on: a lab behind the proxy, pages, and one real browser. One test at a time.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use serde_json::json;
use tokio::runtime::Runtime;

use crate::{
    driver::{Browser, Kind, poll},
    jar::{RENEWAL, SESSION},
    lab::{self, Flags, Lab},
    pages::Pages,
    seen::{Request, Seen},
};

#[cfg(feature = "redis")]
use crate::{proxy::Proxy, servers::Redis};

/// The application, its sibling, and another site.
pub(crate) const APP: &str = "https://app.site.test";
pub(crate) const SIBLING: &str = "https://evil.site.test";
pub(crate) const OTHER: &str = "https://other.test";

/// A page of the application on which scripts can run.
pub(crate) const DESK: &str = "https://app.site.test/pages/desk";

/// Everything a test needs.
pub(crate) struct Stage {
    pub(crate) browser: Browser,
    pub(crate) lab: Lab,
    pub(crate) seen: Seen,
    pages: Pages,
    runtime: Runtime,
}

/// Plays a story in a browser, with these flags of the application beside the usual ones. Outside `tests/browsers`, or without
/// that browser, it is left out.
pub(crate) fn play_with(kind: Kind, flags: &'static [&str], story: fn(&mut Stage)) {
    let Some(folder) = folder() else { return };
    if kind.missing().is_some() {
        return;
    }
    let _one_at_a_time = STAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let lab = Lab::start(&Flags::memory().with(&["--listen", "127.0.0.1:3000"]).with(flags));
    perform(kind, &folder, lab, story);
}

/// The same where two instances share a Redis of the story's own, behind a proxy that does to their bytes what it says.
#[cfg(feature = "redis")]
pub(crate) fn play_over_redis(kind: Kind, flags: &'static [&str], story: fn(&mut Stage, &Redis, &Proxy)) {
    let Some(folder) = folder() else { return };
    if kind.missing().is_some() {
        return;
    }
    let _one_at_a_time = STAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let redis = Redis::start(&[]);
    let shared = Flags { keys: Some(Lab::new_keys()), instances: 2, store: redis.url(), ..Flags::memory() };
    let lab = Lab::start(&shared.with(&["--verb-timeout", "250"]).with(flags));
    let proxy = Proxy::at(3000, lab.instances().to_vec());
    perform(kind, &folder, lab, |stage| story(stage, &redis, &proxy));
}

fn perform(kind: Kind, folder: &Path, lab: Lab, story: impl FnOnce(&mut Stage)) {
    let runtime = Runtime::new().expect("a runtime");
    let pages = Pages::start(&runtime);
    pages.put(DESK, "desk", &[]);
    let seen = Seen::new(folder);
    let mut stage = Stage { browser: Browser::start(kind, folder), lab, seen, pages, runtime };
    let played = catch_unwind(AssertUnwindSafe(|| story(&mut stage)));
    if played.is_err() {
        eprintln!("{kind}: the application has answered {:#?}", stage.seen.all());
        eprintln!("its log:\n{}", stage.lab.log());
    }
    stage.browser.close();
    if let Err(panic) = played {
        resume_unwind(panic);
    }
}

/// The folder of `tests/browsers`, if this runs in there.
pub(crate) fn folder() -> Option<PathBuf> {
    std::env::var_os("PORTCULLIS_TEST_BROWSERS").map(PathBuf::from)
}

impl Stage {
    /// Which browser this is.
    pub(crate) fn kind(&self) -> Kind {
        self.browser.kind
    }

    /// Puts a page somewhere and goes there.
    pub(crate) fn open_page(&mut self, url: &str, html: &str) {
        self.pages.put(url, html, &[]);
        self.browser.open(url);
    }

    /// Puts a file somewhere.
    pub(crate) fn put_file(&self, url: &str, text: &str) {
        self.pages.put_file(url, text);
    }

    /// Goes to a page that sets cookies with these lines.
    pub(crate) fn toss(&mut self, url: &str, lines: &[&[u8]]) {
        self.pages.put(url, "tossed", lines);
        self.browser.open(url);
    }

    /// Has a page at `url` submit a form of these fields by a click, waits for the answer and until it is shown.
    pub(crate) fn submit(&mut self, url: &str, action: &str, fields: &str) -> Request {
        self.seen.forget();
        let form = format!("<form method=post action={APP}{action}>{fields}<button>go</button></form>");
        self.open_page(url, &form);
        self.browser.click("button");
        let request = self.seen.wait("POST", action);
        if request.status != 204 {
            // What is shown instead may be a page of the browser's own, in which no script runs.
            let is_there =
                "return document.readyState == 'loading' || document.querySelector('button') != null";
            let gone = poll(|| (self.browser.try_run(is_there) != Ok(true.into())).then_some(()));
            gone.expect("the answer is shown");
        }
        request
    }

    /// Sends a request from a page of the application, and gives the status.
    pub(crate) fn fetch(&mut self, method: &str, path: &str, form: Option<&str>) -> u64 {
        self.browser.open(DESK);
        self.fetch_here(method, path, form)
    }

    /// The same from the page that is open.
    pub(crate) fn fetch_here(&mut self, method: &str, path: &str, form: Option<&str>) -> u64 {
        let form =
            form.map_or_else(String::new, |form| format!("body: new URLSearchParams({}),", json!(form)));
        let script = format!(
            "const answer = await fetch({}, {{ method: {}, {form} }}); return answer.status;",
            json!(path),
            json!(method)
        );
        self.browser.run(&script).as_u64().expect("a status")
    }

    /// Signs in with the login form of the application.
    pub(crate) fn sign_in(&mut self, user: &str) {
        assert_eq!(self.fetch("POST", "/login", Some(&format!("user={user}"))), 204);
    }

    /// Who the application says this is, on its own page.
    pub(crate) fn who(&mut self) -> Option<String> {
        self.browser.open(&format!("{APP}/"));
        let page: serde_json::Value = serde_json::from_str(&self.text()).expect("JSON");
        page["user"].as_str().map(str::to_owned)
    }

    /// How many cookies of each name arrive when the address of the application is typed.
    pub(crate) fn arrived(&mut self) -> BTreeMap<String, usize> {
        self.browser.open(&format!("{APP}/lab/arrived"));
        serde_json::from_str(&self.text()).expect("JSON")
    }

    /// What the open page says, which is plain text.
    pub(crate) fn text(&mut self) -> String {
        // Another page may come first.
        let text = "const page = document.querySelector('pre'); return page && page.textContent";
        let text = poll(|| Some(self.browser.try_run(text).ok()?.as_str()?.to_owned()));
        text.expect("a text")
    }

    /// What a script of the open page sees of cookies.
    pub(crate) fn script_sees(&mut self) -> String {
        self.browser.run("return document.cookie").as_str().expect("a text").to_owned()
    }

    /// Has a made-up browser visit the application past the proxy.
    pub(crate) fn visit(&self, browser: &mut lab::Browser, method: &str, path: &str, body: &str) {
        let answer = self.runtime.block_on(browser.visit(method, path, body));
        assert!(answer.status.is_success(), "{answer:?}");
    }

    /// What a made-up browser is told by the application past the proxy; its jar stays as it is.
    pub(crate) fn ask(&self, browser: &lab::Browser, path: &str) -> lab::Answer {
        self.runtime.block_on(browser.ask("GET", path, ""))
    }

    /// Moves the clock of the application.
    pub(crate) fn pass(&self, seconds: u64) {
        self.runtime.block_on(self.lab.pass(seconds));
    }
}

/// The two cookies, each once, and nothing else.
pub(crate) fn ours() -> BTreeMap<String, usize> {
    [SESSION, RENEWAL].map(|name| (name.to_owned(), 1)).into()
}

/// Two browsers at once would be slower than one after the other; and the ports are the proxy's.
static STAGE: Mutex<()> = Mutex::new(());
