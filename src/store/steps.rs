//! The rules of the verbs over one row, for stores that can run Rust inside their atomic step.

use super::{
    contract::{CommitRequest, Presented, RotateAnswer, RotateRequest, Seen},
    row::{FieldTag, Row, RowKeeper},
};
use crate::{
    clock::Timestamp,
    crypto::RandomError,
    dbsc::KeyKind,
    id::StoredId,
    session::{Device, RotationOutcome, rotate},
};

/// Socket upgrades that a stale cookie may make with one generation. A page opens a few sockets; more would be a way to
/// stay without renewing (attack A74).
const MAX_UPGRADES: u32 = 3;

/// What a step is to write.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a store must treat every kind")]
pub enum RowChange {
    /// Nothing.
    Keep,
    /// This row.
    Write(Box<Row>),
    /// Nothing is left of it, and the feed says that it was revoked.
    Revoke,
}

/// What a rotation answers, and what it is to write.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "stores take it apart")]
pub struct RotateStep {
    /// The answer.
    pub answer: RotateAnswer,
    /// What to write.
    pub change: RowChange,
}

/// Whether a session goes on at `now`, its user's epoch being `epoch`.
#[must_use]
pub fn is_live(row: &Row, epoch: u64, now: Timestamp) -> bool {
    now < row.deadline && now < row.ends_at && row.epoch >= epoch
}

/// One rotation, for a row that is live.
///
/// # Errors
/// If the keeper cannot seal: nothing is to be written, and the verb fails.
pub fn rotate_row(request: &RotateRequest<'_>, row: &Row, now: Timestamp) -> Result<RotateStep, RandomError> {
    let keep = |answer| Ok(RotateStep { answer, change: RowChange::Keep });
    if !request.keeper.verify(&request.id, row) {
        return keep(RotateAnswer::Tampered);
    }
    if let Some(since) = row.superseded_at {
        return keep(RotateAnswer::Superseded { late: now >= since + request.timeouts.grace });
    }
    let (generation, device) = match (request.presented, &row.device) {
        (Presented::Token(generation) | Presented::SignedToken { generation, .. }, None) => {
            (generation, None)
        }
        (Presented::SignedToken { generation, key, challenge }, Some(device)) if device.is_script_s(&key) => {
            if challenge <= device.challenge {
                return keep(RotateAnswer::ProofUsed { last: device.challenge });
            }
            let proven = Device { challenge, proven_at: now, confirmed: true, ..**device };
            (generation, Some(Box::new(proven)))
        }
        (Presented::Token(_) | Presented::SignedToken { .. }, Some(device)) => {
            return keep(RotateAnswer::Bound(device.kind));
        }
        _ => return device_step(request, row, now),
    };
    let (outcome, rotation) =
        rotate(&row.rotation, generation, now, request.timeouts.grace, request.same_client);
    let proven = device.is_some();
    let mut after = Row { rotation, device, ..row.clone() };
    let judged = |row: &Row| RotateAnswer::Judged { outcome, row: row.clone(), now };
    match outcome {
        RotationOutcome::Reuse => Ok(RotateStep { answer: judged(row), change: RowChange::Revoke }),
        RotationOutcome::Young | RotationOutcome::Won(_) if request.upgrade => {
            if row.upgrades >= MAX_UPGRADES {
                return keep(RotateAnswer::Upgrade(None));
            }
            after = Row { upgrades: row.upgrades + 1, ..row.clone() };
            request.keeper.sign(&request.id, &mut after);
            Ok(RotateStep {
                answer: RotateAnswer::Upgrade(Some(after.clone())),
                change: RowChange::Write(Box::new(after)),
            })
        }
        _ if request.upgrade => keep(RotateAnswer::Upgrade(None)),
        // The last renewal was of a page that asks by itself, and this is the user; or there is a proof to note.
        RotationOutcome::Young | RotationOutcome::Echo
            if proven || (request.active && row.rotation.rotated_at > row.renewed_at) =>
        {
            if request.active && row.rotation.rotated_at > row.renewed_at {
                prolong(&mut after, request, now);
            }
            request.keeper.sign(&request.id, &mut after);
            Ok(RotateStep { answer: judged(&after), change: RowChange::Write(Box::new(after)) })
        }
        RotationOutcome::Young | RotationOutcome::Echo | RotationOutcome::EchoRefused => keep(judged(row)),
        RotationOutcome::Won(_) | RotationOutcome::Again(_) | RotationOutcome::RolledBack(_) => {
            if !request.keeper.edit(&request.id, &mut after, now)? {
                return keep(RotateAnswer::Tampered);
            }
            if request.active {
                prolong(&mut after, request, now);
            }
            after.upgrades = 0;
            request.keeper.sign(&request.id, &mut after);
            Ok(RotateStep { answer: judged(&after), change: RowChange::Write(Box::new(after)) })
        }
    }
}

