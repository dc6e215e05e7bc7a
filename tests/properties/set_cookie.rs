//! The Set-Cookie line: whatever the builder emits, a browser stores as it was meant and a removal removes; and the
//! reader of lines, which is the reference user agent so far, takes any bytes (attacks A26, A29, A30, A33).

use std::time::Duration;

use portcullis::{
    SameSite,
    cookie::{CookieDomain, Origin, Scope, SetCookie},
};

use super::user_agent::{self, Place, Profile, UserAgent, Way};

/// The first byte says what the others are: a line for the reader, or what the builder is to make a line of.
pub fn check(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    if kind % 2 == 0 { read(data) } else { build(*kind, data) }
}

fn read(line: &[u8]) {
    let mut browser = UserAgent::new(NOW, Profile::Layered);
    if browser.store(line, PLACE, Way::HTTP).is_ok() {
        let [kept] = browser.all() else { panic!("one line is one cookie") };
        assert!(kept.name.len() + kept.value.len() <= 4096);
        // What is sent is read back as the same by a server that reads it plainly.
        let field = browser.clone().cookie_string(PLACE, false);
        assert!(!field.contains(&b';') && !field.iter().any(|byte| *byte < 0x20 && *byte != b'\t'));
    }
    let _ = user_agent::parse_date(line);
}

fn build(kind: u8, data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut parts = text.splitn(5, '\n');
    let mut part = || parts.next().unwrap_or_default();
    let (base, value, path, domain, seconds) = (part(), part(), part(), part(), part());
    let origin = Origin::parse("https://app.example.com").expect("an origin");
    let domain = CookieDomain::new(domain, &origin).ok();
    let scope = match kind / 2 % 5 {
        0 => Scope::HostHttp,
        1 => Scope::Host,
        2 => Scope::Embedded,
        3 => Scope::Localhost,
        _ => Scope::Secure { domain, path: path.into() },
    };
    let same_site = if kind & 0x80 == 0 { SameSite::Lax } else { SameSite::Strict };
    let stated = user_agent::SameSite::from_scope(&scope, same_site);
    let path = if let Scope::Secure { path, .. } = &scope { path.clone() } else { "/".into() };
    let Ok(mut cookie) = SetCookie::new(base, scope, same_site, value) else { return };
    let mut max_age = None;
    if let Ok(number) = seconds.parse() {
        let Ok(with) = cookie.clone().max_age(Duration::from_secs(number)) else { return };
        (cookie, max_age) = (with, Some(number));
    }
    let line = cookie.to_string();
    assert!(
        line.len() < 4096 && line.is_ascii() && !line.bytes().any(|byte| byte.is_ascii_control()),
        "{line}"
    );
    let place = Place { path: &path, ..PLACE };
    let mut browser = UserAgent::new(NOW, Profile::Layered);
    if max_age == Some(0) {
        assert_eq!(browser.store(line.as_bytes(), place, Way::HTTP), Err("expired"), "{line}");
    } else {
        assert_eq!(browser.store(line.as_bytes(), place, Way::HTTP), Ok(()), "{line}");
        let sent = browser.sent(place, false);
        let [kept] = sent.as_slice() else { panic!("{line} is not sent back") };
        assert_eq!(
            (kept.name.as_slice(), kept.value.as_slice()),
            (cookie.name().as_bytes(), value.as_bytes())
        );
        assert_eq!(kept.same_site, stated, "{line}");
        assert!(browser.sent(place, true).is_empty(), "a script sees {line}");
    }
    let removal = cookie.removal().to_string();
    assert_eq!(browser.store(removal.as_bytes(), place, Way::HTTP), Err("expired"), "{removal}");
    assert!(browser.all().is_empty(), "{removal} removes nothing");
}

impl user_agent::SameSite {
    fn from_scope(scope: &Scope, same_site: SameSite) -> Self {
        match (scope, same_site) {
            (Scope::Embedded, _) => Self::None,
            (_, SameSite::Strict) => Self::Strict,
            _ => Self::Lax,
        }
    }
}

const NOW: i64 = 1_800_000_000;
const PLACE: Place<'_> = Place { scheme: "https", host: "app.example.com", path: "/" };
