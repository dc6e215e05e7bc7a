//! The events, named after the OWASP logging vocabulary where it has a word.

use std::sync::Arc;

use super::{
    refusal::{CrossSiteReason, Misplaced, UnknownAddress},
    verb::StoreVerb,
};
use crate::{
    cookie::{CookieFinding, NearMiss},
    crypto::OpenError,
    dbsc::{ProofError, SkipReason},
    id::SessionRef,
    session::{ContextSignal, Reason},
};

/// How much an event should worry its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Severity {
    /// The ordinary life of a session.
    Info,
    /// Worth a look when it happens often.
    Warning,
    /// Somebody else holds a user's credentials, or has touched the database.
    Alarm,
}

/// Why a cookie of ours was not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CookieFault {
    /// Not the form of a sealed cookie or token.
    Malformed,
    /// Sealed under a key that this ring does not have, or has revoked.
    UnknownKey,
    /// The seal, the MAC or the signature is wrong.
    Forged,
    /// Authentic, but for another origin or session, or from the future.
    NotForHere,
    /// Sent more than once in one request.
    Duplicate,
    /// Authentic, but past its end.
    Expired,
}

impl From<OpenError> for CookieFault {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Malformed => Self::Malformed,
            OpenError::UnknownKey => Self::UnknownKey,
            OpenError::Forged => Self::Forged,
        }
    }
}

/// Something that happened to a session, or a cookie or request that broke a rule of the site.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionEvent {
    /// An anonymous session was created because a handler wrote to it.
    Created(SessionRef),
    /// Somebody signed in; the session has a new id.
    LoggedIn(SessionRef),
    /// The user of a session proved again who they are; it has a new id.
    Reauthenticated(SessionRef),
    /// A session got a new id without a new authentication (`Session::cycle_id`).
    IdCycled(SessionRef),
    /// A renewal token bought a new pair of cookies.
    Renewed(SessionRef),
    /// The token before came after the grace: its answer was probably lost, and it was answered once more.
    RenewalAnswerLost(SessionRef),
    /// The token before came within the grace from another client, and was refused.
    RenewalFromOtherClient(SessionRef),
    /// A used-up token was presented: somebody copied it. The session is revoked everywhere.
    TokenReuse(SessionRef),
    /// A token of a session that has a newer id was presented long after: somebody copied it before the user
    /// authenticated again. The newer session goes on.
    SupersededTokenUsed(SessionRef),
    /// A token newer than the store was presented: the store lost writes.
    StoreRolledBack(SessionRef),
    /// A session shows up with another client, by a signal whose reaction is to note it or to step up; it goes on. Told once in
    /// some minutes.
    ContextChanged(SessionRef, ContextSignal),
    /// Authentic credentials were not let in.
    Refused(SessionRef, Reason),
    /// A session's user signed out.
    LoggedOut(SessionRef),
    /// A user signed out everywhere, or was signed out by the operator; this many sessions were open.
    LoggedOutEverywhere(u64),
    /// Everybody who had been authenticated before a moment was signed out by the operator.
    EverybodyLoggedOut,
    /// A session was ended from another one of the same user.
    Revoked(SessionRef),
    /// The claims of a session changed; older cookies must renew.
    ClaimsChanged(SessionRef),
    /// A session was bound to a key of its browser.
    DeviceBound(SessionRef),
    /// A session was bound to a key that a script keeps.
    SoftwareKeyBound(SessionRef),
    /// Somebody wanted to bind another key to a session that has one: two hold what was offered to one login.
    DeviceAlreadyBound(SessionRef),
    /// A device's proof did not hold. The session stays as it is.
    DeviceProofRefused(SessionRef, ProofError),
    /// A browser could not refresh its bound session, and said why; it is to come again.
    DeviceRefreshSkipped(SessionRef, SkipReason),
    /// A session cookie was not used.
    SessionCookieRefused(CookieFault),
    /// A renewal token was not used.
    RenewalTokenRefused(CookieFault),
    /// A cookie's name resembles ours: somebody tries to pass one off.
    CookieNearMiss(NearMiss),
    /// A request with our cookies did not come to this site: another Host, or plain HTTP.
    Misplaced(Misplaced),
    /// A request of another site was refused, or would be where cross-site checks only report.
    CrossSite(CrossSiteReason),
    /// Our cookies came with a request from which the browser should have withheld them; they were not used.
    CookiesNotWithheld,
    /// A form came without its token, or with that of another session.
    FormTokenRefused,
    /// The address of a client is not known, though it is to be looked at. Told once in some minutes.
    ClientAddressUnknown(UnknownAddress),
    /// A cookie of the application broke a rule of the site's policy. Told once in some minutes for each name and rule.
    CookiePolicy(CookieFinding),
    /// A sealed cookie of the application, of this name, did not open; the application does not see it.
    SealedCookieRefused(Arc<str>, CookieFault),
    /// A handler wrote to a session that ended meanwhile; the write was dropped.
    WriteToEndedSession(SessionRef),
    /// A handler wrote for somebody whose credentials were refused for now; the write was dropped, their cookies stay.
    WriteOfRefusedRequest,
    /// A record does not hold what was written: changed in the database, or sealed under a lost key. It counts as gone.
    RecordTampered(SessionRef),
    /// A stale session's socket upgrade was refused: too many for one generation, or not with this token.
    UpgradeRefused(SessionRef),
    /// The store did not do what was asked.
    StoreUnavailable(StoreVerb),
    /// A session was let in although the store is silent: its cookie was stale, within the grace that the operator allows.
    AdmittedWithoutStore(SessionRef),
    /// A revocation could not be written. It holds on this instance, and is written when the store is back.
    RevocationPostponed,
    /// So many revocations that had been postponed are written.
    RevocationsDelivered(u64),
    /// The store had lost so many revocations (a failover), and has them again.
    RevocationsRestored(u64),
    /// The revocation feed has been silent for longer than the operator allows.
    FeedLost,
    /// The revocation feed is heard again, and what came meanwhile is known.
    FeedRecovered,
    /// The operating system gave no random bytes.
    NoRandomness,
}

