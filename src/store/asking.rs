//! What a request shows of its client.

use std::{net::IpAddr, sync::Arc};

use http::{HeaderMap, HeaderValue, header, uri::PathAndQuery};

use crate::{
    clock::Timestamp,
    events::Misplaced,
    session::{ClientContext, ContextRelation, NetworkOf, Seen},
};

/// What a request shows of its client, kept until a session is created for it or ended. Copies no bytes.
#[derive(Clone, Default)]
pub(crate) struct Asking {
    pub(crate) now: Timestamp,
    pub(crate) address: Seen<IpAddr>,
    /// How the client relates to the one that its session is bound to.
    pub(crate) relation: ContextRelation,
    /// Its credentials were refused for now, and may be good in the next request: they must not be written over.
    pub(crate) keeps_cookies: bool,
    /// It is no request to this site: no cookie of ours answers it.
    pub(crate) misplaced: Option<Misplaced>,
    /// Another site's page asks for it as a part of itself: browsers drop the cookies of the answer.
    pub(crate) cross_site_part: bool,
    /// The site itself or the user asks, by the browser's word: not another site.
    pub(crate) is_own: bool,
    pub(crate) path: Option<PathAndQuery>,
    /// Its cookies must not count: it is no request to this site, or the browser should have withheld them.
    pub(crate) out_of_place: bool,
    /// The browser asks on its own account, and nobody may ever look at the answer.
    pub(crate) speculative: bool,
    user_agent: Option<HeaderValue>,
    extras: Option<Box<Extras>>,
    cookie: Option<HeaderValue>,
    more_cookies: Vec<HeaderValue>,
}

/// What only some sites look at.
#[derive(Clone, Default)]
pub(crate) struct Extras {
    pub(crate) network_of: Option<Arc<NetworkOf>>,
    pub(crate) hints: Seen<String>,
    pub(crate) header: Seen<Vec<u8>>,
}

/// The fields of a request that somebody asks for, found in one pass: a look-up of each would cost more.
#[derive(Debug, Default)]
pub(crate) struct Fields<'a> {
    pub(crate) host: Option<&'a HeaderValue>,
    pub(crate) has_upgrade: bool,
    pub(crate) has_forwarded_proto: bool,
    pub(crate) has_sec_purpose: bool,
    pub(crate) has_sec_fetch_site: bool,
    user_agent: Option<&'a HeaderValue>,
    has_two_user_agents: bool,
    cookie: Option<&'a HeaderValue>,
    more_cookies: Vec<HeaderValue>,
}

impl<'a> Fields<'a> {
    pub(crate) fn of(headers: &'a HeaderMap) -> Self {
        let mut fields = Self::default();
        for (name, value) in headers {
            if *name == header::COOKIE {
                match fields.cookie {
                    None => fields.cookie = Some(value),
                    Some(_) => fields.more_cookies.push(value.clone()),
                }
            } else if *name == header::USER_AGENT {
                fields.has_two_user_agents = fields.user_agent.replace(value).is_some();
            } else if *name == header::HOST {
                fields.host.get_or_insert(value);
            } else if *name == header::UPGRADE {
                fields.has_upgrade = true;
            } else {
                match name.as_str() {
                    "x-forwarded-proto" => fields.has_forwarded_proto = true,
                    "sec-purpose" => fields.has_sec_purpose = true,
                    "sec-fetch-site" => fields.has_sec_fetch_site = true,
                    _ => {}
                }
            }
        }
        fields
    }
}

impl Asking {
    pub(crate) fn new(
        fields: Fields<'_>,
        address: Seen<IpAddr>,
        extras: Option<Box<Extras>>,
        now: Timestamp,
    ) -> Self {
        // Two User-Agent fields are as good as none.
        let user_agent = fields.user_agent.filter(|_| !fields.has_two_user_agents).cloned();
        let (cookie, more_cookies) = (fields.cookie.cloned(), fields.more_cookies);
        Self { now, address, extras, user_agent, cookie, more_cookies, ..Self::default() }
    }

    /// The same where the browser asks by itself: it sends no hints then.
    pub(crate) fn without_hints(mut self) -> Self {
        if let Some(extras) = &mut self.extras {
            extras.hints = Seen::NotLooked;
        }
        self
    }

    /// The Cookie fields.
    pub(crate) fn cookies(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.cookie.iter().chain(&self.more_cookies).map(HeaderValue::as_bytes)
    }

    pub(crate) fn context(&self) -> ClientContext<'_> {
        let extras = self.extras.as_deref();
        ClientContext {
            user_agent: self.user_agent.as_ref().map(HeaderValue::as_bytes),
            address: self.address,
            network_of: extras.and_then(|extras| extras.network_of.as_deref()),
            hints: extras.map_or(Seen::NotLooked, |extras| extras.hints.as_ref().map(String::as_str)),
            header: extras.map_or(Seen::NotLooked, |extras| extras.header.as_ref().map(Vec::as_slice)),
        }
    }
}
