//! The lifetimes of a session.

use std::{fmt, time::Duration};

/// How long things last. Whole milliseconds count; all are checked when the layer is built.
///
/// | | default | why |
/// |---|---|---|
/// | `fresh` | 5 min | how long a copied session cookie works at most, and how often a session costs a store call |
/// | `grace` | 30 s | how long the token before the last still counts as a race of two tabs, not as a lost answer |
/// | `idle` | 30 min | silence that ends a session, counted from its last renewal (OWASP: 15-30 min at low risk) |
/// | `absolute` | 12 h | the end, whatever the activity (NIST SP 800-63B AAL3) |
/// | `remembered_idle` | 14 days | `idle` for a session whose user asked to be remembered |
/// | `remembered_absolute` | 30 days | `absolute` for such a session (NIST SP 800-63B AAL1) |
///
/// A session renews when it is used and its cookie is no longer fresh, so it ends after `idle - fresh` to `idle` of silence:
/// 25 to 30 minutes by default.
///
/// The second pair also holds for sessions that are bound to a device: without its key nobody prolongs them. What names them
/// `remembered` means both. The session cookie of such a session counts for `fresh + grace`: the browser refreshes it after
/// `fresh`, and requests that are under way then carry the one before.
///
/// `2 × grace ≤ fresh < idle ≤ absolute` must hold, for both pairs, and nothing lasts longer than 400 days, where
/// browsers cut a cookie's life.
///
/// ```
/// # use std::time::Duration;
/// let timeouts = portcullis::Timeouts::default().fresh(Duration::from_secs(120)).idle(Duration::from_secs(900));
/// assert!(timeouts.check().is_ok());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    pub(crate) fresh: Duration,
    pub(crate) grace: Duration,
    pub(crate) idle: Duration,
    pub(crate) absolute: Duration,
    pub(crate) remembered_idle: Duration,
    pub(crate) remembered_absolute: Duration,
}

impl Timeouts {
    /// How long a session cookie is accepted before it must be renewed. Shorter costs more renewals: one store call and
    /// one signature (about 0.5 ms) per session and `fresh`.
    #[must_use]
    pub const fn fresh(mut self, fresh: Duration) -> Self {
        self.fresh = fresh;
        self
    }

    /// How long the previous renewal token still admits a racing request.
    #[must_use]
    pub const fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// How long a session may be silent, counted from its last renewal: keep it several times `fresh`.
    #[must_use]
    pub const fn idle(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self
    }

    /// How long a session lasts at most after its authentication.
    #[must_use]
    pub const fn absolute(mut self, absolute: Duration) -> Self {
        self.absolute = absolute;
        self
    }

    /// `idle` and `absolute` for sessions whose user asked to be remembered.
    #[must_use]
    pub const fn remembered(mut self, idle: Duration, absolute: Duration) -> Self {
        self.remembered_idle = idle;
        self.remembered_absolute = absolute;
        self
    }

    /// Checks that the lifetimes fit together.
    ///
    /// # Errors
    /// With every rule that is broken.
    pub fn check(&self) -> Result<(), Vec<TimeoutsError>> {
        let Self { fresh, grace, .. } = *self;
        let mut errors = Vec::new();
        let mut rule = |holds: bool, error| {
            if !holds {
                errors.push(error);
            }
        };
        rule(!fresh.is_zero(), TimeoutsError::FreshIsZero);
        rule(
            fresh.is_zero() || grace.saturating_mul(2) <= fresh,
            TimeoutsError::GraceTooLong { grace, fresh },
        );
        for remembered in [false, true] {
            let (idle, absolute) = (self.idle_of(remembered), self.absolute_of(remembered));
            rule(fresh < idle, TimeoutsError::FreshTooLong { fresh, idle, remembered });
            rule(idle <= absolute, TimeoutsError::IdleTooLong { idle, absolute, remembered });
            rule(absolute <= MAX_ABSOLUTE, TimeoutsError::AbsoluteTooLong { absolute, remembered });
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// How long a session cookie is accepted, of a session that is bound to a device or not.
    #[must_use]
    pub const fn fresh_of(&self, bound: bool) -> Duration {
        if bound { self.fresh.saturating_add(self.grace) } else { self.fresh }
    }

    /// The idle timeout of a session, remembered or not.
    #[must_use]
    pub const fn idle_of(&self, remembered: bool) -> Duration {
        if remembered { self.remembered_idle } else { self.idle }
    }

    /// The absolute timeout of a session, remembered or not.
    #[must_use]
    pub const fn absolute_of(&self, remembered: bool) -> Duration {
        if remembered { self.remembered_absolute } else { self.absolute }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        const MINUTE: u64 = 60;
        const HOUR: u64 = 60 * MINUTE;
        const DAY: u64 = 24 * HOUR;
        Self {
            fresh: Duration::from_secs(5 * MINUTE),
            grace: Duration::from_secs(30),
            idle: Duration::from_secs(30 * MINUTE),
            absolute: Duration::from_secs(12 * HOUR),
            remembered_idle: Duration::from_secs(14 * DAY),
            remembered_absolute: Duration::from_secs(30 * DAY),
        }
    }
}

/// A rule that the lifetimes break. `remembered` says which of the two pairs breaks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each field is the setting of that name")]
pub enum TimeoutsError {
    /// `fresh` is zero.
    FreshIsZero,
    /// `2 × grace ≤ fresh` does not hold.
    GraceTooLong { grace: Duration, fresh: Duration },
    /// `fresh < idle` does not hold.
    FreshTooLong { fresh: Duration, idle: Duration, remembered: bool },
    /// `idle ≤ absolute` does not hold.
    IdleTooLong { idle: Duration, absolute: Duration, remembered: bool },
    /// `absolute` is more than 400 days.
    AbsoluteTooLong { absolute: Duration, remembered: bool },
}

impl TimeoutsError {
    /// What to do about it.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::FreshIsZero => "set `fresh` to some minutes; the default is 5",
            Self::GraceTooLong { .. } => {
                "set `grace` (30 s by default) to half of `fresh` or less, so that a thief's stay in it is bounded"
            }
            Self::FreshTooLong { .. } => {
                "set `fresh` well below `idle`: a session is only known to be in use when it renews"
            }
            Self::IdleTooLong { .. } => "set `idle` to `absolute` or less",
            Self::AbsoluteTooLong { .. } => {
                "set `absolute` to 400 days or less: browsers keep no cookie longer"
            }
        }
    }
}

