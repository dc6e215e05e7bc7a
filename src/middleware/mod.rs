//! The tower layer: what happens to a request on its way to the application and back.
//!
//! ```text
//! builder   what is configured; config_error is all that is wrong with it
//! layer     the layer; site is what all its requests share
//! service   a request's way, in order
//! request   who is asking: cookies, seal, context, token, store
//! attached  what a request carries for the extractors
//! account   login, logout, claims, lists of sessions
//! response  cookies and cache rules on the way out
//! jwks      the public keys of the renewal tokens
//! ```

mod account;
mod attached;
mod builder;
mod config_error;
mod jwks;
mod layer;
mod request;
mod response;
mod service;
mod site;

pub(crate) use account::LoginSpec;
pub use account::{AuthError, SessionInfo};
pub(crate) use attached::Attached;
pub use builder::SessionLayerBuilder;
pub use config_error::{ConfigError, Problem};
pub use jwks::Jwks;
pub use layer::SessionLayer;
#[cfg(feature = "axum")]
pub(crate) use response::unavailable;
pub use service::{ResponseFuture, SessionService};
