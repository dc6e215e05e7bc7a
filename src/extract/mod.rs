//! What a handler asks for. With the feature `axum` each is an extractor; other services use `from_extensions`.
//!
//! | extractor | gives | refuses with |
//! |---|---|---|
//! | [`Identity`] | who is signed in | 401 |
//! | `Option<Identity>` | the same, or nobody | never |
//! | [`RequireRecentAuth`] | who signed in lately | 401, 403 |
//! | [`RequireDevice`] | who is signed in by a session that is bound to a device | 401, 403 |
//! | [`RequireRecentProof`] | the same, whose device has proven itself a moment ago | 401, 403, 307 |
//! | [`Auth`] | login, logout, claims, lists | never |
//! | [`FormToken`] | the token of this session's forms | 503 without random bytes |
//! | [`ClientContext`] | the client's address, and whether it changed | never |
//! | [`Session`](tower_sessions_core::Session) | the session's data | never |
//!
//! A response whose handler read `Identity`, `FormToken`, `Auth`'s lists or a `Session` varies on the cookie, and is `private, no-store`
//! unless it states its own `Cache-Control`. One thing cannot be seen: that a handler read the empty `Session` of somebody
//! who has none. Where such a page may be cached, take `Option<Identity>` as well.
//!
//! Without the layer they refuse with 500 and say so in the log (all but `Session`, whose refusal is the core's own).

mod auth;
#[cfg(feature = "axum")]
mod axum;
mod client;
mod device;
mod form_token;
mod identity;
mod recent;
mod recent_proof;
mod rejection;
#[cfg(feature = "axum")]
mod require_form_token;

pub use auth::{Auth, Login};
pub use client::{ClientChange, ClientContext};
pub use device::RequireDevice;
pub use form_token::FormToken;
pub use identity::Identity;
pub use recent::RequireRecentAuth;
pub use recent_proof::RequireRecentProof;
pub use rejection::AuthRejection;
#[cfg(feature = "axum")]
pub use require_form_token::{FormTokenService, RequireFormToken};
