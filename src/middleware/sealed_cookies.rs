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
    cookie::{Pair, SealedCookie, parts, rewritten},
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

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Opens what the request brought: the handler sees values, or nothing.
    pub(super) fn open(
        &self,
        headers: &mut HeaderMap,
        holder: Holder,
        event: impl Fn(SessionEvent),
    ) -> Vec<Arrived> {
        let mut arrived = Vec::new();
        let fields = || headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes);
        let named = |name: &[u8]| self.0.iter().find(|cookie| cookie.name.as_bytes() == name);
        let mut seen: Vec<&[u8]> = Vec::new();
        let mut twice: Vec<Arc<str>> = Vec::new();
        // A first look, which changes nothing: two cookies of one name are as good as none.
        let _ = rewritten(fields(), |name, _| {
            let cookie = named(name)?;
            let bytes = cookie.name.as_bytes();
            if seen.contains(&bytes) {
                twice.push(Arc::clone(&cookie.name));
            }
            seen.push(bytes);
            None
        });
        if seen.is_empty() {
            return arrived;
        }
        let opened = rewritten(fields(), |name, value| {
            let cookie = named(name)?;
            let refused = |fault| {
                event(SessionEvent::SealedCookieRefused(Arc::clone(&cookie.name), fault));
                Some(Pair::LeaveOut)
            };
            if twice.contains(&cookie.name) {
                return refused(CookieFault::Duplicate);
            }
            match cookie.open(value, holder) {
                Ok(content) => {
                    let value = content.value.to_vec();
                    arrived.push(Arrived { name: Arc::clone(&cookie.name), content });
                    Some(Pair::Value(value))
                }
                Err(fault) => refused(fault),
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
