//! Names and bytes that make parsers disagree, cookies of siblings, headers that are too large.

use std::time::Duration;

use crate::{
    jar::{RENEWAL, SESSION},
    lab::{Browser, FRESH, Flags, Lab},
    tools::{assert_nobody, now, user_of},
};

/// A request with exactly these Cookie fields.
fn with_fields(lab: &Lab, fields: &[Vec<u8>]) -> Browser {
    fields.iter().fold(lab.browser(), |browser, field| browser.with_field("cookie", field))
}

fn pair(name: &str, browser: &Browser) -> String {
    format!("{name}={}", browser.value(name))
}

/// The victim's cookies as they are, with more before, between and after them.
fn among(victim: &Browser, foreign: &[u8]) -> Vec<Vec<u8>> {
    let (session, token) = (pair(SESSION, victim).into_bytes(), pair(RENEWAL, victim).into_bytes());
    vec![
        [foreign, b"; ", &session, b"; ", &token].concat(),
        [&session, b"; ".as_slice(), foreign, b"; ", &token].concat(),
        [&session, b"; ".as_slice(), &token, b"; ", foreign].concat(),
    ]
}

#[tokio::test]
async fn a18_tossing_from_a_sibling_subdomain() {
    let lab = Lab::start(&Flags::memory());
    let (alice, mallory) = (lab.signed_in("alice").await, lab.signed_in("mallory").await);
    for stale in [false, true] {
        if stale {
            lab.pass(FRESH).await;
        }
        for name in [SESSION, RENEWAL] {
            let rest = pair(if name == SESSION { RENEWAL } else { SESSION }, &alice);
            let (own, tossed) = (pair(name, &alice), pair(name, &mallory));
            for fields in [
                vec![format!("{own}; {tossed}; {rest}")],
                vec![format!("{tossed}; {own}; {rest}")],
                vec![tossed.clone(), format!("{own}; {rest}")],
                vec![format!("{own}; {rest}"), tossed.clone()],
                vec![format!("{own};{own}; {rest}")],
            ] {
                let fields: Vec<Vec<u8>> = fields.into_iter().map(String::into_bytes).collect();
                let told = lab.told("duplicate_cookie");
                let browser = with_fields(&lab, &fields);
                assert_nobody(&browser, "two of one name").await;
                assert_eq!(lab.told("duplicate_cookie"), told + 1);
                let answer = browser.ask("POST", "/data/colour", "green").await;
                assert!(answer.cookies.is_empty(), "nothing is written for nobody");
            }
        }
    }
    for owner in [alice, mallory] {
        assert_eq!(owner.ask("GET", "/data/colour", "").await.status, 404, "neither session was touched");
    }
}

/// Under each of these names the very value that the real name would make somebody.
#[tokio::test]
async fn a19_a20_a21_names_that_only_resemble_ours() {
    let lab = Lab::start(&Flags::memory());
    let victim = lab.signed_in("alice").await;
    let (session, token) = (victim.value(SESSION), victim.value(RENEWAL));
    let spoiled = |name: &str| -> Vec<Vec<u8>> {
        let rest = &name[2..];
        let upper = name.to_ascii_uppercase();
        let mut names: Vec<Vec<u8>> = [
            // A19: encoded.
            format!("%5F_{rest}"),
            format!("%5f%5F{rest}"),
            name.replace("Host", "%48ost"),
            name.replace('-', "%2D"),
            format!("{name}%20"),
            format!("%00{name}"),
            // A20: white space that somebody or other strips.
            format!("\u{2000}{name}"),
            format!("\u{a0}{name}"),
            format!("{name}\u{a0}"),
            format!("\u{3000}{name}"),
            format!("\u{feff}{name}"),
            format!("\u{200b}{name}"),
            format!("{name}\t "),
            // A21: case, no name, more names.
            name.to_ascii_lowercase(),
            upper,
            format!("={name}"),
            format!("=={name}"),
            format!("x={name}"),
            format!("\"{name}\""),
            format!("x,{name}"),
            name.replace("__", ".."),
            format!("{name}.0"),
            name.replace("Host-Http-", "Host-"),
            name.replace("__Host-Http-", ""),
        ]
        .map(String::into_bytes)
        .to_vec();
        for byte in [0x85_u8, 0xa0] {
            names.push([&[byte], name.as_bytes()].concat());
        }
        names
    };
    for (real, value) in [(SESSION, &session), (RENEWAL, &token)] {
        for name in spoiled(real) {
            // `name\t =value`: the blank is a part of the name, since only a pair's ends are stripped.
            let field = [name.as_slice(), b"=", value.as_bytes()].concat();
            assert_nobody(&with_fields(&lab, std::slice::from_ref(&field)), &String::from_utf8_lossy(&name))
                .await;
            // Beside the real ones it changes nothing.
            for fields in among(&victim, &field) {
                let who = user_of(&with_fields(&lab, &[fields])).await;
                assert_eq!(who.as_deref(), Some("alice"), "beside {}", String::from_utf8_lossy(&name));
            }
        }
    }
    assert!(lab.told("cookie_near_miss") > 10, "somebody is told");
}

