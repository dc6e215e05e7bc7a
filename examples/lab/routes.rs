//! The routes: one for each thing a session can do.

use std::{sync::Arc, time::Duration};

use axum::{
    Form, Json, Router,
    body::Bytes,
    extract::{
        DefaultBodyLimit, Path, Query, State, WebSocketUpgrade,
        ws::{CloseFrame, Message, WebSocket, close_code},
    },
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::{any, delete, get, post},
};
use portcullis::{
    Auth, AuthError, Identity, RequireDevice, RequireRecentAuth, RequireRecentProof, Session, SessionInfo,
    SessionLayer, SessionRef, clock::ManualClock, extract::RequireFormToken,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{counted::Counters, rules};

/// All routes behind the layer; beside it the test clock, the counters, which cookies arrived, and what waits until the
/// revocation feed is read.
pub(crate) fn router(
    sessions: &SessionLayer,
    clock: Option<Arc<ManualClock>>,
    counters: Arc<Counters>,
    form_tokens: bool,
) -> Router {
    let mut behind = Router::new()
        .route("/", get(home))
        .route("/emit", post(rules::emit).layer(DefaultBodyLimit::max(65_536)))
        .route("/client", get(rules::client))
        .route("/cookies", get(rules::cookies))
        .route("/form", get(rules::form))
        .route("/login", post(login))
        .route("/reauthenticate", post(reauthenticate))
        .route("/claims", post(claims))
        .route("/logout", post(logout))
        .route("/logout-everywhere", post(logout_everywhere))
        .route("/data/{key}", get(read).post(write))
        .route("/slow/{key}", post(slow))
        .route("/recent", get(recent))
        .route("/device", get(device))
        .route("/prove", any(prove))
        .route("/sessions", get(list))
        .route("/sessions/{handle}", delete(revoke))
        .route("/status/{code}", get(status))
        .route("/ws", get(socket))
        .layer(DefaultBodyLimit::max(4096));
    if form_tokens {
        behind = behind.layer(RequireFormToken::new());
    }
    let behind = behind.layer(sessions.clone());
    Router::new()
        .route_service("/lab/diagnosis", sessions.diagnosis_page())
        .route("/lab/clock", post(move_clock).with_state(clock))
        .route("/lab/counters", get(count).with_state(counters))
        .route("/lab/arrived", any(rules::arrived))
        .route("/lab/logout-before-now", post(logout_before_now).with_state(sessions.clone()))
        .route("/lab/settle", post(settle).with_state(sessions.clone()))
        .route_service("/.well-known/jwks.json", sessions.jwks())
        .nest_service("/portcullis", sessions.device_endpoints())
        .merge(behind)
}

async fn count(State(counters): State<Arc<Counters>>) -> Json<Value> {
    Json(counters.to_json())
}

/// The operator signs out everybody who is there.
async fn logout_before_now(State(sessions): State<SessionLayer>) -> StatusCode {
    let now = sessions.now();
    sessions.logout_before(now).await.map_or(StatusCode::SERVICE_UNAVAILABLE, |()| StatusCode::NO_CONTENT)
}

/// Answers once everything that was revoked so far is known here.
async fn settle(State(sessions): State<SessionLayer>) -> StatusCode {
    sessions.ready().await.map_or(StatusCode::SERVICE_UNAVAILABLE, |()| StatusCode::NO_CONTENT)
}

/// Why a route failed: the store did not answer, or what `Auth` says.
struct Failure(AuthError);

impl<E: Into<AuthError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        match self.0 {
            AuthError::Subject | AuthError::Claims => StatusCode::UNPROCESSABLE_ENTITY.into_response(),
            other => other.into_response(),
        }
    }
}

type Answer<T = StatusCode> = Result<T, Failure>;

async fn home(identity: Option<Identity>) -> Json<Value> {
    Json(match identity {
        Some(identity) => json!({
            "user": identity.subject(),
            "claims": identity.claims(),
            "strength": identity.strength().name(),
            "session": identity.session().to_string(),
        }),
        None => json!({ "user": null, "claims": null, "strength": null, "session": null }),
    })
}

