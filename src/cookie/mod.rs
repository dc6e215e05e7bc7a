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
//! policy     the site's policy for every cookie of the application
//! rule       the names of its rules
//! judge      one line held against them, and mended
//! line       a Set-Cookie line that somebody else wrote, taken apart
//! date       dates in Expires
//! ```

mod date;
mod domain;
mod judge;
mod line;
mod name;
mod near_miss;
mod origin;
mod parse;
mod policy;
mod rule;
mod sealed;
mod set_cookie;

pub use domain::{CookieDomain, DomainError};
pub(crate) use judge::Sending;
pub(crate) use line::parts;
pub(crate) use name::check_name;
pub use name::{NameError, Scope};
pub use near_miss::NearMiss;
pub(crate) use near_miss::{near_miss, resembles};
pub use origin::{Origin, OriginError};
pub(crate) use parse::{Found, Pair, all_of, find, rewritten};
pub(crate) use policy::Kept;
pub use policy::{CookieAction, CookieFinding, CookiePolicy, CookiePolicyError};
pub use rule::CookieRule;
pub(crate) use sealed::{SealedCookie, Unsealed};
pub use set_cookie::{SameSite, SetCookie, SetCookieError};
