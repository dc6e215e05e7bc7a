//! Who is asking. The cheap questions come first: an anonymous request costs the search of a header, a forged cookie one
//! decryption, a forged token one MAC; only what is authentic costs a signature or a store call.

use std::{cell::Cell, sync::Arc};

use http::{HeaderMap, Method, Request};

use super::{attached::Attached, site::Site};
use crate::{
    cookie::{Found, find, near_miss},
    crypto::OpenError,
    events::{CookieFault, SessionEvent},
    session::{
        Admission, Admitted, AuthenticToken, ContextDigest, ContextRelation, Opened, Reason, Snapshot,
        Standing, TokenError, Verdict, VerifiedRenewal, admit, admit_without_store,
    },
    store::{Asking, CookieChange, Renewal},
};

/// A request as it comes, being judged.
pub(super) struct Incoming<'a> {
    site: &'a Arc<Site>,
    method: &'a Method,
    headers: &'a HeaderMap,
    asking: Asking,
    /// Notes for those who come after, taken while judging.
    context_changed: Cell<bool>,
    keeps_cookies: Cell<bool>,
    /// A session cookie that is stale, while a token is asked for a new one.
    stale: Cell<Option<Opened>>,
}

/// The first judgement, without waiting for anything.
pub(super) enum Judged {
    /// All is known: attach this.
    Attach(Attached),
    /// The verdict needs the store.
    Ask(Box<(Asking, Question)>),
    /// Answered without asking the application: come again when you mean it.
    ComeAgain,
}

/// What the store is to be asked.
#[allow(clippy::large_enum_variant, reason = "it lies in a box, and nearly every one is the large one")]
pub(super) enum Question {
    /// Whether a fresh session still exists: the revocation feed cannot tell.
    Confirm(Admitted),
    /// What a token buys.
    Renew {
        token: VerifiedRenewal,
        relation: ContextRelation,
        shown: ContextDigest,
        is_upgrade: bool,
        /// The stale cookie that may be good for a while longer if the store is silent.
        stale: Option<Opened>,
    },
}

impl<'a> Incoming<'a> {
    pub(super) fn new<B>(site: &'a Arc<Site>, request: &'a Request<B>) -> Self {
        let headers = request.headers();
        let address = site.client_address.as_ref().and_then(|find| find(request.extensions()));
        let asking = Asking::new(headers, address, site.registry.now());
        let (context_changed, keeps_cookies) = (Cell::new(false), Cell::new(false));
        let (method, stale) = (request.method(), Cell::new(None));
        Self { site, method, headers, asking, context_changed, keeps_cookies, stale }
    }

    /// Judges the request as far as that goes without waiting.
    pub(super) fn judge(self) -> Judged {
        let registry = &self.site.registry;
        match self.verdict() {
            Verdict::Admit(admitted) if registry.covers(&admitted) => self.attach(Some(admitted)),
            Verdict::Admit(admitted) => self.ask(Question::Confirm(admitted)),
            Verdict::Renew(token) => {
                let client = self.asking.context();
                let shown = client.digest(registry.vault.context_key());
                let relation = client.relation_to(token.context(), registry.vault.context_key());
                let is_upgrade = self.method == Method::CONNECT
                    || (self.method == Method::GET && self.says("upgrade", "websocket"));
                let stale = self
                    .stale
                    .take()
                    .filter(|stale| !is_upgrade && self.may_go_without_store(stale, relation));
                self.ask(Question::Renew { token, relation, shown, is_upgrade, stale })
            }
            Verdict::Unavailable => Judged::ComeAgain,
            Verdict::Reject(session, reason) => {
                registry.event(SessionEvent::Refused(registry.session_ref(&session), reason));
                self.attach(None)
            }
            Verdict::Anonymous | Verdict::Challenge => self.attach(None),
        }
    }

    fn attach(self, admitted: Option<Admitted>) -> Judged {
        let (site, asking) = self.noted();
        Judged::Attach(Attached::new(site, asking, admitted, CookieChange::None))
    }

    fn ask(self, question: Question) -> Judged {
        Judged::Ask(Box::new((self.noted().1, question)))
    }

    fn noted(mut self) -> (&'a Arc<Site>, Asking) {
        self.asking.context_changed = self.context_changed.get();
        self.asking.keeps_cookies = self.keeps_cookies.get();
        (self.site, self.asking)
    }

    /// Whether the operator allows this request in on a stale cookie while the store is silent.
    fn may_go_without_store(&self, stale: &Opened, relation: ContextRelation) -> bool {
        let registry = &self.site.registry;
        !registry.outage.grace.is_zero()
            && (self.method.is_safe() || registry.outage.unsafe_methods)
            && relation.is_tolerated()
            && registry.standing(stale.snapshot()) == Standing::Clear
    }

    /// Whether a field says `token`, alone or as one of several.
    fn says(&self, name: &'static str, token: &str) -> bool {
        self.headers.get_all(name).iter().any(|value| {
            let mut words = value.as_bytes().split(|byte| matches!(byte, b',' | b';' | b' ' | b'\t'));
            words.any(|word| word.eq_ignore_ascii_case(token.as_bytes()))
        })
    }

