//! What several attacks need.

use std::{path::PathBuf, time::Instant};

use crate::{
    forge::Forger,
    lab::{Answer, Browser, Flags, Lab},
    scratch::Scratch,
};

/// The origin that lab serves unless it is told another.
pub(crate) const ORIGIN: &str = "https://app.site.test";

/// A lab whose keys the test knows, and who can forge with them.
pub(crate) fn lab_with_known_keys() -> (Lab, Forger) {
    let keys = Lab::new_keys();
    let lab = Lab::start(&Flags { keys: Some(keys.clone()), ..Flags::memory() });
    (lab, Forger::new(&keys, ORIGIN))
}

/// Two instances over one file, each with a clock of its own. They are not moved together by themselves.
pub(crate) struct Pair {
    pub(crate) one: Lab,
    pub(crate) two: Lab,
    flags: Flags,
    scratch: Scratch,
}

impl Pair {
    pub(crate) fn start() -> Self {
        let scratch = Scratch::new();
        let flags = Flags { keys: Some(Lab::new_keys()), ..Flags::sqlite(&scratch.file("sessions.db")) };
        Self { one: Lab::start(&flags), two: Lab::start(&flags), flags, scratch }
    }

    /// Another instance that starts now, by the clock of the first.
    pub(crate) async fn third(&self) -> Lab {
        let third = Lab::start(&self.flags);
        third.pass(self.one.second()).await;
        third
    }

    pub(crate) async fn pass(&self, seconds: u64) {
        self.one.pass(seconds).await;
        self.two.pass(seconds).await;
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.scratch.file("sessions.db")
    }
}

/// Asks who this is, whatever comes back: nobody, without a cookie set or removed, and without a fault.
pub(crate) async fn assert_nobody(browser: &Browser, what: &str) -> Answer {
    let answer = browser.ask("GET", "/", "").await;
    assert_eq!(answer.user(), None, "{what}");
    assert!(answer.cookies.is_empty(), "{what}: {answer:?}");
    answer
}

/// Asks who this is.
pub(crate) async fn user_of(browser: &Browser) -> Option<String> {
    browser.ask("GET", "/", "").await.user()
}

/// The moment it is: for what must not take long.
#[allow(clippy::disallowed_methods, reason = "here the machine's own time is measured, not the test's clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// What `prove` runs against every patched lab: one that does not answer at all would prove nothing.
#[test]
fn a_stranger_is_answered() {
    let lab = Lab::start(&Flags::memory());
    let (status, answer) =
        lab.raw(b"GET / HTTP/1.1\r\nHost: app.site.test\r\nConnection: close\r\n\r\n").unwrap();
    assert_eq!(status, 200);
    assert!(answer.contains("\"user\":null"), "{answer}");
}