#[tokio::test]
async fn a22_a_cookie_sandwich() {
    let lab = Lab::start(&Flags::memory());
    let victim = lab.signed_in("alice").await;
    let (session, token) = (pair(SESSION, &victim), pair(RENEWAL, &victim));
    // Old rules would read one quoted value from the first quote to the last, and hand it to whoever reflects `a`.
    for field in [
        format!("$Version=1; a=\"x; {session}; {token}; b=\""),
        format!("$Version=\"1\"; a=\"x; {session}; {token}; b=\"; $Path=/"),
    ] {
        let answer = with_fields(&lab, &[field.into_bytes()]).ask("GET", "/", "").await;
        assert_eq!(answer.user().as_deref(), Some("alice"), "by today's rules two honest pairs");
        assert!(
            !answer.body.contains(&victim.value(SESSION)) && !answer.body.contains(&victim.value(RENEWAL))
        );
    }
    let quoted = format!("$Version=1; {SESSION}=\"{}\"", victim.value(SESSION));
    assert_nobody(&with_fields(&lab, &[quoted.into_bytes()]), "a quoted value").await;
}

#[tokio::test]
async fn a23_an_invalid_byte_spoils_its_own_cookie_alone() {
    let lab = Lab::start(&Flags::memory());
    let victim = lab.signed_in("alice").await;
    for foreign in [
        &b"x=\xff"[..],
        b"x=%FF",
        b"\xff\xfe=y",
        b"x=\xc3\x28",
        b"x=\t\t",
        b"x",
        b"",
        b";;;",
        b"=",
        b"==",
        b"x=\"",
        b"x=a,b",
        b"x=\\",
        b"x={\"a\":1}",
        b"\xe2\x80\x80=1",
    ] {
        for fields in among(&victim, foreign) {
            let answer = with_fields(&lab, &[fields]).ask("GET", "/", "").await;
            assert_eq!(answer.user().as_deref(), Some("alice"), "{foreign:?}");
            assert!(answer.cookies.is_empty());
        }
    }
    // Control characters end at the HTTP server; whatever it says, nobody is let in by it and it goes on.
    for byte in [0_u8, 1, 0x0b, 0x1f, 0x7f, b'\r'] {
        let mut request =
            b"GET / HTTP/1.1\r\nHost: app.site.test\r\nConnection: close\r\nCookie: x=".to_vec();
        request.push(byte);
        request.extend_from_slice(format!("; {}\r\n\r\n", pair(SESSION, &victim)).as_bytes());
        if let Some((status, _)) = lab.raw(&request) {
            assert!(status == 400 || status == 200, "{byte:#x}: {status}");
        }
        assert_eq!(user_of(&victim).await.as_deref(), Some("alice"));
    }
}

/// A sibling has pushed one of the two out of the browser's jar.
#[tokio::test]
async fn a24_one_of_the_two_cookies_is_missing() {
    let lab = Lab::start(&Flags::memory());
    let mut victim = lab.signed_in("alice").await;
    let without_token = victim.holding(Some(&victim.value(SESSION)), None);
    assert_eq!(user_of(&without_token).await.as_deref(), Some("alice"), "until it is stale");
    lab.pass(FRESH).await;
    let answer = assert_nobody(&without_token, "then nobody").await;
    assert!(answer.cookies.is_empty(), "and nothing is cleared");
    assert_eq!(without_token.ask("GET", "/recent", "").await.status, 401);
    let mut without_session = victim.holding(None, Some(&victim.value(RENEWAL)));
    let answer = without_session.visit("GET", "/", "").await;
    assert_eq!(answer.user().as_deref(), Some("alice"), "the token renews");
    assert!(answer.cookies.sets(SESSION).is_some() && answer.cookies.sets(RENEWAL).is_some());
    victim.take(&answer);
    assert_eq!(victim.who().await.as_deref(), Some("alice"));
}

