//! Cookies as bytes and rules: reading them from a request, writing them into a response. Pure.
//!
//! ```text
//! parse      the Cookie header, byte for byte
//! near_miss  names that look like ours to a laxer parser, for events
//! origin     the one origin a layer serves
//! domain     the Domain attribute, held against the public suffix list
//! name       cookie names and the prefix their scope demands
//! set_cookie the Set-Cookie line; a forbidden combination cannot be stated
//! sealed     sealed bytes under a cookie's name
//! ```

mod domain;
mod name;
mod near_miss;
mod origin;
mod parse;
mod sealed;
mod set_cookie;

pub use domain::{CookieDomain, DomainError};
pub use name::{NameError, Scope};
pub use near_miss::NearMiss;
pub(crate) use near_miss::near_miss;
pub use origin::{Origin, OriginError};
pub(crate) use parse::{Found, all_of, find};
pub(crate) use sealed::{SealedCookie, Unsealed};
pub use set_cookie::{SameSite, SetCookie, SetCookieError};