#[derive(Deserialize)]
struct LoginForm {
    #[serde(default)]
    user: String,
    role: Option<String>,
    remember: Option<String>,
}

async fn login(auth: Auth, Form(form): Form<LoginForm>) -> Answer {
    let mut login =
        auth.login(form.user).method("pwd").remember(form.remember.is_some_and(|word| !word.is_empty()));
    if let Some(role) = form.role {
        login = login.claim("role", role)?;
    }
    login.await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn reauthenticate(_: Identity, auth: Auth) -> Answer {
    auth.reauthenticated().await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
struct ClaimsForm {
    role: String,
}

async fn claims(_: Identity, auth: Auth, Form(form): Form<ClaimsForm>) -> Answer {
    auth.set_claims(json!({ "role": form.role })).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn logout(auth: Auth) -> Answer {
    auth.logout().await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn logout_everywhere(identity: Option<Identity>, auth: Auth) -> Answer {
    match identity {
        Some(_) => auth.logout_everywhere().await?,
        None => auth.logout().await?,
    }
    Ok(StatusCode::NO_CONTENT)
}

async fn read(Path(key): Path<String>, session: Session) -> Answer<Response> {
    let value: Option<String> = session.get(&key).await?;
    Ok(match value {
        Some(value) => ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], value).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    })
}

async fn write(Path(key): Path<String>, session: Session, body: String) -> Answer {
    session.insert(&key, body).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
struct Wait {
    #[serde(default)]
    ms: u64,
}

async fn slow(Path(key): Path<String>, Query(wait): Query<Wait>, session: Session, body: String) -> Answer {
    session.get_value(&key).await?;
    tokio::time::sleep(Duration::from_millis(wait.ms.min(60_000))).await;
    session.insert(&key, body).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn recent(_: RequireRecentAuth) -> StatusCode {
    StatusCode::OK
}

async fn prove(_: RequireRecentProof, body: String) -> String {
    body
}

async fn device(_: RequireDevice) -> StatusCode {
    StatusCode::OK
}

async fn list(_: Identity, auth: Auth) -> Answer<Json<Value>> {
    let entry = |info: SessionInfo| {
        json!({
            "handle": info.handle.to_string(),
            "current": info.current,
            "created": info.created.unix_timestamp(),
            "renewed": info.renewed.unix_timestamp(),
            "client": info.client,
            "strength": info.strength.name(),
            "confirmed": info.device.map(|device| device.confirmed),
        })
    };
    Ok(Json(auth.sessions().await?.into_iter().map(entry).collect()))
}

async fn revoke(_: Identity, auth: Auth, Path(handle): Path<String>) -> Answer {
    let handle = SessionRef::parse(&handle).ok_or(AuthError::NoSuchSession)?;
    auth.revoke(handle).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn status(Path(code): Path<u16>, session: Session) -> Answer {
    session.get_value("status").await?;
    Ok(StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_REQUEST))
}

async fn socket(identity: Identity, upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(move |socket| echo(socket, identity))
}

async fn echo(mut socket: WebSocket, identity: Identity) {
    let ended = identity.ended();
    tokio::pin!(ended);
    loop {
        tokio::select! {
            () = &mut ended => {
                let frame = CloseFrame { code: close_code::POLICY, reason: "the session ended".into() };
                let _ = socket.send(Message::Close(Some(frame))).await;
                return;
            }
            message = socket.recv() => match message {
                Some(Ok(Message::Text(text))) => {
                    if socket.send(Message::Text(text)).await.is_err() {
                        return;
                    }
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => {}
            },
        }
    }
}

async fn move_clock(State(clock): State<Option<Arc<ManualClock>>>, body: Bytes) -> StatusCode {
    let seconds = std::str::from_utf8(&body).ok().and_then(|text| text.trim().parse().ok());
    match (clock, seconds) {
        (Some(clock), Some(seconds)) => {
            clock.advance(Duration::from_secs(seconds));
            StatusCode::NO_CONTENT
        }
        (None, _) => StatusCode::NOT_FOUND,
        (_, None) => StatusCode::BAD_REQUEST,
    }
}
