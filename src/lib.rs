//! Secure cookie sessions for axum, on tower-sessions: what a thief copies out of a browser, a log or a database is
//! worth little to him, and soon nothing.
//!
//! ```no_run
#![cfg_attr(all(feature = "axum", feature = "sqlite"), doc = include_str!("../examples/minimal.rs"))]
//! ```
//!
//! # The idea
//!
//! A browser holds two cookies. The **session cookie** is sealed with AES-256-GCM and fresh for five minutes: it says who
//! the user is and for which client. The **renewal token** is a signed ES256 JWS: it says nothing about the user and buys
//! a new pair of cookies, once.
//!
//! Where the browser can hold a key, a session may be bound to it ([`DeviceBinding`]): then a proof of that key renews, and nothing
//! else. Where it cannot, a script may keep one ([`software_keys`](SessionLayerBuilder::software_keys)): then token and key
//! renew together.
//!
//! While the session cookie is fresh, a request costs one AES-GCM open: no store, no signature, no shared lock. When it
//! is stale, the layer renews in the same request, before the handler runs. A token that comes twice is a race of two
//! tabs (every racer gets in, one gets the successor), a lost answer (forgiven), or a theft: then the session is revoked.
//!
//! Session data is tower-sessions' own [`Session`], so handlers need no change. It is loaded only when a handler reads
//! it, written field by field, and sealed in the store under a key that only the browser's credentials give.
//!
//! # A request's way
//!
//! ```text
//! 1 service    one instant is read from the clock; everything after uses it
//! 2 place      another Host, or a proxy says plain HTTP: nobody, no cookie of ours
//! 3 cross_site what another site made the browser send, and could change something: 403
//!   request    the Cookie header is searched byte for byte; the session cookie is opened
//!   no cookie  anonymous; no store call; a session is created only if the handler writes one
//! 4 fresh      not expired, not revoked, the client tolerated: let in
//! 5 stale      token's MAC, revocations, client, signature; then one atomic step of the store
//!              a store that does not answer: 503 with Retry-After, never a logout
//! 6 attach     Session, Identity and Auth for the handler; the inner service runs
//! 7 commit     changed fields only, one store call, only if something changed
//! 8 response   the policy over the application's cookies; our cookies, Cache-Control, Vary
//! ```
//!
//! Every decision that somebody may want to know of is one [event](events::SessionEvent).
//!
//! # The house
//!
//! A file imports only from the floors below its own; `tests/architecture.rs` holds that.
//!
//! ```text
//! extract/     [9] what a handler asks for: Identity, Auth, RequireRecentAuth, RequireDevice, RequireRecentProof,
//!                  FormToken, ClientContext
//!                  (extractors with the feature `axum`)
//! middleware/  [8] the tower layer: builder, service, request, response, login and logout, cross-site checks, proxies,
//!                  the application's cookies on their way out and in, endpoints of device-bound sessions, diagnosis, JWKS
//! store/       [7] the Store trait and its promises; memory, SQLite, Redis, PostgreSQL; sealing at rest; the bridge to `Session`
//! events/      [6] what happened, for those who watch
//! session/     [5] the rules, pure: timeouts, context, binding, snapshot, renewal token, form token, rotation, verdict
//! dbsc/        [4] device-bound sessions, pure: headers, proofs, challenges, identifiers, instructions
//! cookie/      [3] cookies as bytes and rules, pure: parse, name, domain, Set-Cookie, sealed, policy
//! crypto/      [2] key ring, seal, signatures, message authentication, randomness
//! id, clock      [1], and base64url below them
//! ```
//!
//! # Defaults
//!
//! | what | default | why |
//! |---|---|---|
//! | cookie names | `__Host-Http-session`, `__Host-Http-renewal` | no subdomain can set or overwrite them |
//! | SameSite | `Lax` | links from other sites arrive signed in; cross-site POSTs do not |
//! | `fresh` | 5 min | how long a copied session cookie works at most |
//! | `grace` | 30 s | two tabs that renew at once are no theft |
//! | `idle`, `absolute` | 30 min, 12 h | OWASP Session Management; NIST SP 800-63B |
//! | remembered `idle`, `absolute` | 14 days, 30 days | only for users who asked |
//! | `recent` | 5 min | what [`RequireRecentAuth`] takes for recent |
//! | other browser family | refused | it is not the client the session belongs to |
//! | other platform or network | noted; [`RequireRecentAuth`] refuses | people travel, and so do copied cookies |
//! | unsafe request from another origin | 403 | [`CrossSite`]: a login is forged as well as a payment |
//! | cookies of the application | mended or dropped | [`CookiePolicy`]: browsers default to something weaker |
//! | another Host, or a proxy that says plain HTTP | nobody, no cookie of ours | it would go where it does not belong |
//! | bound to a device | no; [`DeviceBinding`] offers it | the endpoints must be mounted first |
//! | bound to a script's key | no; [`software_keys`](SessionLayerBuilder::software_keys) | pages must carry the script |
//! | store silent for 250 ms | 503 | never signed out, never let in; [`Outage`] has the settings |
//!
//! # Features
//!
//! Features only add.
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `axum` | yes | what is in [`extract`], and [`Session`], as extractors |
//! | `sqlite` | yes | [`SqliteStore`] |
//! | `redis` | no | `RedisStore`: Redis 6.2 or later, Valkey; one server, Sentinel or Cluster |
//! | `postgres` | no | `PostgresStore`: PostgreSQL 13 or later |

mod base64url;
pub mod clock;
pub mod cookie;
pub mod crypto;
pub mod dbsc;
pub mod events;
pub mod extract;
pub mod id;
pub mod middleware;
pub mod session;
pub mod store;

pub use cookie::{CookiePolicy, CookieRule, SameSite};
pub use crypto::{KeyRing, KeyRingError, KeyState};
pub use events::{EventSink, SessionEvent};
#[cfg(feature = "axum")]
pub use extract::RequireFormToken;
pub use extract::{
    Auth, AuthRejection, ClientContext, FormToken, Identity, Login, RequireDevice, RequireRecentAuth,
    RequireRecentProof,
};
pub use id::SessionRef;
pub use middleware::{
    AuthError, ClearSiteData, ConfigError, CrossSite, DeviceBinding, DeviceInfo, Problem, SessionInfo,
    SessionLayer, SessionLayerBuilder,
};
pub use session::{BindingPolicy, ContextSignal, Reaction, Strength, Timeouts};
#[cfg(feature = "sqlite")]
pub use store::SqliteStore;
#[cfg(any(feature = "sqlite", feature = "redis", feature = "postgres"))]
pub use store::StoreOpenError;
pub use store::{FeedLoss, MemoryStore, Outage};
#[cfg(feature = "postgres")]
pub use store::{PostgresOptions, PostgresStore};
#[cfg(feature = "redis")]
pub use store::{RedisOptions, RedisStore};
pub use tower_sessions_core::{Session, session::Error as SessionError};

#[cfg(test)]
#[path = "../tests/common/corpus.rs"]
mod corpus;

/// The README's examples compile.
#[cfg(all(doctest, feature = "axum", feature = "sqlite"))]
#[doc = include_str!("../README.md")]
struct Readme;
