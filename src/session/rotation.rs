//! What a presented generation leads to: the table of one-time renewal, as one pure function.
//!
//! Every store runs it, or a translation of it, inside one atomic step; the contract suite compares them row by row.
//! Why it looks like this: two tabs race, answers get lost, and a thief may be beside the owner. A loser of a race gets
//! in without a token; a lost answer gets a sibling of the lost token, of which only one can ever be presented; and no
//! row that a thief can reach moves `rotated_at`, or he could stay for ever (attacks A02-A06, A73).

use std::time::Duration;

use crate::clock::Timestamp;

/// The state of a session's renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(
    clippy::exhaustive_structs,
    reason = "stores build it from their columns; it is the table's whole state"
)]
pub struct Rotation {
    /// The generation that was presented at the last win; 0 before the first.
    pub previous: u64,
    /// Generations above this and up to `issued` are good.
    pub floor: u64,
    /// The last generation issued.
    pub issued: u64,
    /// When the last win was. Moved by a win, a login and a roll-back, by nothing else.
    pub rotated_at: Timestamp,
}

/// What a presented generation led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RotationOutcome {
    /// The token was good: a new pair of cookies, with this generation.
    Won(u64),
    /// The token was good and is younger than the grace: a session cookie only.
    Young,
    /// The token before, within the grace: a lost race. A session cookie only.
    Echo,
    /// The token before, within the grace, from another client: no cookie, nothing revoked.
    EchoRefused,
    /// The token before, later: its answer was probably lost. A new pair, with this generation.
    Again(u64),
    /// A token this store has not issued yet: it lost writes. A new pair, with this generation.
    RolledBack(u64),
    /// A token that was used up: theft. The session is to be revoked.
    Reuse,
}

impl Rotation {
    /// The state of a session that begins `now`, with the generation of its first token.
    #[must_use]
    pub const fn begin(now: Timestamp) -> Self {
        // A generation of 0 would be "before the first"; the clock is far beyond it.
        let issued = if now.as_millis() == 0 { 1 } else { now.as_millis() };
        Self { previous: 0, floor: issued - 1, issued, rotated_at: now }
    }

    /// The generation after this state's: never one that was issued before, not even by a store that lost writes.
    fn next(&self, now: Timestamp) -> u64 {
        self.issued.saturating_add(1).max(now.as_millis())
    }
}

/// Judges the generation `presented` at the instant `now` of the store's clock, and gives the state after it.
///
/// `same_client` says whether nothing speaks against the client being the one the session is bound to.
#[must_use]
pub fn rotate(
    state: &Rotation,
    presented: u64,
    now: Timestamp,
    grace: Duration,
    same_client: bool,
) -> (RotationOutcome, Rotation) {
    let in_grace = now < state.rotated_at + grace;
    if presented > state.issued {
        let issued = Rotation { issued: presented, ..*state }.next(now);
        let won = Rotation { previous: presented, floor: presented, issued, rotated_at: now };
        return (RotationOutcome::RolledBack(issued), won);
    }
    if presented > state.floor {
        if in_grace {
            return (RotationOutcome::Young, *state);
        }
        let issued = state.next(now);
        let won = Rotation { previous: presented, floor: state.issued, issued, rotated_at: now };
        return (RotationOutcome::Won(issued), won);
    }
    if presented != state.previous || state.previous == 0 {
        return (RotationOutcome::Reuse, *state);
    }
    match (in_grace, same_client) {
        (true, true) => (RotationOutcome::Echo, *state),
        (true, false) => (RotationOutcome::EchoRefused, *state),
        (false, _) => {
            let issued = state.next(now);
            (RotationOutcome::Again(issued), Rotation { issued, ..*state })
        }
    }
}

#[cfg(test)]
#[path = "../../tests/unit/rotation.rs"]
mod tests;
