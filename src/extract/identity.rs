//! Who is signed in.

use std::{fmt, future::Future};

use http::Extensions;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use time::OffsetDateTime;

use super::rejection::{AuthRejection, attached};
use crate::{
    id::SessionRef,
    middleware::Attached,
    session::{Snapshot, Strength},
    store::date,
};

/// Who is signed in, as the session cookie says it. Costs no store call.
///
/// It is what was true when the cookie was sealed, at most `fresh` ago; revocations and new claims count at once all the
/// same. A login later in the same request does not change it.
///
/// As an extractor it refuses with 401 where nobody is signed in; `Option<Identity>` takes both.
///
/// ```
/// # use portcullis::Identity;
/// async fn greet(identity: Option<Identity>) -> String {
///     match identity {
///         Some(identity) => format!("hello {}", identity.subject()),
///         None => "hello stranger".into(),
///     }
/// }
/// ```
#[derive(Clone)]
pub struct Identity(Attached);

impl Identity {
    /// Who is signed in, from the extensions of a request behind the layer: what the extractor does, for services that
    /// are not axum's.
    ///
    /// # Errors
    /// If no layer runs in front of the service.
    pub fn from_extensions(extensions: &Extensions) -> Result<Option<Self>, AuthRejection> {
        let attached = attached(extensions)?;
        // Only somebody who is signed in is an identity.
        let signed_in = attached.admitted().is_some_and(Snapshot::has_subject);
        Ok(signed_in.then(|| Self(attached.clone())))
    }

    /// The user, as `login` named them.
    #[must_use]
    pub fn subject(&self) -> &str {
        self.snapshot().and_then(Snapshot::subject).unwrap_or_default()
    }

    /// A claim, as `login` or `set_claims` stated it; `None` if it is not there or of another type.
    ///
    /// Reads the JSON of the claims, at most 1 KiB, at each call.
    #[must_use]
    pub fn claim<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_value(self.claims().remove(name)?).ok()
    }

    /// All claims.
    #[must_use]
    pub fn claims(&self) -> Map<String, Value> {
        let json = self.snapshot().map(Snapshot::claims).unwrap_or_default();
        serde_json::from_str(json).unwrap_or_default()
    }

    /// How the user was authenticated, by the names `login` was given (RFC 8176: `pwd`, `otp`, `hwk` …).
    pub fn methods(&self) -> impl Iterator<Item = &str> {
        self.snapshot().into_iter().flat_map(Snapshot::methods)
    }

    /// When the user was authenticated last.
    #[must_use]
    pub fn authenticated_at(&self) -> OffsetDateTime {
        date(self.snapshot().map(|snapshot| snapshot.fixed().authenticated_at).unwrap_or_default())
    }

    /// How strongly the session is tied to its user and client.
    #[must_use]
    pub fn strength(&self) -> Strength {
        self.snapshot().map_or(Strength::Remembered, |snapshot| snapshot.fixed().strength)
    }

    /// Whether the user asked to be remembered.
    #[must_use]
    pub fn is_remembered(&self) -> bool {
        self.snapshot().is_some_and(|snapshot| snapshot.fixed().remembered)
    }

    /// Whether the client is on another network or platform than the one that authenticated, or was since then.
    #[must_use]
    pub fn context_changed(&self) -> bool {
        self.snapshot().is_some_and(|snapshot| self.0.context_changed(snapshot))
    }

    /// Whether the authentication is as recent as [`RequireRecentAuth`](super::RequireRecentAuth) wants it.
    #[must_use]
    pub fn is_recent(&self) -> bool {
        self.snapshot().is_some_and(|snapshot| self.0.is_recent(snapshot))
    }

    /// The name of the session for logs and lists.
    #[must_use]
    pub fn session(&self) -> SessionRef {
        let id = self.snapshot().map(Snapshot::stored_id);
        id.map_or(SessionRef([0; 16]), |id| self.0.registry().session_ref(id))
    }

    /// Resolves when the session ends, so that a WebSocket or a stream can be closed: by logout and revocation at once
    /// on this instance (elsewhere as fast as the feed is), by timeout within a second.
    ///
    /// Renewals do not end it. A new authentication gives the session another id: the socket of the old one closes when its
    /// cookie would be stale. Dropping the future costs nothing. Looks at the store once in `fresh`.
    ///
    /// ```
    /// # use portcullis::Identity;
    /// # async fn next_message() -> Option<String> { None }
    /// async fn serve(identity: Identity) {
    ///     let ended = identity.ended();
    ///     tokio::pin!(ended);
    ///     loop {
    ///         tokio::select! {
    ///             () = &mut ended => break, // close the socket with code 1008
    ///             message = next_message() => match message {
    ///                 Some(message) => println!("{message}"),
    ///                 None => break,
    ///             },
    ///         }
    ///     }
    /// }
    /// ```
    pub fn ended(&self) -> impl Future<Output = ()> + Send + 'static {
        let ended = self.snapshot().map(|snapshot| self.0.ended(snapshot));
        async move {
            if let Some(ended) = ended {
                ended.await;
            }
        }
    }

    fn snapshot(&self) -> Option<&Snapshot> {
        self.0.admitted()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("session", &self.session()).finish_non_exhaustive()
    }
}

/// Only the layer makes somebody an identity, so no handler and no other middleware can:
///
/// ```compile_fail,E0423
/// # use portcullis::Identity;
/// fn somebody() -> Identity {
///     Identity(unreachable!())
/// }
/// ```
///
/// ```
/// # use portcullis::Identity;
/// fn somebody(request: &http::Request<()>) -> Option<Identity> {
///     Identity::from_extensions(request.extensions()).ok().flatten()
/// }
/// # assert!(somebody(&http::Request::new(())).is_none());
/// ```
#[cfg(doctest)]
struct NotByHand;
