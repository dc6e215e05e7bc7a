//! What only the store can answer before the application runs.

use std::sync::Arc;

use super::{attached::Attached, site::Site};
use crate::{
    dbsc::KeyKind,
    events::SessionEvent,
    session::{
        Admitted, ContextDigest, ContextRelation, Opened, Reason, VerifiedRenewal, admit_without_store,
    },
    store::{Asking, CookieChange, Renewal, RenewalKind},
};

/// What the store is to be asked.
#[allow(clippy::large_enum_variant, reason = "it lies in a box, and nearly every one is the large one")]
pub(super) enum Question {
    /// Whether a fresh session still exists: the revocation feed cannot tell.
    Confirm(Admitted),
    /// What a token buys.
    Renew {
        token: VerifiedRenewal,
        relation: ContextRelation,
        /// The client's context, where the session's is to follow it.
        moved_to: Option<ContextDigest>,
        kind: RenewalKind,
        /// The stale cookie that may be good for a while longer if the store is silent.
        stale: Option<Opened>,
        /// The fresh cookie that lets the request in whatever comes of it: only activity is owed.
        owed: Option<Admitted>,
        /// Whether somebody opens a page with a session cookie, whose browser could refresh it.
        may_load_again: bool,
    },
}

/// What is answered in place of the application.
pub(super) enum Instead {
    /// Load it again without the session cookie, so that your device proves itself.
    LoadAgain,
    /// Come again: the store does not answer.
    ComeAgain,
}

/// Asks the store.
pub(super) async fn ask(
    site: &Arc<Site>,
    mut asking: Asking,
    question: Question,
) -> Result<Attached, Instead> {
    let registry = &site.registry;
    let attach = |asking, admitted, change| Attached::new(site, asking, admitted, change);
    match question {
        Question::Confirm(admitted) => {
            let snapshot = admitted.snapshot();
            let Some((row, _)) = registry.load(snapshot.stored_id()).await.map_err(|_| Instead::ComeAgain)?
            else {
                let session = registry.session_ref(snapshot.stored_id());
                registry.event(SessionEvent::Refused(session, Reason::Revoked));
                return Ok(attach(asking, None, CookieChange::None));
            };
            if row.superseded_at.is_some() {
                // Whether the newer id has other claims is not known here.
                let session = registry.session_ref(snapshot.stored_id());
                registry.event(SessionEvent::Refused(session, Reason::Superseded));
                asking.keeps_cookies = true;
                return Ok(attach(asking, None, CookieChange::None));
            }
            if row.claims_version == snapshot.fixed().claims_version {
                return Ok(attach(asking, Some(admitted), CookieChange::None));
            }
            // Its claims are older than the store's.
            let issued = registry.reissue(snapshot, &row).map_err(|_| Instead::ComeAgain)?;
            let change = CookieChange::Set(issued.cookies);
            Ok(attach(asking, Some(issued.admitted), change))
        }
        Question::Renew { token, relation, moved_to, kind, stale, owed, may_load_again } => {
            match registry.renew(&token, relation, moved_to, kind, None).await {
                Renewal::Issued(issued) => {
                    let change = CookieChange::Set(issued.cookies);
                    Ok(attach(asking, Some(issued.admitted), change))
                }
                Renewal::Upgraded(admitted) => {
                    Ok(Attached { upgrade: true, ..attach(asking, Some(admitted), CookieChange::None) })
                }
                // Its token does not say so yet: it was bound while this request was under way, or its browser has lost the
                // token that does.
                Renewal::Bound(_) if owed.is_some() => Ok(attach(asking, owed, CookieChange::None)),
                // Also where an answer from before the binding came last and has put its cookies over the bound ones.
                Renewal::Bound(KeyKind::Device) if may_load_again => Err(Instead::LoadAgain),
                Renewal::Bound(_) => {
                    let id = registry.vault.stored_id_of(token.id());
                    registry.event(SessionEvent::Refused(registry.session_ref(&id), Reason::Unproven));
                    asking.keeps_cookies = !asking.is_own;
                    Ok(attach(asking, None, CookieChange::None))
                }
                Renewal::Refused { for_now: true } | Renewal::Unavailable | Renewal::ProofUsed { .. }
                    if owed.is_some() =>
                {
                    Ok(attach(asking, owed, CookieChange::None))
                }
                Renewal::Refused { for_now } => {
                    asking.keeps_cookies = for_now;
                    Ok(Attached::new(site, asking, None, CookieChange::None))
                }
                // Without a proof none is used.
                Renewal::Unavailable | Renewal::ProofUsed { .. } => {
                    let (fresh, grace) = (registry.timeouts.fresh, registry.outage.grace);
                    let admitted =
                        stale.and_then(|stale| admit_without_store(stale, asking.now, fresh, grace));
                    let admitted = admitted.ok_or(Instead::ComeAgain)?;
                    let session = registry.session_ref(admitted.snapshot().stored_id());
                    registry.event(SessionEvent::AdmittedWithoutStore(session));
                    let attached = attach(asking, Some(admitted), CookieChange::None);
                    Ok(Attached { without_store: true, ..attached })
                }
            }
        }
    }
}
