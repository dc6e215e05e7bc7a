//! The application's own cookies on the way out: held against the site's policy, then sealed where the site says so.

use std::borrow::Cow;

use http::{HeaderMap, HeaderValue, header};

use super::{attached::Attached, sealed_cookies::Holder};
use crate::{
    cookie::{CookieAction, CookieFinding, CookieRule, Kept, Sending},
    events::SessionEvent,
    session::{Admitted, Snapshot},
};

/// Rewrites the Set-Cookie fields of a response. Ours are not among them yet.
pub(super) fn police(attached: &Attached, headers: &mut HeaderMap) {
    let (site, asking) = (&attached.site, &attached.data.asking);
    let registry = attached.registry();
    let fields: Vec<HeaderValue> = headers.get_all(header::SET_COOKIE).iter().cloned().collect();
    let lines: Vec<&[u8]> = fields.iter().map(HeaderValue::as_bytes).collect();
    let path = asking.path.as_ref().map_or("/", |path| path.path());
    let sending = Sending { origin: &site.origin, path, cross_site: asking.cross_site_part, now: asking.now };
    let (mut kept, findings) =
        site.policy.apply(&lines, sending, &site.cookies.names(), |name| site.sealed.has(name));
    // A handler that leaves something out does it at every request: once in a while is enough.
    for finding in
        findings.into_iter().filter(|found| site.told.is_new((&found.name, found.rule), asking.now))
    {
        registry.event(SessionEvent::CookiePolicy(finding));
    }
    if !site.sealed.is_empty() {
        seal(attached, &mut kept);
    }
    let same = kept.len() == lines.len() && kept.iter().all(|line| matches!(line, Some(Cow::Borrowed(_))));
    if same {
        return;
    }
    headers.remove(header::SET_COOKIE);
    for line in kept.into_iter().flatten() {
        if let Ok(mut value) = HeaderValue::from_bytes(&line) {
            value.set_sensitive(true);
            headers.append(header::SET_COOKIE, value);
        }
    }
}

/// Seals the named cookies among the lines, and takes along those of a session that has got a new id.
fn seal(attached: &Attached, lines: &mut Vec<Kept<'_>>) {
    let (site, asking, registry) = (&attached.site, &attached.data.asking, attached.registry());
    let signed_in = attached.data.current().filter(|current| current.has_subject());
    let session = signed_in.as_ref().map(|current| registry.session_ref(current.stored_id()));
    let holder = Holder { session, now: asking.now };
    let longest = registry.timeouts.absolute_of(false);
    let set: Vec<Vec<u8>> = lines.iter().flatten().map(|line| line.to_vec()).collect();
    for line in lines.iter_mut() {
        if asking.keeps_cookies && line.as_deref().is_some_and(|line| site.sealed.sets(line, asking.now)) {
            // Its session was refused for now, so it did not see what the browser holds, and must not write over it.
            *line = None;
            continue;
        }
        let Some(sealed) = line.as_deref().and_then(|plain| site.sealed.seal(plain, holder, longest)) else {
            continue;
        };
        *line = match sealed {
            Ok(sealed) => Some(Cow::Owned(sealed)),
            Err(name) => {
                let (rule, action) = (CookieRule::Size, CookieAction::Dropped);
                registry.event(SessionEvent::CookiePolicy(CookieFinding {
                    name: name.to_string(),
                    rule,
                    action,
                }));
                None
            }
        };
    }
    let before = attached.data.initial().map(Admitted::snapshot).and_then(Snapshot::subject);
    let goes_on = before.is_some() && signed_in.as_ref().and_then(|current| current.subject()) == before;
    let Some(arrived) = attached.arrived.as_deref().filter(|_| goes_on) else { return };
    for (name, line) in site.sealed.renew(arrived, holder) {
        let sets_it = |line: &Vec<u8>| {
            line.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.trim_ascii_start().starts_with(b"="))
        };
        if !set.iter().any(sets_it) {
            lines.push(Some(Cow::Owned(line)));
        }
    }
}
