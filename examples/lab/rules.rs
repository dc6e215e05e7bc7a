//! Routes about cookies, clients and forms.

use std::collections::BTreeMap;

use axum::{
    Json,
    body::Bytes,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{Html, IntoResponse, Response},
};
use portcullis::{ClientContext, FormToken};
use serde_json::{Value, json};

/// Emits each line of the body as a Set-Cookie field of its own.
pub(crate) async fn emit(body: Bytes) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    for line in body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        match HeaderValue::from_bytes(line) {
            Ok(value) => drop(response.headers_mut().append(header::SET_COOKIE, value)),
            Err(_) => return StatusCode::UNPROCESSABLE_ENTITY.into_response(),
        }
    }
    response
}

pub(crate) async fn client(client: ClientContext) -> Json<Value> {
    let address = client.address().map(|address| address.to_string());
    Json(json!({ "address": address, "context": client.change().name() }))
}

/// The Cookie field as handlers see it, but for the session's own cookies.
pub(crate) async fn cookies(headers: HeaderMap) -> String {
    let fields = headers.get_all(header::COOKIE).iter().filter_map(|field| field.to_str().ok());
    let pairs = fields.flat_map(|field| field.split("; ")).filter(|pair| !is_ours(pair));
    pairs.collect::<Vec<_>>().join("; ")
}

fn is_ours(pair: &str) -> bool {
    let name = pair.split('=').next().unwrap_or_default();
    ["__Host-Http-", "__Secure-", ""]
        .iter()
        .any(|prefix| name.strip_prefix(prefix).is_some_and(|base| base == "session" || base == "renewal"))
}

pub(crate) async fn form(token: FormToken) -> Html<String> {
    Html(format!("<form method=\"post\" action=\"/data/colour\">{}</form>", token.field()))
}

/// How often each name stands in the Cookie fields as they arrive.
pub(crate) async fn arrived(headers: HeaderMap) -> Json<BTreeMap<String, usize>> {
    let mut names = BTreeMap::new();
    for field in headers.get_all(header::COOKIE) {
        for pair in field.as_bytes().split(|byte| *byte == b';') {
            let name = pair.trim_ascii().split(|byte| *byte == b'=').next().unwrap_or_default();
            *names.entry(String::from_utf8_lossy(name).into_owned()).or_default() += 1;
        }
    }
    Json(names)
}
