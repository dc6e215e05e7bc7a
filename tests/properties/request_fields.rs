//! The fields that say where a request comes from and whom it is for: whatever stands in them, nothing fails, and no foreign
//! Origin, Host or scheme reaches a session (attacks A25, A31, A32, A35, A54).

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use super::site::{self, ORIGIN, SESSION, USER_AGENT};

/// The first byte says which method, the rest are fields, one below the other: a letter for the name, then the value.
pub fn check(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    let method = match kind % 4 {
        0 => Method::GET,
        1 => Method::POST,
        2 => Method::CONNECT,
        _ => Method::DELETE,
    };
    let mut headers = HeaderMap::new();
    headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
    site::with(|site| {
        let cookie = format!("{SESSION}={}", site.session);
        headers.insert(header::COOKIE, HeaderValue::from_str(&cookie).unwrap());
        for line in data.split(|byte| *byte == b'\n').take(12) {
            let Some((letter, value)) = line.split_first() else { continue };
            let Ok(value) = HeaderValue::from_bytes(value) else { continue };
            headers.append(NAMES[usize::from(*letter) % NAMES.len()], value);
        }
        let (status, ran, user) = site.send(method.clone(), headers.clone());
        assert!(matches!(status, StatusCode::OK | StatusCode::FORBIDDEN), "{status}");
        let values = |name| headers.get_all(name).iter().map(HeaderValue::as_bytes).collect::<Vec<_>>();
        let origins = values("origin");
        let is_own = origins == [ORIGIN.as_bytes()];
        if method != Method::GET && !is_own {
            let falls_back = origins.is_empty() || origins == [b"null"];
            assert!(!ran || (falls_back && values("sec-fetch-site") == [b"same-origin"]), "{headers:?}");
        }
        if user.is_some() {
            let (forwarded, hosts) = (values("x-forwarded-host"), values("host"));
            let stated = forwarded.last().or_else(|| hosts.first()).copied();
            let host = stated.map(|host| {
                host.rsplit(|byte| *byte == b',').next().unwrap().trim_ascii().to_ascii_lowercase()
            });
            let own: [&[u8]; 2] = [b"app.example.com", b"app.example.com:443"];
            assert!(host.is_none_or(|host| own.contains(&host.as_slice())), "{headers:?}");
            let scheme = values("x-forwarded-proto");
            let plain = scheme.last().and_then(|scheme| scheme.rsplit(|byte| *byte == b',').next());
            assert!(
                !plain.is_some_and(|scheme| scheme.trim_ascii().eq_ignore_ascii_case(b"http")),
                "{headers:?}"
            );
        }
    });
}

const NAMES: [&str; 12] = [
    "host",
    "origin",
    "sec-fetch-site",
    "sec-fetch-mode",
    "sec-fetch-dest",
    "upgrade",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "forwarded",
    "cookie",
    "sec-ch-ua",
];