    /// The table of verdicts, row by row.
    fn verdict(&self) -> Verdict {
        let registry = &self.site.registry;
        let names @ [session_name, _] = self.site.cookies.names();
        let [session, token] = find(self.asking.cookies(), names);
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
        let stale = match opened {
            Some(opened) => match self.judge_opened(opened) {
                Admission::Admitted(admitted) => return Verdict::Admit(admitted),
                Admission::Rejected(session, reason) => return Verdict::Reject(session, reason),
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
            return Verdict::Reject(*stale.snapshot().stored_id(), Reason::Expired);
        }
        // Looked for only where nothing of ours came: the hot path never pays for it, nor does a refused cookie twice.
        if session == Found::Nothing
            && let Some(kind) = near_miss(self.asking.cookies(), session_name)
        {
            registry.event(SessionEvent::CookieNearMiss(kind));
        }
        Verdict::Anonymous
    }

    fn open(&self, value: &[u8]) -> Option<Opened> {
        let registry = &self.site.registry;
        let opened = registry.cookie.open(value);
        let snapshot = opened.and_then(|bytes| Snapshot::parse(bytes).ok_or(OpenError::Malformed));
        match snapshot {
            Ok(snapshot) => Some(Opened::from_seal(snapshot)),
            Err(error) => {
                registry.event(SessionEvent::SessionCookieRefused(match error {
                    OpenError::Malformed => CookieFault::Malformed,
                    OpenError::UnknownKey => CookieFault::UnknownKey,
                    OpenError::Forged => CookieFault::Forged,
                }));
                None
            }
        }
    }

    fn judge_opened(&self, opened: Opened) -> Admission {
        let registry = &self.site.registry;
        let snapshot = opened.snapshot();
        let fixed = snapshot.fixed();
        let relation = self.asking.context().relation_to(&fixed.context, registry.vault.context_key());
        if let ContextRelation::Changed(signal) = relation {
            self.context_changed.set(true);
            if !fixed.context_changed {
                let session = registry.session_ref(snapshot.stored_id());
                registry.event(SessionEvent::ContextChanged(session, signal));
            }
        }
        let standing = registry.standing(snapshot);
        admit(opened, self.asking.now, registry.timeouts.fresh, relation, standing)
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
        match self.asking.context().relation_to(authentic.context(), registry.vault.context_key()) {
            ContextRelation::Rejected => return Verdict::Reject(stored_id, Reason::Context),
            ContextRelation::Changed(signal) => {
                self.context_changed.set(true);
                // A session cookie that came with it has told of it already.
                if stale.is_none() {
                    registry.event(SessionEvent::ContextChanged(registry.session_ref(&stored_id), signal));
                }
            }
            _ => {}
        }
        self.renewal_of(&authentic)
    }

    /// An authentic token renews, unless the request is of a kind that must not.
    fn renewal_of(&self, authentic: &AuthenticToken<'_>) -> Verdict {
        if self.says("sec-purpose", "prefetch") {
            // Its answer may never be looked at. A browser that is told 503 asks again when the page is wanted.
            return Verdict::Unavailable;
        }
        if self.says("sec-fetch-site", "cross-site") && !self.says("sec-fetch-mode", "navigate") {
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

/// Asks the store; `None` if it does not answer.
pub(super) async fn ask(site: &Arc<Site>, mut asking: Asking, question: Question) -> Option<Attached> {
    let registry = &site.registry;
    let attach = |asking, admitted, change| Attached::new(site, asking, admitted, change);
    match question {
        Question::Confirm(admitted) => {
            let snapshot = admitted.snapshot();
            let Some((row, _)) = registry.load(snapshot.stored_id()).await.ok()? else {
                let session = registry.session_ref(snapshot.stored_id());
                registry.event(SessionEvent::Refused(session, Reason::Revoked));
                return Some(attach(asking, None, CookieChange::None));
            };
            if row.superseded_at.is_some() {
                // Whether the newer id has other claims is not known here.
                let session = registry.session_ref(snapshot.stored_id());
                registry.event(SessionEvent::Refused(session, Reason::Superseded));
                asking.keeps_cookies = true;
                return Some(attach(asking, None, CookieChange::None));
            }
            if row.claims_version == snapshot.fixed().claims_version {
                return Some(attach(asking, Some(admitted), CookieChange::None));
            }
            // Its claims are older than the store's.
            let issued = registry.reissue(snapshot, &row).ok()?;
            let change = CookieChange::set(&issued);
            Some(attach(asking, Some(issued.admitted), change))
        }
        Question::Renew { token, relation, shown, is_upgrade, stale } => {
            match registry.renew(&token, relation, shown, is_upgrade).await {
                Renewal::Issued(issued) => {
                    let change = CookieChange::set(&issued);
                    Some(attach(asking, Some(issued.admitted), change))
                }
                Renewal::Upgraded(admitted) => {
                    Some(Attached { upgrade: true, ..attach(asking, Some(admitted), CookieChange::None) })
                }
                Renewal::Refused { for_now } => {
                    asking.keeps_cookies = for_now;
                    Some(Attached::new(site, asking, None, CookieChange::None))
                }
                Renewal::Unavailable => {
                    let (fresh, grace) = (registry.timeouts.fresh, registry.outage.grace);
                    let admitted = admit_without_store(stale?, asking.now, fresh, grace)?;
                    let session = registry.session_ref(admitted.snapshot().stored_id());
                    registry.event(SessionEvent::AdmittedWithoutStore(session));
                    let attached = attach(asking, Some(admitted), CookieChange::None);
                    Some(Attached { without_store: true, ..attached })
                }
            }
        }
    }
}
