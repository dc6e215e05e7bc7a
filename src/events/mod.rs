//! What happened to sessions, for those who watch: one event per decision that somebody may want to know of.
//!
//! An event carries a [`SessionRef`](crate::id::SessionRef), or the name of a cookie of the application, at most: no id, no
//! token, no value, no address, no subject, so that a log of them opens nothing and names nobody.

mod event;
mod refusal;
mod tracing_sink;
mod verb;

pub use event::{CookieFault, SessionEvent, Severity};
pub use refusal::{CrossSiteReason, Misplaced, UnknownAddress};
pub use tracing_sink::TracingSink;
pub use verb::StoreVerb;

/// Takes events.
///
/// It is called in the middle of a request and must not block; hand slow work to a task of your own. An event is
/// delivered once, by the instance where it happened.
pub trait EventSink: std::fmt::Debug + Send + Sync + 'static {
    /// Takes one event.
    fn record(&self, event: &SessionEvent);
}
