//! The cases: what is sent, to which handler, and how it shows that the case did what its name says.

use axum::{Router, routing::get};

use portcullis::{BindingPolicy, CookiePolicy};
use tower_layer::layer_fn;

use crate::{
    allocator,
    controls::{Handing, Passing},
    handlers,
    portcullis_site::{self, Counts},
    request::{Template, forged, set_cookies},
    tower_sessions_site,
};

/// All cases, in the order in which they are shown. The first is what all others are compared with.
pub(crate) const NAMES: [&str; 21] = [
    "bare",
    "empty_layer",
    "two_extensions",
    "portcullis_no_header",
    "portcullis_admit",
    "portcullis_admit_untouched",
    "portcullis_read",
    "portcullis_write",
    "portcullis_no_cookie",
    "portcullis_forged_cookie",
    "portcullis_forged_token",
    "portcullis_renewal",
    "portcullis_set_cookie",
    "portcullis_set_cookie_mended",
    "portcullis_set_cookie_policy_off",
    "portcullis_binding_off",
    "tower_sessions_private_untouched",
    "tower_sessions_private_read",
    "tower_sessions_private_write",
    "tower_sessions_plain_read",
    "bare_again",
];

/// Runs the case called `name`, and gives the allocations of its iterations.
pub(crate) async fn run(name: &str, iterations: u64) -> u64 {
    match name {
        // Twice, so that each table shows by itself how far two equal things come out apart.
        "bare" | "bare_again" => {
            let app = || Router::new().route("/", get(handlers::untouched));
            Case { app: app(), proof: app(), request: Template::new(&[]) }.run(iterations).await
        }
        // What axum takes for any layer at all: a clone of the service, and a box for its future.
        "empty_layer" => {
            let app = || Router::new().route("/", get(handlers::untouched)).layer(layer_fn(Passing));
            Case { app: app(), proof: app(), request: Template::new(&[]) }.run(iterations).await
        }
        // And for what every session layer must do: hand two values to the handler.
        "two_extensions" => {
            let app = || Router::new().route("/", get(handlers::untouched)).layer(layer_fn(Handing));
            Case { app: app(), proof: app(), request: Template::new(&[]) }.run(iterations).await
        }
        "portcullis_renewal" => renewal(iterations).await,
        _ => match name.split_once("tower_sessions_") {
            Some((_, name)) => tower_sessions(name, iterations).await,
            None => portcullis(name, iterations).await,
        },
    }
}

/// One request to one router, again and again.
struct Case {
    app: Router,
    request: Template,
    /// Another handler behind the same layer, which gets the same request before and after: it refuses if the request
    /// does not stand for what the case says. So even a handler that touches nothing is known to be in that case.
    proof: Router,
}

impl Case {
    async fn run(mut self, iterations: u64) -> u64 {
        self.request.send(&mut self.proof).await;
        let before = allocator::count();
        for _ in 0..iterations {
            self.request.send(&mut self.app).await;
            let_others_run().await;
        }
        let allocations = allocator::count() - before;
        self.request.send(&mut self.proof).await;
        allocations
    }
}

