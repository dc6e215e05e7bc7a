//! Times, and lengths of time, as a person would say them.

use std::time::Duration;

use time::OffsetDateTime;

/// `30 November 2026, 19:05 UTC`. Without scripts nobody knows the reader's time zone, so it says which one it means.
pub(crate) fn instant(at: OffsetDateTime) -> String {
    let at = at.to_utc();
    format!("{} {} {}, {:02}:{:02} UTC", at.day(), at.month(), at.year(), at.hour(), at.minute())
}

/// The same for machines: `2026-11-30T19:05:09Z`.
pub(crate) fn instant_for_machines(at: OffsetDateTime) -> String {
    let at = at.to_utc();
    let date = at.date();
    format!("{date}T{:02}:{:02}:{:02}Z", at.hour(), at.minute(), at.second())
}

/// `30 minutes`, in the largest unit that fits evenly.
pub(crate) fn span(length: Duration) -> String {
    const UNITS: [(u64, &str); 3] = [(24 * 60 * 60, "day"), (60 * 60, "hour"), (60, "minute")];
    let seconds = length.as_secs();
    let unit = UNITS.into_iter().find(|(size, _)| seconds >= *size && seconds.is_multiple_of(*size));
    let (size, name) = unit.unwrap_or((1, "second"));
    count(seconds / size, name)
}

/// `1 visit`, `2 visits`.
pub(crate) fn count(number: u64, name: &str) -> String {
    format!("{number} {name}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_in_the_largest_even_unit() {
        for (seconds, expected) in [
            (0, "0 seconds"),
            (60, "1 minute"),
            (90, "90 seconds"),
            (1_800, "30 minutes"),
            (43_200, "12 hours"),
            (1_209_600, "14 days"),
        ] {
            assert_eq!(span(Duration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn instants_with_leading_zeros() {
        let at = OffsetDateTime::UNIX_EPOCH + Duration::from_secs(3_900);
        assert_eq!(instant(at), "1 January 1970, 01:05 UTC");
        assert_eq!(instant_for_machines(at), "1970-01-01T01:05:00Z");
    }
}
