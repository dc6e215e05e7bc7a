//! The browser family and the platform in a User-Agent string.
//!
//! Coarse on purpose. Versions change while a session lives and whole strings change with them (Chrome alone raises its version every four weeks), so
//! only what a person would call another browser or another computer counts.

/// The browser family, as a person would name it; for a program, its first product token.
pub(super) fn family(user_agent: &str) -> &str {
    // Order matters: nearly every browser also claims to be Chrome and Safari, and Chrome on iOS is called CriOS.
    const FAMILIES: [(&str, &str); 14] = [
        ("Edg/", "Edge"),
        ("EdgA/", "Edge"),
        ("EdgiOS/", "Edge"),
        ("OPR/", "Opera"),
        ("SamsungBrowser/", "Samsung Internet"),
        ("YaBrowser/", "Yandex"),
        ("Vivaldi/", "Vivaldi"),
        ("Firefox/", "Firefox"),
        ("FxiOS/", "Firefox"),
        ("HeadlessChrome/", "Chrome"),
        ("Chrome/", "Chrome"),
        ("Chromium/", "Chrome"),
        ("CriOS/", "Chrome"),
        ("Safari/", "Safari"),
    ];
    let known = FAMILIES.iter().find(|(mark, _)| user_agent.contains(mark)).map(|(_, family)| *family);
    known.unwrap_or_else(|| user_agent.split(['/', ' ', '(']).next().unwrap_or_default())
}

/// The platform, as a person would name it; empty where the string names none.
pub(super) fn platform(user_agent: &str) -> &'static str {
    // iPads and iPhones say "like Mac OS X", Android says "Linux".
    const PLATFORMS: [(&str, &str); 8] = [
        ("iPhone", "iOS"),
        ("iPad", "iOS"),
        ("Android", "Android"),
        ("Windows", "Windows"),
        ("Macintosh", "macOS"),
        ("CrOS", "ChromeOS"),
        ("Linux", "Linux"),
        ("FreeBSD", "FreeBSD"),
    ];
    PLATFORMS.iter().find(|(mark, _)| user_agent.contains(mark)).map_or("", |(_, platform)| platform)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_and_platforms() {
        for (user_agent, expected) in [
            (
                "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36",
                ("Chrome", "Linux"),
            ),
            (
                "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/156.0.0.0 Safari/537.36",
                ("Chrome", "Linux"),
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36 Edg/156.0.0.0",
                ("Edge", "Windows"),
            ),
            (
                "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Mobile Safari/537.36",
                ("Chrome", "Android"),
            ),
            ("Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0", ("Firefox", "Linux")),
            (
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15",
                ("Safari", "macOS"),
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/156.0.0.0 Mobile/15E148 Safari/604.1",
                ("Chrome", "iOS"),
            ),
            ("curl/8.5.0", ("curl", "")),
            ("python-requests/2.32", ("python-requests", "")),
            ("", ("", "")),
            ("/", ("", "")),
        ] {
            assert_eq!((family(user_agent), platform(user_agent)), expected, "{user_agent}");
        }
    }
}