impl fmt::Display for TimeoutsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |remembered: bool| if remembered { "remembered " } else { "" };
        match *self {
            Self::FreshIsZero => f.write_str("`fresh` is zero"),
            Self::GraceTooLong { grace, fresh } => {
                write!(f, "`grace` ({grace:?}) is more than half of `fresh` ({fresh:?})")
            }
            Self::FreshTooLong { fresh, idle, remembered } => {
                write!(f, "`fresh` ({fresh:?}) is not shorter than the {}`idle` ({idle:?})", of(remembered))
            }
            Self::IdleTooLong { idle, absolute, remembered } => {
                let pair = of(remembered);
                write!(f, "the {pair}`idle` ({idle:?}) is longer than the {pair}`absolute` ({absolute:?})")
            }
            Self::AbsoluteTooLong { absolute, remembered } => {
                write!(f, "the {}`absolute` ({absolute:?}) is more than 400 days", of(remembered))
            }
        }
    }
}

impl std::error::Error for TimeoutsError {}

const MAX_ABSOLUTE: Duration = Duration::from_secs(400 * 24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_checked_at_its_edge() {
        let seconds = Duration::from_secs;
        let base =
            Timeouts::default().fresh(seconds(60)).grace(seconds(30)).idle(seconds(61)).absolute(seconds(61));
        assert_eq!(base.check(), Ok(()));
        assert_eq!(Timeouts::default().check(), Ok(()));
        let long = seconds(400 * 24 * 3600 + 1);
        for (timeouts, fault) in [
            (
                base.grace(Duration::from_millis(30_001)),
                "`grace` (30.001s) is more than half of `fresh` (60s)",
            ),
            (base.idle(seconds(60)), "`fresh` (60s) is not shorter than the `idle` (60s)"),
            (
                base.remembered(seconds(60), seconds(90)),
                "`fresh` (60s) is not shorter than the remembered `idle` (60s)",
            ),
            (
                base.absolute(Duration::from_millis(60_999)),
                "the `idle` (61s) is longer than the `absolute` (60.999s)",
            ),
            (
                base.remembered(seconds(90), seconds(89)),
                "the remembered `idle` (90s) is longer than the remembered `absolute` (89s)",
            ),
            (base.absolute(long), "the `absolute` (34560001s) is more than 400 days"),
            (
                base.remembered(seconds(90), long),
                "the remembered `absolute` (34560001s) is more than 400 days",
            ),
            (base.fresh(seconds(0)), "`fresh` is zero"),
        ] {
            let faults: Vec<String> = timeouts.check().unwrap_err().iter().map(ToString::to_string).collect();
            assert_eq!(faults, [fault], "{timeouts:?}");
            assert!(timeouts.check().unwrap_err().iter().all(|error| error.remedy().starts_with("set `")));
        }
        let all = base.fresh(seconds(100)).grace(seconds(100)).idle(seconds(90)).absolute(seconds(80));
        assert_eq!(all.check().unwrap_err().len(), 3);
    }
}
