//! Real browsers as judges: Chromium, Firefox and WebKitGTK against the example `lab`, behind a proxy that speaks TLS.
//!
//! What a browser stores, sends, withholds and refuses is not for a test to assume. Each story is played in every browser
//! that is installed; what arrived is read from the proxy's log and from the application's own answers. Where browsers
//! differ, the story says so: WebKitGTK has Safari's engine, but a cookie jar of its own that knows no prefixes.
//!
//! They want `tests/browsers`, which gives them names and ports of their own; anywhere else they are left out.
#![cfg(all(feature = "axum", feature = "sqlite", unix))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, also in the helpers that clippy does not know to be tests"
)]

#[path = "../common/jar.rs"]
mod jar;
#[path = "../common/lab.rs"]
mod lab;
#[path = "../common/proxy.rs"]
mod proxy;
#[path = "../common/scratch.rs"]
mod scratch;
#[cfg(feature = "redis")]
#[path = "../common/servers.rs"]
mod servers;
#[path = "../common/unique.rs"]
mod unique;
#[path = "../common/user_agent.rs"]
mod user_agent;

mod driver;
mod pages;
mod seen;
mod stage;

mod bound;
#[cfg(feature = "redis")]
mod bound_instances;
mod history;
mod honest;
mod hostile;
mod localhost;
mod other_sites;
mod preloading;
mod siblings;
mod sign_in;
mod software_key;

use std::io::Write as _;

/// Makes of each story a test for each browser.
macro_rules! in_every_browser {
    ($($story:ident),* $(,)?) => {
        $crate::in_browser!(on_chromium Chromium: $($story),*);
        $crate::in_browser!(on_firefox Firefox: $($story),*);
        $crate::in_browser!(on_webkitgtk WebKitGtk: $($story),*);
    };
}
pub(crate) use in_every_browser;

/// The same for one browser, whose application may be started with flags.
macro_rules! in_browser {
    ($module:ident $kind:ident: $($story:ident),* $(,)?) => {
        mod $module {
            $(#[test]
            fn $story() {
                $crate::stage::play_with($crate::driver::Kind::$kind, &[], super::$story);
            })*
        }
    };
    ($module:ident $kind:ident with $flags:ident; $($story:ident),* $(,)?) => {
        mod $module {
            $(#[test]
            fn $story() {
                $crate::stage::play_with($crate::driver::Kind::$kind, super::$flags, super::$story);
            })*
        }
    };
}
pub(crate) use in_browser;

/// Says what is left out, so that nobody takes silence for success. CI leaves nothing out.
#[test]
fn left_out() {
    // A terminal that is gone is no failure of this test.
    if stage::folder().is_none() {
        let how = "run tests/browsers cargo test --all-features --test browser";
        let _ = writeln!(std::io::stderr(), "left out: browser (not in its own namespaces: {how})");
        return;
    }
    for kind in driver::Kind::ALL {
        if let Some(missing) = kind.missing() {
            assert!(std::env::var_os("CI").is_none(), "{kind}: {missing} is not installed");
            let _ = writeln!(std::io::stderr(), "left out: browser in {kind} ({missing} is not installed)");
        }
    }
}
