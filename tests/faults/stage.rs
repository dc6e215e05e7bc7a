//! Two instances over a server of a test's own, perhaps with a proxy between.

use std::time::{Duration, Instant};

use http::StatusCode;

use crate::{
    lab::{Answer, Browser, FRESH, Flags, Lab, eventually},
    proxy::Proxy,
    servers::{Postgres, Redis, is_there},
};

/// One test at a time: they measure how long things take, and another test's servers would be in the way.
pub(crate) async fn turn() -> tokio::sync::MutexGuard<'static, ()> {
    static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    TURN.lock().await
}

/// A server that can be made to fail.
pub(crate) enum Server {
    Redis(Redis),
    Postgres(Postgres),
}

impl Server {
    pub(crate) fn redis() -> Option<Self> {
        is_there("redis-server").then(|| Self::Redis(Redis::start(&[])))
    }

    pub(crate) fn postgres() -> Option<Self> {
        Postgres::start().map(Self::Postgres)
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Self::Redis(redis) => redis.url(),
            Self::Postgres(postgres) => postgres.url(),
        }
    }

    fn port(&self) -> u16 {
        match self {
            Self::Redis(redis) => redis.port,
            Self::Postgres(postgres) => postgres.port,
        }
    }

    pub(crate) fn kill(&self) {
        match self {
            Self::Redis(redis) => redis.kill(),
            Self::Postgres(postgres) => postgres.kill(),
        }
    }

    pub(crate) fn restart(&self) {
        match self {
            Self::Redis(redis) => redis.restart(),
            Self::Postgres(postgres) => postgres.restart(),
        }
    }

    pub(crate) fn signal(&self, signal: &str) {
        match self {
            Self::Redis(redis) => redis.signal(signal),
            Self::Postgres(postgres) => postgres.signal(signal),
        }
    }

    /// A proxy in front of it, and the URL that leads through.
    pub(crate) fn proxied(&self) -> (Proxy, String) {
        let proxy = Proxy::start(vec![([127, 0, 0, 1], self.port()).into()]);
        let url = self.url().replace(&self.port().to_string(), &proxy.address.port().to_string());
        (proxy, url)
    }
}

/// Two instances over what lies at `url`, with the time limit that the library has by default.
pub(crate) fn two_instances(url: &str, arguments: &[&str]) -> Lab {
    let keys = Some(Lab::new_keys());
    let flags = Flags { keys, instances: 2, settles: false, store: url.into(), ..Flags::memory() };
    Lab::start(&flags.with(&["--verb-timeout", "250"]).with(arguments))
}

/// A browser with a fresh cookie, and one with a stale one.
pub(crate) async fn fresh_and_stale(lab: &Lab) -> (Browser, Browser) {
    let stale = lab.signed_in("bob").await;
    lab.pass(FRESH).await;
    (lab.signed_in("alice").await, stale)
}

/// The moment it is: for what must not take long.
#[allow(clippy::disallowed_methods, reason = "here the machine's own time is measured, not the test's clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Asserts that an answer is what a request gets that the store would have to answer.
pub(crate) fn assert_unavailable(answer: &Answer) {
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{answer:?}");
    assert!(answer.headers.contains_key("retry-after"), "{answer:?}");
    assert!(answer.cookies.is_empty(), "{answer:?}");
}

/// Asserts what holds while the store is silent: strangers and fresh cookies do not notice, a stale one is told to come
/// again, soon, and nobody loses a cookie.
pub(crate) async fn assert_outage(lab: &Lab, fresh: &Browser, stale: &Browser) {
    for _ in 0..6 {
        assert_eq!(lab.browser().ask("GET", "/", "").await.user(), None);
        assert_eq!(fresh.ask("GET", "/", "").await.user().as_deref(), Some("alice"));
        let asked = now();
        assert_unavailable(&stale.ask("GET", "/", "").await);
        // 250 ms of the limit, and what a busy machine takes for a request.
        assert!(asked.elapsed() < Duration::from_millis(1500), "{:?}", asked.elapsed());
    }
}

/// Waits until a stale cookie renews again. How long that took.
pub(crate) async fn recovery(stale: &mut Browser) -> Duration {
    let back = now();
    loop {
        let answer = stale.visit("GET", "/", "").await;
        if answer.status == StatusCode::OK {
            assert_eq!(answer.user().as_deref(), Some("bob"));
            return back.elapsed();
        }
        assert_unavailable(&answer);
        assert!(back.elapsed() < Duration::from_secs(15), "it does not come back");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until nobody is let in at any instance with what a browser holds.
pub(crate) async fn until_nobody(browser: &Browser) {
    eventually(Duration::from_secs(15), || async {
        let mut nobody = true;
        // Each connection goes to the other instance.
        for _ in 0..2 {
            let answer = browser.ask("GET", "/", "").await;
            nobody &= answer.status == StatusCode::OK && answer.user().is_none();
        }
        nobody
    })
    .await;
}
