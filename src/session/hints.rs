//! The client hints that Chromium sends with every request to a secure site, and the fingerprints that proxies make.

use std::borrow::Cow;

/// What counts of the three hints: `brand|platform|mobile`. The brand list is shuffled and salted with invented brands on
/// purpose, so only names that are known are looked for; versions are left out, because they change by themselves.
pub(crate) fn hints(brands: &[u8], platform: &[u8], mobile: &[u8]) -> String {
    const BRANDS: [&str; 8] = [
        "Microsoft Edge",
        "Opera",
        "Brave",
        "Vivaldi",
        "Yandex",
        "Samsung Internet",
        "Google Chrome",
        "Chromium",
    ];
    let brands = String::from_utf8_lossy(brands);
    let brand = BRANDS.into_iter().find(|brand| brands.contains(&format!("\"{brand}\""))).unwrap_or_default();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    format!("{brand}|{}|{}", text(platform), text(mobile))
}

/// What counts of a proxy's header. Of a JA4 fingerprint only the TLS version and the hash of the ciphers: the rest changes
/// with resumption, padding and HTTP/3. Of anything else, such as a certificate's digest, every byte.
pub(crate) fn proxy_header(value: &[u8]) -> Cow<'_, [u8]> {
    let mut parts = value.split(|byte| *byte == b'_');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some([b't' | b'q' | b'd', version @ ..]), Some(ciphers), Some(extensions), None)
            if version.len() == 9 && ciphers.len() == 12 && extensions.len() == 12 =>
        {
            Cow::Owned([version.get(..2).unwrap_or_default(), b"_", ciphers].concat())
        }
        _ => Cow::Borrowed(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brands_are_told_whatever_their_order_version_and_filler() {
        let of = |brands: &str| hints(brands.as_bytes(), b"\"Linux\"", b"?0");
        let chrome = of(r#""Google Chrome";v="156", "Chromium";v="156", "Not.A/Brand";v="24""#);
        assert_eq!(chrome, of(r#""Not)A;Brand";v="8", "Chromium";v="157", "Google Chrome";v="157""#));
        assert_eq!(chrome, "Google Chrome|\"Linux\"|?0");
        let edge = of(r#""Microsoft Edge";v="156", "Chromium";v="156", "Not.A/Brand";v="24""#);
        assert_ne!(edge, chrome);
        assert_ne!(hints(b"", b"\"Windows\"", b"?0"), hints(b"", b"\"Android\"", b"?1"));
        assert_eq!(hints(b"\xff", b"\xff", b""), "|\u{fffd}|");
    }

    #[test]
    fn of_ja4_counts_what_a_browser_keeps() {
        let plain = proxy_header(b"t13d1516h2_8daaf6152771_e5627efa2ab1");
        for same in ["t13d1517h1_8daaf6152771_b1ff8ab2d16f", "q13d1516h3_8daaf6152771_e5627efa2ab1"] {
            assert_eq!(proxy_header(same.as_bytes()), plain, "{same}");
        }
        for other in ["t12d1516h2_8daaf6152771_e5627efa2ab1", "t13d1516h2_9daaf6152771_e5627efa2ab1"] {
            assert_ne!(proxy_header(other.as_bytes()), plain, "{other}");
        }
        for whole in ["", "abc", "t13_x_y", "t13d1516h2_8daaf6152771_e5627efa2ab1_z"] {
            assert_eq!(proxy_header(whole.as_bytes()), whole.as_bytes());
        }
    }
}
