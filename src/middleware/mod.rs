//! The tower layer: what happens to a request on its way to the application and back.
//!
//! ```text
//! builder   what is configured; config_error is all that is wrong with it
//! layer     the layer; site is what all its requests share
//! service   a request's way, in order
//! place     whether it came to this site at all; client_address is who sent it
//! cross_site  whether another site made the browser send it
//! incoming  a request as it comes, and whether its cookies may count at all
//! request   who is asking: cookies, seal, context, token; question is what only the store can answer
//! sealed_cookies  named cookies of the application, sealed without its knowing
//! attached  what a request carries for the extractors
//! account   login, logout, claims, lists of sessions; auth_error is why not
//! outgoing  the application's cookies on the way out: policy, then seal
//! response  our cookies and cache rules on the way out; manners is what the site chose there
//! diagnosis  why a cookie did not arrive
//! device    whether sessions are bound to keys; device_settings is what is configured of it
//! endpoints  the service for it, call one request: device_endpoints is what browsers speak to, key_endpoint what the script
//!            speaks to that keeper serves
//! well_known  what the site says of itself; jwks is the public keys of its renewal tokens
//! ```

mod account;
mod attached;
mod auth_error;
mod build;
mod builder;
mod call;
mod client_address;
mod config_error;
mod cross_site;
mod device;
mod device_endpoints;
mod device_settings;
mod diagnosis;
mod endpoints;
mod fields;
mod incoming;
mod jwks;
mod keeper;
mod key_endpoint;
mod layer;
mod manners;
mod outgoing;
mod place;
mod question;
mod request;
mod response;
mod sealed_cookies;
mod service;
mod site;
mod told;
mod well_known;

pub(crate) use account::LoginSpec;
pub use account::{DeviceInfo, SessionInfo};
pub(crate) use attached::Attached;
pub use auth_error::AuthError;
pub use builder::SessionLayerBuilder;
pub use config_error::{ConfigError, Problem};
pub use cross_site::CrossSite;
#[cfg(feature = "axum")]
pub(crate) use cross_site::is_safe;
pub use device::DeviceBinding;
pub use diagnosis::{CookieCause, DiagnosisPage};
pub use endpoints::DeviceEndpoints;
pub use layer::SessionLayer;
pub use manners::ClearSiteData;
#[cfg(feature = "axum")]
pub(crate) use response::unavailable;
pub use service::{ResponseFuture, SessionService};
pub use well_known::WellKnown;
