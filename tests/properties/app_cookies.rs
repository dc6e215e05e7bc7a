//! Cookies of the application: whatever a handler writes, what leaves is what a browser keeps as it says, says everything,
//! and obeys (attacks A26, A29, A33).

use portcullis::{
    clock::Timestamp,
    cookie::{CookiePolicy, Origin},
};

use super::{
    site,
    user_agent::{Place, Profile, SameSite, UserAgent, Way},
};

/// The bytes are lines, one below the other.
pub fn check(data: &[u8]) {
    let lines: Vec<Vec<u8>> = data.split(|byte| *byte == b'\n').take(8).map(<[u8]>::to_vec).collect();
    let left = site::with(|site| site.emit(&lines));
    assert!(left.len() <= lines.len());
    let mut browser = UserAgent::new(NOW, Profile::Layered);
    for line in &left {
        let shown = String::from_utf8_lossy(line).into_owned();
        assert!(line.len() < 4096, "{shown}");
        let before = browser.all().len();
        match browser.store(line, PLACE, Way::HTTP) {
            Ok(()) => {
                let kept = browser.all().last().unwrap();
                assert!(matches!(kept.same_site, SameSite::Lax | SameSite::Strict), "{shown}");
                assert_eq!(browser.all().len(), before + 1, "two lines for one cookie: {shown}");
            }
            Err("expired") => {}
            Err(reason) => panic!("a browser refuses {shown}: {reason}"),
        }
        assert!(browser.sent(PLACE, true).is_empty(), "a script sees {shown}");
    }
    // What leaves obeys, so leaving again changes nothing. A sealed value is sealed anew.
    let origin = Origin::parse(site::ORIGIN).unwrap();
    let now = Timestamp::from_seconds(NOW.unsigned_abs());
    let found = CookiePolicy::enforce().lint(&origin, "/", &left, now);
    assert!(found.is_empty(), "{found:?}");
    let sealed = |line: &Vec<u8>| line.starts_with(b"prefs=");
    let plain: Vec<Vec<u8>> = left.into_iter().filter(|line| !sealed(line)).collect();
    assert_eq!(site::with(|site| site.emit(&plain)), plain);
}

const NOW: i64 = 1_800_000_000;
const PLACE: Place<'_> = Place { scheme: "https", host: "app.example.com", path: "/" };