async fn portcullis(name: &str, iterations: u64) -> u64 {
    let site = portcullis_site::Site::with(|builder| match name {
        "portcullis_set_cookie_policy_off" => builder.cookie_policy(CookiePolicy::off()),
        "portcullis_binding_off" => builder.binding(BindingPolicy::off()),
        _ => builder,
    })
    .await;
    // Both cookies, as a browser sends them.
    let signed_in = Template::new(&[&site.session, &site.token]);
    let proofs = 2;
    let mut expected = Counts::default();
    let case = match name {
        "portcullis_admit" => {
            let (app, proof) = (site.app(handlers::identity), site.app(handlers::identity));
            Case { app, proof, request: signed_in }
        }
        "portcullis_admit_untouched" => {
            let (app, proof) = (site.app(handlers::untouched), site.app(handlers::identity));
            Case { app, proof, request: signed_in }
        }
        "portcullis_binding_off" => {
            let (app, proof) = (site.app(handlers::identity), site.app(handlers::identity));
            Case { app, proof, request: signed_in }
        }
        "portcullis_set_cookie" | "portcullis_set_cookie_policy_off" => {
            let (app, proof) = (site.app(handlers::set_cookie), site.app(handlers::identity));
            Case { app, proof, request: signed_in }
        }
        "portcullis_set_cookie_mended" => {
            let (app, proof) = (site.app(handlers::set_loose_cookie), site.app(handlers::identity));
            Case { app, proof, request: signed_in }
        }
        "portcullis_read" => {
            let (app, proof) = (site.app(handlers::read), site.app(handlers::written));
            Case { app, proof, request: signed_in }
        }
        "portcullis_write" => {
            let (app, proof) = (site.app(handlers::write), site.app(handlers::written));
            Case { app, proof, request: signed_in }
        }
        "portcullis_no_header" => {
            let (app, proof) = (site.app(handlers::untouched), site.app(handlers::nobody));
            Case { app, proof, request: Template::without_cookies() }
        }
        "portcullis_no_cookie" => {
            let (app, proof) = (site.app(handlers::untouched), site.app(handlers::nobody));
            Case { app, proof, request: Template::new(&[]) }
        }
        "portcullis_forged_cookie" => {
            expected.forged_cookie = iterations + proofs;
            let (app, proof) = (site.app(handlers::untouched), site.app(handlers::nobody));
            Case { app, proof, request: Template::new(&[&forged(&site.session)]) }
        }
        "portcullis_forged_token" => {
            expected.forged_token = iterations + proofs;
            let (app, proof) = (site.app(handlers::untouched), site.app(handlers::nobody));
            // The token is on top of the 512 bytes, so something foreign stands where the session cookie would.
            Case { app, proof, request: Template::new(&["consent=all", &forged(&site.token)]) }
        }
        _ => panic!("there is no case called {name}"),
    };
    let allocations = case.run(iterations).await;
    let mut events = site.events.take();
    if name == "portcullis_set_cookie_mended" {
        // Of HttpOnly and of SameSite, told once in some minutes.
        assert!(events.other >= 2, "{name} was not told of");
        events.other = 0;
    }
    assert_eq!(events, expected, "{name} led to other events");
    allocations
}

async fn tower_sessions(name: &str, iterations: u64) -> u64 {
    let site = match name {
        "plain_read" => tower_sessions_site::Site::plain().await,
        _ => tower_sessions_site::Site::private().await,
    };
    let app = match name {
        "private_untouched" => site.app(handlers::untouched),
        "private_read" | "plain_read" => site.app(handlers::read),
        "private_write" => site.app(handlers::write),
        _ => panic!("there is no case called tower_sessions_{name}"),
    };
    let request = Template::new(&[&site.session]);
    Case { app, proof: site.app(handlers::written), request }.run(iterations).await
}

/// Every request comes with a stale cookie and its token, and goes on with the pair it is given.
async fn renewal(iterations: u64) -> u64 {
    let (site, clock) = portcullis_site::Site::on_manual_clock().await;
    let mut app = site.app(handlers::identity);
    let mut request = Template::new(&[&site.session, &site.token]);
    let before = allocator::count();
    for _ in 0..iterations {
        clock.advance(portcullis_site::FRESH);
        let answer = request.send(&mut app).await;
        let_others_run().await;
        let [session, token]: [String; 2] = set_cookies(&answer).try_into().unwrap();
        request.set_cookies(&[&session, &token]);
    }
    let allocations = allocator::count() - before;
    let expected = Counts { renewed: iterations, ..Counts::default() };
    assert_eq!(site.events.take(), expected, "not every request was a renewal");
    allocations
}

/// Lets the runtime look at its other tasks, in every case alike.
///
/// Without it portcullis's feed task would never run, although a write that wakes it makes a real server run it.
async fn let_others_run() {
    tokio::task::yield_now().await;
}