/// What a key does to its session without a token, and a new authentication of the user.
fn device_step(request: &RotateRequest<'_>, row: &Row, now: Timestamp) -> Result<RotateStep, RandomError> {
    let keep = |answer| Ok(RotateStep { answer, change: RowChange::Keep });
    let mut after = row.clone();
    let bound = match request.presented {
        Presented::Device { kind, key, challenge } => {
            match &row.device {
                // The answer that bound it was lost.
                Some(device) if kind == KeyKind::Software && device.is_script_s(&key) => {
                    return keep(RotateAnswer::ProofUsed { last: device.challenge });
                }
                // What the browser does by itself is the better of the two, and comes later where a page is quicker.
                Some(device) if kind == KeyKind::Software || device.kind == KeyKind::Device => {
                    return keep(RotateAnswer::Bound(device.kind));
                }
                _ => {}
            }
            Some(Device { kind, key, challenge, proven_at: now, confirmed: false })
        }
        Presented::Proof { key, challenge } => match &row.device {
            Some(device) if device.kind == KeyKind::Device && device.key != key => {
                return keep(RotateAnswer::Gone);
            }
            Some(device) if device.kind == KeyKind::Device && challenge <= device.challenge => {
                return keep(RotateAnswer::ProofUsed { last: device.challenge });
            }
            // A proof for a session without its key: the store has lost that it was bound; the seal of its identifier has not.
            device => {
                let confirmed = device.as_ref().is_some_and(|device| device.kind == KeyKind::Device);
                Some(Device { kind: KeyKind::Device, key, challenge, proven_at: now, confirmed })
            }
        },
        Presented::Authentication if row.device.is_some() => {
            after.authenticated_at = now;
            after.ends_at = now + request.timeouts.absolute_of(row.is_long());
            None
        }
        _ => return keep(RotateAnswer::Gone),
    };
    if let Some(device) = bound {
        after.device = Some(Box::new(device));
        // The longer end of a device; one that the application has set stands.
        let absolute = |long| row.authenticated_at + request.timeouts.absolute_of(long);
        if after.is_long() && !row.is_long() && row.ends_at == absolute(false) {
            after.ends_at = absolute(true);
        }
    }
    if !request.keeper.edit(&request.id, &mut after, now)? {
        return keep(RotateAnswer::Tampered);
    }
    if request.active {
        prolong(&mut after, request, now);
    }
    request.keeper.sign(&request.id, &mut after);
    Ok(RotateStep {
        answer: RotateAnswer::Taken { row: after.clone(), now },
        change: RowChange::Write(Box::new(after)),
    })
}

/// The user is there: the idle timeout begins anew.
fn prolong(row: &mut Row, request: &RotateRequest<'_>, now: Timestamp) {
    row.renewed_at = now;
    row.deadline = (now + request.timeouts.idle_of(row.is_long())).min(row.ends_at);
}

/// The row after a commit, for a row that is live; `None` if it takes none.
///
/// # Errors
/// If the keeper cannot seal: nothing is to be written, and the verb fails.
pub fn commit_row(
    request: &CommitRequest<'_>,
    row: &Row,
    now: Timestamp,
) -> Result<Option<Row>, RandomError> {
    if row.superseded_at.is_some() || !request.keeper.verify(&request.id, row) {
        return Ok(None);
    }
    let mut after = row.clone();
    let sooner = request.deadline.filter(|deadline| *deadline < row.deadline);
    if let Some(deadline) = sooner {
        after.deadline = deadline;
        after.ends_at = deadline;
    }
    if request.edit {
        after.claims_version = after.claims_version.saturating_add(1);
        if !request.keeper.edit(&request.id, &mut after, now)? {
            return Ok(None);
        }
    }
    if request.edit || sooner.is_some() {
        request.keeper.sign(&request.id, &mut after);
    }
    Ok(Some(after))
}

/// Whether a session with this row and these fields still holds what was `seen` of it.
#[must_use]
pub fn is_as_seen(seen: Option<&Seen>, row: &Row, fields: &[(FieldTag, Vec<u8>)]) -> bool {
    seen.is_none_or(|seen| {
        seen.claims_version == row.claims_version
            && seen.is_bound == row.device.is_some()
            && seen.fields.len() == fields.len()
            && seen.fields.iter().all(|field| fields.contains(field))
    })
}

/// Whether a session that is live may be moved to a newer id, and end.
#[must_use]
pub fn may_move(id: &StoredId, row: &Row, keeper: &dyn RowKeeper) -> bool {
    row.superseded_at.is_none() && keeper.verify(id, row)
}

/// The row of a session that is live once it has a newer id; `None` if it cannot be superseded.
#[must_use]
pub fn supersede_row(
    id: &StoredId,
    row: &Row,
    successor: StoredId,
    now: Timestamp,
    keeper: &dyn RowKeeper,
) -> Option<Row> {
    if !may_move(id, row, keeper) {
        return None;
    }
    let mut after = Row { superseded_at: Some(now), successor: Some(successor), ..row.clone() };
    keeper.sign(id, &mut after);
    Some(after)
}

/// A session is seldom authenticated anew more often than this within its life. Those before that many are not followed.
#[cfg(any(feature = "sqlite", feature = "redis", feature = "postgres"))]
pub(super) const MOST_PREDECESSORS: usize = 64;
