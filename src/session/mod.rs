//! The rules, pure: what a session is, how long it lives, how it renews, who is let in. No HTTP, no store, no clock.
//!
//! ```text
//! timeouts       fresh, grace, idle, absolute
//! binding        what must stay the same about a client, and what happens where it does not
//! context        what a client shows, and whether it is still the same client; user_agent and hints read signals of it,
//!                context_digest is what is kept of it
//! device         the key that a session is bound to
//! form_token     the token of a form
//! snapshot       what the session cookie says
//! strength       how strongly a session is tied to its user and client
//! private        what a record keeps sealed
//! renewal_token  the one-time token that buys new cookies
//! rotation       what a presented generation leads to
//! verdict        Anonymous | Admit | Renew | Challenge | Reject | Unavailable
//! wire           length-prefixed bytes, for snapshot and private
//! ```

mod binding;
mod context;
mod context_digest;
mod device;
mod form_token;
mod hints;
mod private;
mod renewal_token;
mod rotation;
mod snapshot;
mod strength;
mod timeouts;
mod user_agent;
mod verdict;
mod wire;

pub use binding::{BindingPolicy, ContextSignal, Reaction};
pub(crate) use context::{ClientContext, ContextRelation, NetworkOf, Seen};
pub(crate) use context_digest::ContextDigest;
pub use device::Device;
#[cfg(any(feature = "redis", feature = "postgres"))]
pub(crate) use device::LENGTH as DEVICE;
pub(crate) use form_token::{FormTag, is_for as is_form_token_for, masked as masked_form_token};
pub(crate) use hints::{hints, proxy_header};
pub(crate) use private::Private;
#[doc(hidden)]
pub use renewal_token::VerifiedRenewal;
pub(crate) use renewal_token::{AuthenticToken, RenewalTokens, TokenError, TokenParts};
pub use rotation::{Rotation, RotationOutcome, rotate};
pub(crate) use snapshot::{Fixed, Snapshot, SnapshotParts};
pub use strength::Strength;
pub use timeouts::{Timeouts, TimeoutsError};
pub use verdict::Reason;
pub(crate) use verdict::{Admission, Challenged, Standing, Verdict, admit, admit_without_store};
// Public only so that documentation tests can show that nobody else can make one.
#[doc(hidden)]
pub use verdict::{Admitted, Opened};
