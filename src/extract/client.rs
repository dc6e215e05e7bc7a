//! The client of a request.

use std::{fmt, net::IpAddr};

use http::Extensions;

use super::rejection::{AuthRejection, attached};
use crate::{
    middleware::Attached,
    session::{ContextRelation, ContextSignal},
};

/// Which client sent a request, as far as the layer knows.
#[derive(Clone)]
pub struct ClientContext(Attached);

/// How the client relates to the one that the session is bound to. See [`BindingPolicy`](crate::session::BindingPolicy).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientChange {
    /// Nothing that counts is different, or nobody has a session.
    Same,
    /// Different in a way that clients change by themselves.
    Drift,
    /// By this signal another one, which is only told of.
    Noted(ContextSignal),
    /// By this signal another one: the session may not do what needs a recent authentication.
    Changed(ContextSignal),
    /// By this signal not the client that the session of its cookies belongs to: nobody is signed in.
    Rejected(ContextSignal),
}

impl ClientContext {
    /// What the extractor does, for services that are not axum's.
    ///
    /// # Errors
    /// If no layer runs in front of the service.
    pub fn from_extensions(extensions: &Extensions) -> Result<Self, AuthRejection> {
        attached(extensions).cloned().map(Self)
    }

    /// The client's address: the socket's, or what a trusted proxy says. `None` where the layer was not told how to know it
    /// ([`peer_address`](crate::middleware::SessionLayerBuilder::peer_address)), or the proxy does not say.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        self.0.address()
    }

    /// How it relates to the client that the session is bound to. The response varies on the cookie then.
    #[must_use]
    pub fn change(&self) -> ClientChange {
        match self.0.relation() {
            ContextRelation::Same => ClientChange::Same,
            ContextRelation::Drift => ClientChange::Drift,
            ContextRelation::Noted(signal) => ClientChange::Noted(signal),
            ContextRelation::Changed(signal) => ClientChange::Changed(signal),
            ContextRelation::Rejected(signal) => ClientChange::Rejected(signal),
        }
    }
}

impl ClientChange {
    /// The name in lower case: `same`, `drift`, `noted`, `changed`, `rejected`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Drift => "drift",
            Self::Noted(_) => "noted",
            Self::Changed(_) => "changed",
            Self::Rejected(_) => "rejected",
        }
    }
}

/// An address is a personal date, so it is left out.
impl fmt::Debug for ClientContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientContext").field("change", &self.change()).finish_non_exhaustive()
    }
}
