//! The header fields. Structured fields (RFC 9651) by the specification; Chromium sends some of them raw, so both spellings
//! are read. Everything of ours in them is base64url, which needs no escape in either.

/// The value of `Sec-Secure-Session-Id` or `Secure-Session-Response`: raw, or as a quoted string. `None` if it is empty or
/// holds what neither an identifier nor a compact JWS can.
pub(crate) fn token(field: &[u8]) -> Option<&[u8]> {
    let quoted = field.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
    let token = quoted.unwrap_or(field);
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (!token.is_empty() && token.iter().all(is_token)).then_some(token)
}

/// The value of `Secure-Session-Registration`: make a key, sign `challenge` with it, and send that to `path`.
pub(crate) fn registration_field(path: &str, challenge: &str) -> String {
    format!(r#"(ES256);path="{path}";challenge="{challenge}""#)
}

/// The value of `Secure-Session-Challenge`: what the session `identifier` is to sign the next time.
pub(crate) fn challenge_field(challenge: &str, identifier: &str) -> String {
    format!(r#""{challenge}";id="{identifier}""#)
}

/// Why a browser sent a request without having refreshed its session first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkipReason {
    /// It got no answer.
    Unreachable,
    /// It got an answer of class 5xx.
    ServerError,
    /// It has signed too often in too short a time.
    QuotaExceeded,
}

/// What a `Secure-Session-Skipped` field says: each reason that is known, with the identifier of its session.
pub(crate) fn skipped(field: &[u8]) -> impl Iterator<Item = (SkipReason, &[u8])> {
    field.split(|byte| *byte == b',').filter_map(|item| {
        let mut parts = item.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let reason = match parts.next()? {
            b"unreachable" => SkipReason::Unreachable,
            b"server_error" => SkipReason::ServerError,
            b"quota_exceeded" => SkipReason::QuotaExceeded,
            _ => return None,
        };
        let identifier = parts.find_map(|part| part.strip_prefix(b"session_identifier="))?;
        Some((reason, token(identifier)?))
    })
}

#[cfg(test)]
#[path = "../../tests/unit/dbsc_wire.rs"]
mod tests;
