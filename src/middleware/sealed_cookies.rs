//! Named cookies of the application, sealed on the way out and opened on the way in, without the application knowing.
//!
//! ```text
//! until(8) ‖ session ref(16), zeros for nobody ‖ persistent(1) ‖ len(2) ‖ attributes ‖ value
//! ```
//!
//! Sealed under a purpose of its own with the cookie's name and the origin. One that does not open, that is past its end, or
//! that belongs to another session than the request's is absent. A session that goes on under a new id takes its cookies
//! along: they are sealed anew, with the attributes they had.

use std::{fmt, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderValue, header};
use zeroize::Zeroizing;

use crate::{
    clock::Timestamp,
    cookie::{Pair, SealedCookie, parts, resembles, rewritten},
    crypto::KeyRing,
    events::{CookieFault, SessionEvent},
    id::SessionRef,
};

/// The cookies of a site that are sealed.
#[derive(Debug, Clone, Default)]
pub(super) struct SealedCookies(Vec<AppCookie>);

#[derive(Debug, Clone)]
struct AppCookie {
    name: Arc<str>,
    seal: SealedCookie,
}

/// A cookie as it came, to be sealed anew if its session gets another id.
#[derive(Clone)]
pub(super) struct Arrived {
    name: Arc<str>,
    content: Content,
}

/// Mute: it holds what was sealed.
impl fmt::Debug for Arrived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Arrived({})", self.name)
    }
}

/// Whose cookies a request may bring, and when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Holder {
    /// The session that somebody is signed in to.
    pub(super) session: Option<SessionRef>,
    pub(super) now: Timestamp,
}

/// What a seal holds.
#[derive(Clone)]
struct Content {
    until: Timestamp,
    session: Option<SessionRef>,
    /// Whether the browser keeps the cookie when it is closed.
    persistent: bool,
    attributes: Vec<u8>,
    value: Zeroizing<Vec<u8>>,
}

impl SealedCookies {
    pub(super) fn new(names: &[String], keys: &KeyRing, origin: &str) -> Self {
        let cookie = |name: &String| AppCookie {
            name: name.as_str().into(),
            seal: SealedCookie::application(keys, name, origin),
        };
        Self(names.iter().map(cookie).collect())
    }

    pub(super) fn has(&self, name: &[u8]) -> bool {
        self.0.iter().any(|cookie| cookie.name.as_bytes() == name)
    }

    /// Whether a line sets one of them.
    pub(super) fn sets(&self, line: &[u8], now: Timestamp) -> bool {
        self.0.iter().any(|cookie| parts(line, &cookie.name, now).is_some())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Opens what the request brought: the handler sees values, or nothing.
    pub(super) fn open(
        &self,
        headers: &mut HeaderMap,
        holder: Holder,
        is_here: bool,
        event: impl Fn(SessionEvent),
    ) -> Vec<Arrived> {
        let mut arrived = Vec::new();
        let fields = || headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes);
        // A first look, which changes nothing: two cookies of one name are as good as none.
        let mut counts = vec![0_u8; self.0.len()];
        let _ = rewritten(fields(), |name, _| {
            let at = self.0.iter().position(|cookie| cookie.name.as_bytes() == name)?;
            if let Some(count) = counts.get_mut(at) {
                *count = count.saturating_add(1);
            }
            None
        });
        let mut told = vec![false; self.0.len()];
        let opened = rewritten(fields(), |name, value| {
            let at = self.0.iter().position(|cookie| cookie.takes(name, value))?;
            let cookie = self.0.get(at)?;
            if !is_here {
                return Some(Pair::LeaveOut);
            }
            let outcome = if cookie.name.as_bytes() != name {
                // A jar that decodes names, or trims them, would take it for ours.
                Err(CookieFault::Malformed)
            } else if counts.get(at).is_some_and(|count| *count > 1) {
                Err(CookieFault::Duplicate)
            } else {
                cookie.open(value, holder)
            };
            match outcome {
                Ok(content) => {
                    let value = content.value.to_vec();
                    arrived.push(Arrived { name: Arc::clone(&cookie.name), content });
                    Some(Pair::Value(value))
                }
                Err(fault) => {
                    // Once a request, however many there are.
                    if told.get_mut(at).is_some_and(|told| !std::mem::replace(told, true)) {
                        event(SessionEvent::SealedCookieRefused(Arc::clone(&cookie.name), fault));
                    }
                    Some(Pair::LeaveOut)
                }
            }
        });
        if let Some(opened) = opened {
            headers.remove(header::COOKIE);
            if let Some(mut field) = HeaderValue::from_bytes(&opened).ok().filter(|field| !field.is_empty()) {
                field.set_sensitive(true);
                headers.insert(header::COOKIE, field);
            }
        }
        arrived
    }

