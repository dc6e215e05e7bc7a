//! The renewal token: a JWS that buys a new pair of cookies, once.
//!
//! ```text
//! {"alg":"ES256","kid":"5f3a9c01","typ":"renewal+jwt"}
//! {"iss":origin,"aud":origin,"sid":…,"ses":…,"gen":n,"iat":s,"exp":s,"ctx":{…},"cnf":{"jkt":…},"jti":22 characters}
//! ```
//!
//! `cnf` is there where the session is bound to a key (RFC 7800, RFC 7638 thumbprint): such a token alone renews nothing.
//!
//! `jti` is a MAC over header and payload up to itself. It is checked before anything is parsed, so a forged token costs
//! a microsecond and not a signature check (400 µs). `exp` is for other readers and never decides here: an owner who
//! comes back with an old token to a session that somebody else kept alive must trip the alarm (attack A75). A token
//! says nothing about the user; replay is judged by `gen`, never by signature bytes, which have a valid twin (A45).

use std::{fmt, fmt::Write as _, sync::Arc};

use serde::Deserialize;
use subtle::ConstantTimeEq as _;

use super::context_digest::ContextDigest;
use crate::{
    base64url,
    clock::Timestamp,
    crypto::{
        digest, jws,
        jws::Compact,
        key_ring::KeyRing,
        random::RandomError,
        root_keys::{Purpose, RootKeys},
        seal::Seal,
    },
    id::{SessionDigest, SessionId},
};

/// Makes and reads the renewal tokens of one origin.
#[derive(Clone)]
pub(crate) struct RenewalTokens {
    origin: String,
    ring: KeyRing,
    seal: Seal,
    headers: Vec<(String, Arc<RootKeys>)>,
}

/// What a new token says.
#[derive(Debug)]
pub(crate) struct TokenParts<'a> {
    pub(crate) id: &'a SessionId,
    pub(crate) generation: u64,
    pub(crate) issued_at: Timestamp,
    pub(crate) expires_at: Timestamp,
    pub(crate) context: &'a ContextDigest,
    /// The thumbprint of the key that the session is bound to.
    pub(crate) bound_to: Option<&'a str>,
}

/// A token whose MAC holds and whose claims are read; its signature is not checked yet.
#[derive(Debug)]
pub(crate) struct AuthenticToken<'a> {
    compact: Compact<'a>,
    keys: Arc<RootKeys>,
    claims: ReadClaims,
}

/// A renewal token that holds: MAC, signature and claims. What it buys is the store's to say.
///
/// Only a verification gives it:
///
/// ```compile_fail,E0451
/// # use portcullis::session::VerifiedRenewal;
/// fn verified() -> VerifiedRenewal {
///     VerifiedRenewal { id: unreachable!(), generation: 1, context: unreachable!() }
/// }
/// ```
///
/// ```
/// # use portcullis::session::VerifiedRenewal;
/// fn verified(from_the_library: VerifiedRenewal) -> VerifiedRenewal {
///     from_the_library
/// }
/// ```
#[derive(Debug)]
pub struct VerifiedRenewal {
    id: SessionId,
    generation: u64,
    context: ContextDigest,
}

/// Why a token does not count. All look alike outside; the difference is for events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenError {
    /// Not a token of ours: size, header, MAC or signature.
    Forged,
    /// Authentic, but not for here and now: another origin, or issued in the future.
    NotForHere,
}