impl SessionEvent {
    /// The event's name in logs, in snake case. Names do not change between versions.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Created(_) => "session_created",
            Self::LoggedIn(_) => "authn_login_success",
            Self::Reauthenticated(_) => "authn_reauthenticated",
            Self::IdCycled(_) => "session_id_cycled",
            Self::Renewed(_) => "session_renewed",
            Self::RenewalAnswerLost(_) => "renewal_answer_lost",
            Self::RenewalFromOtherClient(_) => "renewal_from_other_client",
            Self::TokenReuse(_) => "authn_token_reuse",
            Self::SupersededTokenUsed(_) => "authn_superseded_token_used",
            Self::StoreRolledBack(_) => "store_rolled_back",
            Self::ContextChanged(..) => "session_context_changed",
            Self::Refused(_, Reason::Expired) => "session_use_after_expire",
            Self::Refused(..) => "session_refused",
            Self::LoggedOut(_) => "authn_logout",
            Self::LoggedOutEverywhere(_) => "authn_logout_everywhere",
            Self::EverybodyLoggedOut => "authn_logout_everybody",
            Self::Revoked(_) => "session_revoked",
            Self::ClaimsChanged(_) => "session_claims_changed",
            Self::DeviceBound(_) => "device_bound",
            Self::SoftwareKeyBound(_) => "software_key_bound",
            Self::DeviceAlreadyBound(_) => "device_already_bound",
            Self::DeviceProofRefused(..) => "device_proof_refused",
            Self::DeviceRefreshSkipped(..) => "device_refresh_skipped",
            Self::SessionCookieRefused(CookieFault::Duplicate)
            | Self::RenewalTokenRefused(CookieFault::Duplicate) => "duplicate_cookie",
            Self::SessionCookieRefused(_) => "crypt_decrypt_fail",
            Self::RenewalTokenRefused(_) => "authn_token_invalid",
            Self::CookieNearMiss(_) => "cookie_near_miss",
            Self::Misplaced(Misplaced::Host) => "request_wrong_host",
            Self::Misplaced(Misplaced::Scheme) => "request_plain_http",
            Self::CrossSite(_) => "cross_site_refused",
            Self::CookiesNotWithheld => "cookies_not_withheld",
            Self::FormTokenRefused => "form_token_refused",
            Self::ClientAddressUnknown(_) => "client_address_unknown",
            Self::CookiePolicy(_) => "cookie_policy",
            Self::SealedCookieRefused(..) => "sealed_cookie_refused",
            Self::WriteToEndedSession(_) => "write_to_ended_session",
            Self::WriteOfRefusedRequest => "write_of_refused_request",
            Self::RecordTampered(_) => "record_tampered",
            Self::UpgradeRefused(_) => "upgrade_refused",
            Self::StoreUnavailable(_) => "store_unavailable",
            Self::AdmittedWithoutStore(_) => "admitted_without_store",
            Self::RevocationPostponed => "revocation_postponed",
            Self::RevocationsDelivered(_) => "revocations_delivered",
            Self::RevocationsRestored(_) => "revocations_restored",
            Self::FeedLost => "revocation_feed_lost",
            Self::FeedRecovered => "revocation_feed_recovered",
            Self::NoRandomness => "no_randomness",
        }
    }

    /// How much it should worry its reader.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        match self {
            Self::Created(_)
            | Self::LoggedIn(_)
            | Self::Reauthenticated(_)
            | Self::IdCycled(_)
            | Self::Renewed(_)
            | Self::RenewalAnswerLost(_)
            | Self::LoggedOut(_)
            | Self::LoggedOutEverywhere(_)
            | Self::EverybodyLoggedOut
            | Self::Revoked(_)
            | Self::ClaimsChanged(_)
            | Self::DeviceBound(_)
            | Self::SoftwareKeyBound(_)
            | Self::RevocationsDelivered(_)
            | Self::FeedRecovered
            | Self::SealedCookieRefused(_, CookieFault::Expired | CookieFault::NotForHere)
            | Self::Refused(_, Reason::Expired | Reason::Superseded | Reason::Revoked) => Severity::Info,
            Self::TokenReuse(_)
            | Self::SupersededTokenUsed(_)
            | Self::RecordTampered(_)
            | Self::DeviceAlreadyBound(_) => Severity::Alarm,
            Self::RenewalFromOtherClient(_)
            | Self::StoreRolledBack(_)
            | Self::ContextChanged(..)
            | Self::Refused(..)
            | Self::DeviceProofRefused(..)
            | Self::DeviceRefreshSkipped(..)
            | Self::SessionCookieRefused(_)
            | Self::RenewalTokenRefused(_)
            | Self::CookieNearMiss(_)
            | Self::Misplaced(_)
            | Self::CrossSite(_)
            | Self::CookiesNotWithheld
            | Self::FormTokenRefused
            | Self::ClientAddressUnknown(_)
            | Self::CookiePolicy(_)
            | Self::SealedCookieRefused(..)
            | Self::WriteToEndedSession(_)
            | Self::WriteOfRefusedRequest
            | Self::UpgradeRefused(_)
            | Self::StoreUnavailable(_)
            | Self::AdmittedWithoutStore(_)
            | Self::RevocationPostponed
            | Self::RevocationsRestored(_)
            | Self::FeedLost
            | Self::NoRandomness => Severity::Warning,
        }
    }

    /// The session it is about, where it is about one.
    #[must_use]
    pub const fn session(&self) -> Option<SessionRef> {
        match self {
            Self::Created(session)
            | Self::LoggedIn(session)
            | Self::Reauthenticated(session)
            | Self::IdCycled(session)
            | Self::Renewed(session)
            | Self::RenewalAnswerLost(session)
            | Self::RenewalFromOtherClient(session)
            | Self::TokenReuse(session)
            | Self::SupersededTokenUsed(session)
            | Self::StoreRolledBack(session)
            | Self::ContextChanged(session, _)
            | Self::Refused(session, _)
            | Self::LoggedOut(session)
            | Self::Revoked(session)
            | Self::ClaimsChanged(session)
            | Self::DeviceBound(session)
            | Self::SoftwareKeyBound(session)
            | Self::DeviceAlreadyBound(session)
            | Self::DeviceProofRefused(session, _)
            | Self::DeviceRefreshSkipped(session, _)
            | Self::WriteToEndedSession(session)
            | Self::RecordTampered(session)
            | Self::AdmittedWithoutStore(session)
            | Self::UpgradeRefused(session) => Some(*session),
            Self::LoggedOutEverywhere(_)
            | Self::EverybodyLoggedOut
            | Self::SessionCookieRefused(_)
            | Self::RenewalTokenRefused(_)
            | Self::CookieNearMiss(_)
            | Self::Misplaced(_)
            | Self::CrossSite(_)
            | Self::CookiesNotWithheld
            | Self::FormTokenRefused
            | Self::ClientAddressUnknown(_)
            | Self::CookiePolicy(_)
            | Self::SealedCookieRefused(..)
            | Self::WriteOfRefusedRequest
            | Self::StoreUnavailable(_)
            | Self::RevocationPostponed
            | Self::RevocationsDelivered(_)
            | Self::RevocationsRestored(_)
            | Self::FeedLost
            | Self::FeedRecovered
            | Self::NoRandomness => None,
        }
    }

    /// What the name does not say: a reason, a fault, a verb, a number.
    #[must_use]
    pub fn detail(&self) -> String {
        match self {
            Self::ContextChanged(_, signal) => format!("{signal:?}"),
            Self::Refused(_, reason) => format!("{reason:?}"),
            Self::DeviceProofRefused(_, error) => error.to_string(),
            Self::DeviceRefreshSkipped(_, reason) => format!("{reason:?}"),
            Self::SessionCookieRefused(fault) => format!("session cookie: {fault:?}"),
            Self::RenewalTokenRefused(fault) => format!("renewal token: {fault:?}"),
            Self::CookieNearMiss(kind) => format!("{kind:?}"),
            Self::Misplaced(place) => place.remedy().into(),
            Self::CrossSite(reason) => reason.remedy().into(),
            Self::ClientAddressUnknown(by) => by.remedy().into(),
            Self::CookiePolicy(finding) => finding.to_string(),
            Self::SealedCookieRefused(name, fault) => format!("{name}: {fault:?}"),
            Self::StoreUnavailable(verb) => verb.name().into(),
            Self::LoggedOutEverywhere(sessions) => format!("{sessions} sessions"),
            Self::RevocationsDelivered(count) | Self::RevocationsRestored(count) => count.to_string(),
            _ => String::new(),
        }
    }
}