    /// The line that sets a sealed cookie in place of `line`; `None` where `line` is left as it is, an error where there is
    /// none that a browser would keep.
    pub(super) fn seal(
        &self,
        line: &[u8],
        holder: Holder,
        longest: Duration,
    ) -> Option<Result<Vec<u8>, Arc<str>>> {
        let (cookie, parts) =
            self.0.iter().find_map(|cookie| Some((cookie, parts(line, &cookie.name, holder.now)?)))?;
        if parts.life.is_some_and(|life| life.is_zero()) {
            return None;
        }
        let content = Content {
            until: holder.now + parts.life.unwrap_or(longest),
            session: holder.session,
            persistent: parts.life.is_some(),
            attributes: parts.attributes,
            value: Zeroizing::new(parts.value.to_vec()),
        };
        Some(cookie.line(&content, holder.now).ok_or_else(|| Arc::clone(&cookie.name)))
    }

    /// The lines that seal anew what arrived, for the same session under a new id.
    pub(super) fn renew(
        &self,
        arrived: &[Arrived],
        holder: Holder,
    ) -> impl Iterator<Item = (Arc<str>, Vec<u8>)> {
        let moved = arrived.iter().filter(move |arrived| arrived.content.session != holder.session);
        moved.filter_map(move |Arrived { name, content }| {
            let cookie = self.0.iter().find(|cookie| cookie.name == *name)?;
            let line = cookie.line(&Content { session: holder.session, ..content.clone() }, holder.now)?;
            Some((Arc::clone(name), line))
        })
    }
}

impl AppCookie {
    /// Whether a pair is this cookie, or would be to a laxer parser: one that decodes or trims names, or drops a `=` in front.
    fn takes(&self, name: &[u8], value: &[u8]) -> bool {
        let own = self.name.as_bytes();
        if name.is_empty() {
            return value.strip_prefix(own).is_some_and(|rest| rest.trim_ascii_start().starts_with(b"="));
        }
        // Decoding and trimming only make a name shorter, and nearly every foreign name is told by its length.
        name == own || (name.len() > own.len() && name.len() <= 16 * own.len() && resembles(name, own))
    }

    fn open(&self, value: &[u8], holder: Holder) -> Result<Content, CookieFault> {
        let unsealed = self.seal.open(value).map_err(CookieFault::from)?;
        let content = Content::parse(&unsealed.into_bytes()).ok_or(CookieFault::Malformed)?;
        if content.until <= holder.now {
            return Err(CookieFault::Expired);
        }
        if content.session == holder.session { Ok(content) } else { Err(CookieFault::NotForHere) }
    }

    fn line(&self, content: &Content, now: Timestamp) -> Option<Vec<u8>> {
        let (value, _) = self.seal.seal(content.encode()?).ok()?;
        let mut line = [self.name.as_bytes(), b"=", value.as_bytes(), &content.attributes].concat();
        if content.persistent {
            let left = content.until.since(now).as_secs();
            line.extend_from_slice(format!("; Max-Age={left}").as_bytes());
        }
        // A longer line is one that some front ends drop, or all cookies with it.
        (line.len() < 4096).then_some(line)
    }
}

impl Content {
    fn encode(&self) -> Option<Zeroizing<Vec<u8>>> {
        let length = u16::try_from(self.attributes.len()).ok()?;
        let session = self.session.map_or([0; 16], |session| session.0);
        let parts: [&[u8]; 6] = [
            &self.until.as_millis().to_be_bytes(),
            &session,
            &[u8::from(self.persistent)],
            &length.to_be_bytes(),
            &self.attributes,
            &self.value,
        ];
        Some(Zeroizing::new(parts.concat()))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (until, rest) = bytes.split_first_chunk()?;
        let (session, rest) = rest.split_first_chunk::<16>()?;
        let ([persistent], rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (attributes, value) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        Some(Self {
            until: Timestamp::from_millis(u64::from_be_bytes(*until)),
            session: (*session != [0; 16]).then_some(SessionRef(*session)),
            persistent: *persistent == 1,
            attributes: attributes.to_vec(),
            value: Zeroizing::new(value.to_vec()),
        })
    }
}