#[derive(Debug)]
struct ReadClaims {
    digest: SessionDigest,
    sealed_id: Vec<u8>,
    generation: u64,
    context: ContextDigest,
    bound_to: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims<'a> {
    iss: &'a str,
    aud: &'a str,
    sid: &'a str,
    ses: &'a str,
    r#gen: u64,
    iat: u64,
    #[serde(rename = "exp")]
    _exp: u64,
    #[serde(borrow)]
    ctx: ContextClaims<'a>,
    #[serde(borrow)]
    cnf: Option<Confirmation<'a>>,
    #[serde(rename = "jti")]
    _jti: &'a str,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Confirmation<'a> {
    jkt: &'a str,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ContextClaims<'a> {
    ua: Option<&'a str>,
    br: Option<&'a str>,
    pl: Option<&'a str>,
    n4: Option<&'a str>,
    n6: Option<&'a str>,
    nw: Option<&'a str>,
    ch: Option<&'a str>,
    px: Option<&'a str>,
}

impl RenewalTokens {
    /// For the tokens of `origin` under the keys of `ring`.
    pub(crate) fn new(ring: &KeyRing, origin: &str) -> Self {
        let header = |keys: &Arc<RootKeys>| {
            let json = format!(r#"{{"alg":"ES256","kid":"{}","typ":"renewal+jwt"}}"#, keys.id);
            (base64url::encode(json.as_bytes()), Arc::clone(keys))
        };
        Self {
            origin: origin.into(),
            ring: ring.clone(),
            seal: Seal::new(ring, Purpose::TokenSecret, "", origin),
            headers: ring.all_opening().iter().map(header).collect(),
        }
    }

    /// A new token, signed by the active key. About 120 µs.
    pub(crate) fn mint(&self, parts: &TokenParts<'_>) -> Result<String, RandomError> {
        let keys = self.ring.active();
        let Some((header, _)) = self.headers.iter().find(|(_, candidate)| candidate.id == keys.id) else {
            return Err(RandomError);
        };
        let sid = base64url::encode(&digest::session_digest(parts.id).0);
        let ses = base64url::encode(&self.seal.seal(&parts.id.0, b"")?);
        let mut payload = String::with_capacity(640);
        let origin = &self.origin;
        // Everything written here is base64url, a number, or an origin, none of which JSON escapes.
        let written = write!(
            payload,
            r#"{{"iss":"{origin}","aud":"{origin}","sid":"{sid}","ses":"{ses}","gen":{},"iat":{},"exp":{},"ctx":{{"#,
            parts.generation,
            parts.issued_at.as_seconds(),
            parts.expires_at.as_seconds(),
        );
        debug_assert!(written.is_ok(), "a String takes what is written");
        write_context(&mut payload, parts.context);
        payload.push('}');
        if let Some(thumbprint) = parts.bound_to {
            payload.push_str(r#","cnf":{"jkt":""#);
            payload.push_str(thumbprint);
            payload.push_str(r#""}"#);
        }
        payload.push_str(r#","jti":""#);
        let jti = keys.token_mac.tag(&[header.as_bytes(), b".", payload.as_bytes()]);
        base64url::encode_onto(&jti, &mut payload);
        payload.push_str(TAIL);
        Ok(jws::sign(header, payload.as_bytes(), &keys.token_signature))
    }

    /// Size, header, MAC, and only then the claims. About a microsecond for a forgery.
    pub(crate) fn authenticate<'a>(
        &self,
        token: &'a [u8],
        now: Timestamp,
    ) -> Result<AuthenticToken<'a>, TokenError> {
        if token.len() > MAX_TOKEN {
            return Err(TokenError::Forged);
        }
        let compact = Compact::split(token).ok_or(TokenError::Forged)?;
        let (_, keys) = self
            .headers
            .iter()
            .find(|(header, _)| header.as_bytes() == compact.header)
            .ok_or(TokenError::Forged)?;
        let payload = compact.payload_bytes().ok_or(TokenError::Forged)?;
        let unclosed = payload.strip_suffix(TAIL.as_bytes()).ok_or(TokenError::Forged)?;
        let (before, jti) = unclosed.split_last_chunk::<JTI>().ok_or(TokenError::Forged)?;
        let jti: [u8; 16] = base64url::decode_array(jti).ok_or(TokenError::Forged)?;
        if !keys.token_mac.verify(&[compact.header, b".", before], &jti) {
            return Err(TokenError::Forged);
        }
        let claims = self.read_claims(&payload, now)?;
        Ok(AuthenticToken { compact, keys: Arc::clone(keys), claims })
    }

    /// The signature, and the session id that only a whole token gives. About 400 µs.
    pub(crate) fn verify(&self, token: &AuthenticToken<'_>) -> Result<VerifiedRenewal, TokenError> {
        if !token.compact.verify(&token.keys.token_signature.verifying_key()) {
            return Err(TokenError::Forged);
        }
        let mut bytes = zeroize::Zeroizing::new(token.claims.sealed_id.clone());
        self.seal.open(&mut bytes, b"").map_err(|_| TokenError::Forged)?;
        let id = SessionId(bytes.as_slice().try_into().map_err(|_| TokenError::Forged)?);
        if !bool::from(digest::session_digest(&id).0.ct_eq(&token.claims.digest.0)) {
            return Err(TokenError::Forged);
        }
        Ok(VerifiedRenewal { id, generation: token.claims.generation, context: token.claims.context })
    }

    fn read_claims(&self, payload: &[u8], now: Timestamp) -> Result<ReadClaims, TokenError> {
        let claims: Claims<'_> = serde_json::from_slice(payload).map_err(|_| TokenError::Forged)?;
        let in_future = Timestamp::from_seconds(claims.iat) > now + LEEWAY;
        if claims.iss != self.origin || claims.aud != self.origin || in_future {
            return Err(TokenError::NotForHere);
        }
        let sid = base64url::decode_array(claims.sid.as_bytes()).ok_or(TokenError::Forged)?;
        Ok(ReadClaims {
            digest: SessionDigest(sid),
            sealed_id: base64url::decode(claims.ses.as_bytes()).ok_or(TokenError::Forged)?,
            generation: claims.r#gen,
            context: read_context(&claims.ctx).ok_or(TokenError::Forged)?,
            bound_to: claims.cnf.map(|cnf| cnf.jkt.to_owned()),
        })
    }
}

impl AuthenticToken<'_> {
    /// The session the token names.
    pub(crate) const fn digest(&self) -> &SessionDigest {
        &self.claims.digest
    }

    /// The client the session was bound to when the token was issued.
    pub(crate) const fn context(&self) -> &ContextDigest {
        &self.claims.context
    }

    /// The thumbprint of the key that it says the session is bound to.
    pub(crate) fn bound_to(&self) -> Option<&str> {
        self.claims.bound_to.as_deref()
    }
}

impl VerifiedRenewal {
    pub(crate) const fn id(&self) -> &SessionId {
        &self.id
    }

    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// The client the session was bound to when the token was issued.
    pub(crate) const fn context(&self) -> &ContextDigest {
        &self.context
    }
}

impl fmt::Debug for RenewalTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RenewalTokens").field("origin", &self.origin).finish_non_exhaustive()
    }
}

fn write_context(out: &mut String, context: &ContextDigest) {
    let signals = [
        ("ua", context.user_agent),
        ("br", context.family),
        ("pl", context.platform),
        ("n4", context.prefix_v4),
        ("n6", context.prefix_v6),
        ("nw", context.network),
        ("ch", context.hints),
        ("px", context.header),
    ];
    let present = signals.into_iter().filter_map(|(name, signal)| Some((name, signal?)));
    for (i, (name, signal)) in present.enumerate() {
        out.push_str(if i == 0 { "\"" } else { ",\"" });
        out.push_str(name);
        out.push_str("\":\"");
        base64url::encode_onto(&signal.to_be_bytes(), out);
        out.push('"');
    }
}

fn read_context(claims: &ContextClaims<'_>) -> Option<ContextDigest> {
    let signal = |text: Option<&str>| match text {
        Some(text) => base64url::decode_array(text.as_bytes()).map(|bytes| Some(u64::from_be_bytes(bytes))),
        None => Some(None),
    };
    Some(ContextDigest {
        user_agent: signal(claims.ua)?,
        family: signal(claims.br)?,
        platform: signal(claims.pl)?,
        prefix_v4: signal(claims.n4)?,
        prefix_v6: signal(claims.n6)?,
        network: signal(claims.nw)?,
        hints: signal(claims.ch)?,
        header: signal(claims.px)?,
    })
}

/// What follows the `jti` value.
const TAIL: &str = r#""}"#;

/// Characters of a `jti`: 16 bytes.
const JTI: usize = 22;

/// A token is about 900 bytes; a browser keeps no cookie above 4096.
const MAX_TOKEN: usize = 4096;

/// How far an instance's clock may lag behind the one that issued a token.
const LEEWAY: std::time::Duration = std::time::Duration::from_secs(5);

#[cfg(test)]
#[path = "../../tests/unit/renewal_token.rs"]
mod tests;