#[tokio::test]
async fn a26_cookies_that_are_too_large() {
    let lab = Lab::start(&Flags::memory());
    let victim = lab.signed_in("alice").await;
    let own = format!("{}; {}", pair(SESSION, &victim), pair(RENEWAL, &victim));
    let long = "A".repeat(4097);
    for field in [
        format!("{SESSION}={long}"),
        format!("{RENEWAL}={long}"),
        format!("{SESSION}={}", "A".repeat(60_000)),
        format!("{SESSION}={}{long}", victim.value(SESSION)),
    ] {
        assert_nobody(&with_fields(&lab, &[field.into_bytes()]), "too long").await;
    }
    // Ten thousand cookies of others, and names without a value: only the cost of looking.
    for foreign in ["a=b; ".repeat(10_000), "x; ".repeat(20_000), format!("{SESSION}; ").repeat(2_000)] {
        let browser = with_fields(&lab, &[format!("{foreign}{own}").into_bytes()]);
        let begun = now();
        assert_eq!(user_of(&browser).await.as_deref(), Some("alice"));
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }
    let mut request = b"GET / HTTP/1.1\r\nHost: app.site.test\r\nConnection: close\r\nCookie: ".to_vec();
    request.extend_from_slice("a=b; ".repeat(220_000).as_bytes());
    request.extend_from_slice(b"\r\n\r\n");
    if let Some((status, _)) = lab.raw(&request) {
        assert!(matches!(status, 400 | 431), "a header of a MiB: {status}");
    }
    assert_eq!(user_of(&victim).await.as_deref(), Some("alice"), "it goes on");
    // What leaves is never too large (`Lines` looks at every line); what would be is refused, and nothing is set.
    let user = "u".repeat(255);
    let mut browser = lab.browser();
    let answer = browser.visit("POST", "/login", &format!("user={user}&role={}", "r".repeat(1000))).await;
    assert_eq!(answer.status, 204);
    assert_eq!(browser.who().await, Some(user));
    for form in [format!("user={}", "u".repeat(300)), format!("user=alice&role={}", "r".repeat(2000))] {
        let answer = lab.browser().ask("POST", "/login", &form).await;
        assert_eq!(answer.status, 422);
        assert!(answer.cookies.is_empty());
    }
}

#[tokio::test]
async fn a27_chunks_and_look_alikes() {
    let lab = Lab::start(&Flags::memory());
    let victim = lab.signed_in("alice").await;
    let value = victim.value(SESSION);
    let (start, end) = value.split_at(value.len() / 2);
    let chunks = format!("{SESSION}=chunks-2; {SESSION}.0={start}; {SESSION}.1={end}");
    assert_nobody(&with_fields(&lab, &[chunks.into_bytes()]), "a value in chunks").await;
    assert_nobody(&with_fields(&lab, &[format!("{SESSION}=chunks-99999999").into_bytes()]), "a bomb").await;
    let mut many = String::new();
    for number in 0..10_000 {
        many.push_str(&format!("{SESSION}.{number}=A; "));
    }
    let begun = now();
    assert_nobody(&with_fields(&lab, &[many.clone().into_bytes()]), "look-alikes alone").await;
    let browser = with_fields(&lab, &[format!("{many}{}", pair(SESSION, &victim)).into_bytes()]);
    assert_eq!(user_of(&browser).await.as_deref(), Some("alice"), "look-alikes are no cookies of ours");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a29_header_injection() {
    let lab = Lab::start(&Flags::memory());
    for evil in [
        "%0D%0ASet-Cookie:%20evil=1",
        "%0ASet-Cookie:%20evil=1",
        "%00",
        "a%3B%20Domain=example.com",
        "a%3B%20Path=/x",
        "%E2%80%A8",
        "%1b[31m",
        "%22%3E%3Cscript%3E",
    ] {
        // As user, as claim, as the name of a value, as a handle, as a path.
        let mut browser = lab.browser();
        let answer = browser.visit("POST", "/login", &format!("user={evil}&role={evil}")).await;
        assert!(answer.status == 204 || answer.status == 422, "{evil}: {}", answer.status);
        for (method, path) in [
            ("POST", format!("/data/{evil}")),
            ("GET", format!("/data/{evil}")),
            ("DELETE", format!("/sessions/{evil}")),
            ("GET", format!("/?next={evil}")),
        ] {
            let answer = browser.visit(method, &path, "x").await;
            assert!(answer.status.as_u16() < 500, "{method} {path}: {}", answer.status);
            for (name, value) in &answer.headers {
                // Set-Cookie lines have been looked at whole by `Lines`.
                assert!(!value.as_bytes().windows(4).any(|part| part == b"evil"), "{name}: {value:?}");
            }
            assert!(!answer.headers.contains_key("evil"));
        }
    }
    let log = lab.log();
    let is_plain = |line: &str| line.chars().all(|c| !c.is_control() && c != '\u{2028}');
    assert!(log.lines().all(is_plain), "no user's text breaks a line of the log");
    assert!(!log.contains("evil"));
}
