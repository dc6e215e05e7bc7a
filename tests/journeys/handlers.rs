//! What applications do again and again.

use std::{future::Future, pin::Pin};

use axum::Json;
use portcullis::{Auth, AuthError, Identity, RequireRecentAuth, Session};
use serde_json::{Value, json};

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Says who is signed in.
pub(crate) async fn who(identity: Option<Identity>) -> String {
    identity.map_or_else(|| "nobody".into(), |identity| identity.subject().to_owned())
}

/// Says all that is known of who is signed in.
pub(crate) async fn details(identity: Option<Identity>) -> Json<Value> {
    Json(identity.map_or(Value::Null, |identity| {
        json!({
            "subject": identity.subject(),
            "claims": identity.claims(),
            "methods": identity.methods().collect::<Vec<_>>(),
            "authenticated_at": identity.authenticated_at().unix_timestamp(),
            "strength": identity.strength().name(),
            "remembered": identity.is_remembered(),
            "context_changed": identity.context_changed(),
            "recent": identity.is_recent(),
            "session": identity.session().to_string(),
        })
    }))
}

/// Looks at nothing.
pub(crate) async fn page() -> &'static str {
    "a page"
}

/// Asks for a recent authentication.
pub(crate) async fn recent(_: RequireRecentAuth) -> &'static str {
    "recent"
}

/// Signs a user in.
pub(crate) fn login(
    user: &'static str,
) -> impl Fn(Auth) -> Boxed<Result<(), AuthError>> + Clone + Send + Sync + 'static {
    move |auth| Box::pin(async move { auth.login(user).method("pwd").await })
}

/// Signs a user in who asks to be remembered.
pub(crate) fn login_remembered(
    user: &'static str,
) -> impl Fn(Auth) -> Boxed<Result<(), AuthError>> + Clone + Send + Sync + 'static {
    move |auth| Box::pin(async move { auth.login(user).remember(true).await })
}

/// Signs out.
pub(crate) async fn logout(auth: Auth) -> Result<(), AuthError> {
    auth.logout().await
}

/// Signs out everywhere.
pub(crate) async fn logout_everywhere(auth: Auth) -> Result<(), AuthError> {
    auth.logout_everywhere().await
}

/// Notes a new proof of who the user is.
pub(crate) async fn reauthenticate(auth: Auth) -> Result<(), AuthError> {
    auth.reauthenticated().await
}

/// Writes session data.
pub(crate) fn write(
    key: &'static str,
    value: &'static str,
) -> impl Fn(Session) -> Boxed<&'static str> + Clone + Send + Sync + 'static {
    move |session| {
        Box::pin(async move {
            session.insert(key, value).await.unwrap();
            "written"
        })
    }
}

/// Reads session data.
pub(crate) fn read(key: &'static str) -> impl Fn(Session) -> Boxed<String> + Clone + Send + Sync + 'static {
    move |session| {
        Box::pin(async move {
            let value: Option<String> = session.get(key).await.unwrap();
            value.unwrap_or_else(|| "nothing".into())
        })
    }
}
