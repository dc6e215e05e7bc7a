//! Dates in an Expires attribute: read as browsers read them (RFC 6265bis §5.1.1), written as servers must write them
//! (IMF-fixdate, RFC 9110 §5.6.7).

use time::{Date, Month, OffsetDateTime, format_description::well_known::Rfc2822};

/// The instant that browsers make of `text`; `None` where they ignore it.
pub(super) fn parse(text: &[u8]) -> Option<OffsetDateTime> {
    let is_delimiter =
        |byte: &u8| matches!(byte, b'\t' | b' '..=b'/' | b';'..=b'@' | b'['..=b'`' | b'{'..=b'~');
    let (mut clock, mut day, mut month, mut year) = (None, None, None, None);
    // Each token is taken for the first of the four that is still wanted and that it can be.
    for token in text.split(is_delimiter) {
        if clock.is_none() && time_of(token).is_some() {
            clock = time_of(token);
        } else if day.is_none() && digits(token, 1..=2).is_some() {
            day = digits(token, 1..=2);
        } else if month.is_none() && month_of(token).is_some() {
            month = month_of(token);
        } else if year.is_none() {
            year = digits(token, 2..=4);
        }
    }
    let year = match year? {
        year @ 70..=99 => year + 1900,
        year @ 0..=69 => year + 2000,
        year => year,
    };
    let (hour, minute, second) = clock?;
    let date = Date::from_calendar_date(i32::from(year), month?, u8::try_from(day?).ok()?).ok()?;
    (year >= 1601).then_some(date.with_hms(hour, minute, second).ok()?.assume_utc())
}

/// Whether `text` is `date` in the one form that servers may send.
pub(super) fn is_fixdate(text: &[u8], date: OffsetDateTime) -> bool {
    fixdate(date).is_some_and(|written| written.as_bytes() == text)
}

/// `Tue, 01 Dec 2026 12:00:00 GMT`.
pub(super) fn fixdate(date: OffsetDateTime) -> Option<String> {
    let written = date.format(&Rfc2822).ok()?;
    Some(format!("{} GMT", written.strip_suffix(" +0000")?))
}

fn time_of(token: &[u8]) -> Option<(u8, u8, u8)> {
    let mut parts = token.splitn(3, |byte| *byte == b':');
    let whole = |part: &[u8]| if part.len() <= 2 { digits(part, 1..=2) } else { None };
    let (hour, minute, second) = (whole(parts.next()?)?, whole(parts.next()?)?, parts.next()?);
    let narrow = |number: u16| u8::try_from(number).ok();
    Some((narrow(hour)?, narrow(minute)?, narrow(digits(second, 1..=2)?)?))
}

/// The number that `token` begins with, if it has so many digits and then something else or nothing.
fn digits(token: &[u8], count: std::ops::RangeInclusive<usize>) -> Option<u16> {
    let length = token.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = token.get(..length).filter(|_| count.contains(&length))?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

fn month_of(token: &[u8]) -> Option<Month> {
    const MONTHS: [(&[u8], Month); 12] = [
        (b"jan", Month::January),
        (b"feb", Month::February),
        (b"mar", Month::March),
        (b"apr", Month::April),
        (b"may", Month::May),
        (b"jun", Month::June),
        (b"jul", Month::July),
        (b"aug", Month::August),
        (b"sep", Month::September),
        (b"oct", Month::October),
        (b"nov", Month::November),
        (b"dec", Month::December),
    ];
    let start = token.get(..3)?;
    MONTHS.iter().find(|(name, _)| name.eq_ignore_ascii_case(start)).map(|(_, month)| *month)
}

#[cfg(test)]
#[path = "../../tests/vectors/cookie_dates.rs"]
mod vectors;
