//! Who is asking. The cheap questions come first: an anonymous request costs the search of a header, a forged cookie one
//! decryption, a forged token one MAC; only what is authentic costs a signature or a store call.

use std::time::Duration;

use http::uri::PathAndQuery;

use super::{
    attached::Attached,
    cross_site::{SEC_FETCH_DEST, SEC_FETCH_SITE},
    fields,
    incoming::Incoming,
    question::Question,
};
use crate::{
    clock::Timestamp,
    cookie::{Found, find, near_miss},
    dbsc::KeyKind,
    events::{CookieFault, SessionEvent},
    id::StoredId,
    session::{
        Admission, Admitted, AuthenticToken, Challenged, ContextRelation, Opened, Reason, Snapshot, Standing,
        Strength, TokenError, Verdict,
    },
    store::{Asking, CookieChange, Registry, RenewalKind},
};

/// The first judgement, without waiting for anything.
pub(super) enum Judged {
    /// All is known: attach this.
    Attach(Attached),
    /// The verdict needs the store.
    Ask(Box<(Asking, Question)>),
    /// Answered without asking the application: come again when you mean it.
    ComeAgain,
    /// Answered without asking the application: load this again, so that your device proves itself. Whether the session cookie
    /// is to be lost first.
    Again(bool),
    /// Answered without asking the application: the page that renews by the script's key is to come between. The address that
    /// was asked for.
    ByPage(String),
    /// Answered without asking the application: renew by the script's key, then ask again.
    Unsigned,
    /// Answered without asking the application: another site made the browser send it.
    Refused,
}

impl Incoming<'_> {
    /// Judges the request as far as that goes without waiting.
    pub(super) fn judge(self) -> Judged {
        let registry = &self.site.registry;
        if let Err(reason) = self.cross_site() {
            registry.event(SessionEvent::CrossSite(reason));
            if !self.site.cross_site.reports() {
                return Judged::Refused;
            }
        }
        match self.verdict() {
            Verdict::Admit(admitted) if registry.covers(&admitted) => self.attach(Some(admitted)),
            Verdict::Admit(admitted) | Verdict::Confirm(admitted) => self.ask(Question::Confirm(admitted)),
            Verdict::Renew(token) => {
                let relation = self.relation_to(token.context());
                let client = self.asking.context();
                let moved_to = relation.moves().then(|| client.digest(registry.vault.context_key()));
                let kind = if self.is_upgrade {
                    RenewalKind::Upgrade
                } else if self.is_polling() {
                    RenewalKind::Polling
                } else {
                    RenewalKind::Activity
                };
                let stale = self.stale.take();
                let may_load_again = stale.is_some() && self.site.devices.is_some() && self.is_navigation();
                let stale = stale.filter(|stale| {
                    kind != RenewalKind::Upgrade && self.may_go_without_store(stale, relation)
                });
                let owed = self.owed.take();
                self.ask(Question::Renew { token, relation, moved_to, kind, stale, owed, may_load_again })
            }
            Verdict::Unavailable => Judged::ComeAgain,
            Verdict::Reject(session, reason) => {
                registry.event(SessionEvent::Refused(registry.session_ref(&session), reason));
                self.attach(None)
            }
            Verdict::Challenge(challenged) => self.challenged(challenged),
            Verdict::Anonymous if self.may_be_strict_link() => Judged::Again(false),
            Verdict::Anonymous => self.attach(None),
        }
    }

    fn attach(self, admitted: Option<Admitted>) -> Judged {
        let (site, asking) = self.noted();
        Judged::Attach(Attached::new(site, asking, admitted, CookieChange::None))
    }

    fn ask(self, question: Question) -> Judged {
        Judged::Ask(Box::new((self.noted().1, question)))
    }

    /// Only its key renews this session. A browser that could not ask the device is to come again; one that has not tried,
    /// because a page of another site sent it here, is made to try; what is left is nobody, and its cookies stay.
    #[cold]
    fn challenged(self, challenged: Challenged) -> Judged {
        let registry = &self.site.registry;
        let session = registry.session_ref(&challenged.session);
        if let Some(reason) = self.skipped(&challenged.session) {
            registry.event(SessionEvent::DeviceRefreshSkipped(session, reason));
            return Judged::ComeAgain;
        }
        if self.asking.speculative {
            return Judged::ComeAgain;
        }
        let (is_foreign, holds_cookie) = (!self.asking.is_own, challenged.cookie.is_some());
        let devices = self.site.devices.as_ref();
        let goes_on = match challenged.cookie {
            Some(KeyKind::Software) => devices.is_some_and(|devices| devices.software_keys),
            Some(KeyKind::Device) => devices.is_some(),
            None => devices.is_some() && is_foreign,
        };
        match challenged.cookie {
            Some(KeyKind::Software) if goes_on && self.is_navigation() => {
                let address = self.asking.path.as_ref().map_or("/", PathAndQuery::as_str);
                return Judged::ByPage(address.to_owned());
            }
            _ if goes_on && self.is_navigation() => return Judged::Again(holds_cookie),
            Some(KeyKind::Software) if goes_on && self.is_script_s() => {
                if self.site.told.is_new((challenged.session, "unproven"), self.asking.now) {
                    registry.event(SessionEvent::Refused(session, Reason::Unproven));
                }
                return Judged::Unsigned;
            }
            _ => {}
        }
        registry.event(SessionEvent::Refused(session, Reason::Unproven));
        // A request of the site's own that came without the cookie is of a browser that does not know the session any more.
        self.keeps_cookies.set(goes_on);
        self.attach(None)
    }

    /// Whether our cookies may have been withheld only because the link stands on another site, and the site wants such a page
    /// to load again.
    #[cold]
    fn may_be_strict_link(&self) -> bool {
        let found = || find(self.asking.cookies(), self.site.cookies.names());
        self.site.first_party_links
            && self.is_navigation()
            && fields::has_one(self.headers, &SEC_FETCH_SITE, b"cross-site")
            && fields::has_one(self.headers, &SEC_FETCH_DEST, b"document")
            && !self.asking.speculative
            && found() == [Found::Nothing, Found::Nothing]
    }

    /// Whether the operator allows this request in on a stale cookie while the store is silent.
    fn may_go_without_store(&self, stale: &Opened, relation: ContextRelation) -> bool {
        let registry = &self.site.registry;
        !registry.outage.grace.is_zero()
            && (self.method.is_safe() || registry.outage.unsafe_methods)
            && relation.is_tolerated()
            && stale.snapshot().fixed().bound_to().is_none()
            && registry.standing(stale.snapshot()) == Standing::Clear
    }

    /// Lets in. A cookie that was issued to a page that asks by itself renews first, so that the idle timeout hears of the
    /// user; where that cannot be, it is as fresh as any.
    fn admitted(&self, admitted: Admitted, token: Found<'_>) -> Verdict {
        let registry = &self.site.registry;
        let owes = admitted.snapshot().fixed().polled
            && !self.is_upgrade
            && !self.is_polling()
            && !self.asking.speculative
            && !self.asking.cross_site_part;
        // What the revocation feed cannot tell, the store is asked for a fresh cookie as well; that comes first.
        if owes
            && registry.covers(&admitted)
            && let Found::One(token) = token
        {
            let authentic = registry.tokens.authenticate(token, self.asking.now).ok();
            let own = |authentic: &AuthenticToken<'_>| {
                registry.vault.stored_id(authentic.digest()) == *admitted.snapshot().stored_id()
                    && !matches!(self.relation_to(authentic.context()), ContextRelation::Rejected(_))
            };
            if let Some(verified) =
                authentic.filter(own).and_then(|token| registry.tokens.verify(&token).ok())
            {
                self.owed.set(Some(admitted));
                return Verdict::Renew(verified);
            }
        }
        Verdict::Admit(admitted)
    }

    /// The table of verdicts, row by row.
    fn verdict(&self) -> Verdict {
        let registry = &self.site.registry;
        let names @ [session_name, _] = self.site.cookies.names();
        let [session, token] = find(self.asking.cookies(), names);
        if (session != Found::Nothing || token != Found::Nothing) && self.is_out_of_place() {
            return Verdict::Anonymous;
        }
        if session == Found::Several || token == Found::Several {
            registry.event(if session == Found::Several {
                SessionEvent::SessionCookieRefused(CookieFault::Duplicate)
            } else {
                SessionEvent::RenewalTokenRefused(CookieFault::Duplicate)
            });
            self.keeps_cookies.set(true);
            return Verdict::Anonymous;
        }
        let opened = match session {
            Found::One(value) => self.open(value),
            Found::Nothing | Found::Several => None,
        };
        // Of a session that its browser refreshes: when its device has proven itself.
        let proven_at = opened.as_ref().and_then(|opened| {
            let fixed = opened.snapshot().fixed();
            (fixed.strength == Strength::Device).then_some(fixed.minted_at)
        });
        let stale = match opened {
            Some(opened) => match self.judge_opened(opened) {
                Admission::Admitted(admitted) => return self.admitted(admitted, token),
                Admission::Outdated(admitted) => return Verdict::Confirm(admitted),
                Admission::Rejected(session, reason) => return self.rejected(session, reason, proven_at),
                Admission::Stale(opened) => Some(opened),
            },
            None => None,
        };
        if let Found::One(token) = token {
            let verdict = self.judge_token(token, stale.as_ref());
            self.stale.set(stale);
            return verdict;
        }
        if let Some(stale) = stale {
            let session = *stale.snapshot().stored_id();
            return match stale.snapshot().fixed().bound_to() {
                cookie @ Some(KeyKind::Device) => Verdict::Challenge(Challenged { session, cookie }),
                // A script's key renews together with a token alone.
                Some(KeyKind::Software) | None => Verdict::Reject(session, Reason::Expired),
            };
        }
        // Looked for only where nothing of ours came: the hot path never pays for it, nor does a refused cookie twice.
        if session == Found::Nothing
            && let Some(kind) = near_miss(self.asking.cookies(), session_name)
        {
            registry.event(SessionEvent::CookieNearMiss(kind));
        }
        Verdict::Anonymous
    }

    /// What comes of an authentic cookie that does not count. A browser that refreshes its session may prove that it is still the
    /// same one.
    #[cold]
    fn rejected(&self, session: StoredId, reason: Reason, proven_at: Option<Timestamp>) -> Verdict {
        let registry = &self.site.registry;
        // Where page and refresh come by two ways, one just proven would be challenged again and again.
        let may_prove_it = proven_at.is_some_and(|at| self.asking.now >= at + JUST_PROVEN);
        if may_prove_it && matches!(reason, Reason::Context(_)) {
            registry.event(SessionEvent::Refused(registry.session_ref(&session), reason));
            return Verdict::Challenge(Challenged { session, cookie: Some(KeyKind::Device) });
        }
        Verdict::Reject(session, reason)
    }

    fn open(&self, value: &[u8]) -> Option<Opened> {
        let registry = &self.site.registry;
        opened(registry, value)
            .map_err(|fault| registry.event(SessionEvent::SessionCookieRefused(fault)))
            .ok()
    }

    fn judge_opened(&self, opened: Opened) -> Admission {
        let registry = &self.site.registry;
        let snapshot = opened.snapshot();
        let fixed = snapshot.fixed();
        let relation = self.relation_to(&fixed.context);
        self.note(relation, snapshot.stored_id(), fixed.context_changed);
        registry.admission(opened, self.asking.now, relation)
    }

    fn judge_token(&self, token: &[u8], stale: Option<&Opened>) -> Verdict {
        let registry = &self.site.registry;
        let authentic = match registry.tokens.authenticate(token, self.asking.now) {
            Ok(authentic) => authentic,
            Err(error) => return self.refuse_token(error),
        };
        let stored_id = registry.vault.stored_id(authentic.digest());
        if let Some(stale) = stale
            && *stale.snapshot().stored_id() != stored_id
        {
            self.keeps_cookies.set(true);
            return Verdict::Reject(*stale.snapshot().stored_id(), Reason::Mismatch);
        }
        if registry.revocations.standing(&stored_id, u64::MAX) == Standing::Revoked {
            return Verdict::Reject(stored_id, Reason::Revoked);
        }
        let keyed = stale.map(|stale| stale.snapshot().fixed().bound_to());
        if authentic.bound_to().is_some() || keyed == Some(Some(KeyKind::Software)) {
            // A cookie from before the binding does not say who keeps the key.
            let cookie = keyed.map(|kind| kind.unwrap_or(KeyKind::Device));
            return Verdict::Challenge(Challenged { session: stored_id, cookie });
        }
        let relation = self.relation_to(authentic.context());
        if let ContextRelation::Rejected(signal) = relation {
            self.relation.set(relation);
            return Verdict::Reject(stored_id, Reason::Context(signal));
        }
        // A session cookie that came with it has told of it already.
        self.note(relation, &stored_id, stale.is_some());
        self.renewal_of(&authentic)
    }

    /// An authentic token renews, unless the request is of a kind that must not.
    fn renewal_of(&self, authentic: &AuthenticToken<'_>) -> Verdict {
        if self.asking.speculative {
            // Its answer may never be looked at. A browser that is told 503 asks again when the page is wanted.
            return Verdict::Unavailable;
        }
        if self.asking.cross_site_part {
            // The browser drops the new cookies of such a response, and with them the only copy of the new token.
            self.keeps_cookies.set(true);
            return Verdict::Anonymous;
        }
        match self.site.registry.tokens.verify(authentic) {
            Ok(verified) => Verdict::Renew(verified),
            Err(error) => self.refuse_token(error),
        }
    }

    fn refuse_token(&self, error: TokenError) -> Verdict {
        self.site.registry.event(SessionEvent::RenewalTokenRefused(match error {
            TokenError::Forged => CookieFault::Forged,
            TokenError::NotForHere => CookieFault::NotForHere,
        }));
        Verdict::Anonymous
    }
}

/// A session cookie younger than this has just been proven.
const JUST_PROVEN: Duration = Duration::from_secs(10);

/// What a session cookie says, if its seal holds. Whether it is fresh is not judged yet.
pub(super) fn opened(registry: &Registry, value: &[u8]) -> Result<Opened, CookieFault> {
    let unsealed = registry.cookie.open(value).map_err(CookieFault::from)?;
    let snapshot = Snapshot::parse(unsealed).ok_or(CookieFault::Malformed)?;
    Ok(Opened::from_seal(snapshot))
}
