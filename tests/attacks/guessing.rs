//! What an attacker learns by counting, measuring and comparing.

use std::{collections::HashSet, time::Duration};

use base64_simd::URL_SAFE_NO_PAD as BASE64;
use http::{HeaderMap, header};
use sha2::{Digest as _, Sha256};
use sqlx::{Connection as _, SqliteConnection};

use crate::{
    forge::Forger,
    jar::{RENEWAL, SESSION},
    lab::{Answer, Browser, FRESH, Flags, GRACE, IDLE, Lab},
    scratch::Scratch,
    tools::{ORIGIN, Pair, now, user_of},
};

/// The nonces of session cookies and of the sealed ids in tokens, over two instances with the same keys and a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a47_no_nonce_comes_twice() {
    let scratch = Scratch::new();
    let flags = Flags { keys: Some(Lab::new_keys()), ..Flags::sqlite(&scratch.file("sessions.db")) };
    let mut nonces = HashSet::new();
    let mut sealed = 0;
    for _restart in 0..2 {
        let labs = [Lab::start(&flags), Lab::start(&flags)];
        for lab in &labs {
            let mut browser = lab.signed_in("alice").await;
            for number in 0..400 {
                // Each sets a cookie that is sealed anew.
                let answer = browser.visit("POST", "/claims", &format!("role=r{number}")).await;
                let value = answer.cookies.sets(SESSION).expect("a new cookie");
                nonces.insert(BASE64.decode_to_vec(value).unwrap()[5..29].to_vec());
                sealed += 1;
            }
            for _ in 0..20 {
                let token = lab.signed_in("bob").await.value(RENEWAL);
                let claims: serde_json::Value = serde_json::from_str(&Forger::claims_of(&token)).unwrap();
                nonces.insert(BASE64.decode_to_vec(claims["ses"].as_str().unwrap()).unwrap()[5..29].to_vec());
                sealed += 1;
            }
        }
    }
    assert_eq!(nonces.len(), sealed);
}

/// All that an answer shows but the date.
fn shown(answer: &Answer) -> (u16, HeaderMap, String) {
    let mut headers = answer.headers.clone();
    headers.remove(header::DATE);
    (answer.status.as_u16(), headers, answer.body.clone())
}

fn changed(value: &str, at: usize) -> String {
    let mut bytes = value.as_bytes().to_vec();
    bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
    String::from_utf8(bytes).unwrap()
}

/// Malformed, of an unknown key and with a wrong MAC look alike; so do expired, revoked, used up and unknown.
#[tokio::test]
async fn a49_refusals_look_alike() {
    let lab = Lab::start(&Flags::memory());
    let fresh = lab.signed_in("alice").await;
    let (session, token) = (fresh.value(SESSION), fresh.value(RENEWAL));
    let mut revoked = lab.signed_in("bob").await;
    let revoked_copy = revoked.clone();
    revoked.visit("POST", "/logout", "").await;
    let expired = lab.signed_in("carol").await;
    lab.pass(IDLE).await;
    let fresh_again = lab.signed_in("dave").await;
    let mut revoked_now = lab.signed_in("erin").await;
    let revoked_fresh = revoked_now.clone();
    revoked_now.visit("POST", "/logout", "").await;
    let nobody = lab.browser();
    let mut superseded = lab.signed_in("frank").await;
    let superseded_token = superseded.with_token_alone();
    superseded.visit("POST", "/reauthenticate", "").await;
    let mut renewed = lab.signed_in("grace").await;
    let used_up = renewed.with_token_alone();
    for _ in 0..2 {
        lab.pass(FRESH).await;
        renewed.who().await;
    }
    let mut moved = lab.signed_in("heidi").await;
    moved.user_agent = Some("curl/8.0");
    let unknown_key = {
        let mut bytes = BASE64.decode_to_vec(fresh_again.value(SESSION)).unwrap();
        bytes[1] ^= 1;
        BASE64.encode_to_string(bytes)
    };
    let cases: Vec<(&str, Browser)> = vec![
        ("no cookie", nobody.clone()),
        ("malformed", nobody.holding(Some("A"), Some("A"))),
        ("bad MAC of the cookie", nobody.holding(Some(&changed(&session, 200)), None)),
        ("bad tag of the cookie", nobody.holding(Some(&changed(&session, session.len() - 5)), None)),
        ("unknown key", nobody.holding(Some(&unknown_key), None)),
        ("bad MAC of the token", nobody.holding(None, Some(&changed(&token, 300)))),
        ("bad signature", nobody.holding(None, Some(&changed(&token, token.len() - 5)))),
        ("revoked, stale", revoked_copy.clone()),
        ("revoked, its token", revoked_copy.holding(None, Some(&revoked_copy.value(RENEWAL)))),
        ("revoked, fresh", revoked_fresh),
        ("expired", expired.clone()),
        ("expired, its token", expired.holding(None, Some(&expired.value(RENEWAL)))),
        ("superseded", superseded_token),
        ("used up", used_up),
        ("from another browser", moved.clone()),
        ("from another browser, its token", moved.with_token_alone()),
    ];
    for path in ["/", "/recent", "/sessions", "/data/x"] {
        let expected = shown(&nobody.ask("GET", path, "").await);
        for (what, browser) in &cases {
            assert_eq!(shown(&browser.ask("GET", path, "").await), expected, "{what} at {path}");
        }
    }
    assert_eq!(user_of(&fresh_again).await.as_deref(), Some("dave"));
}

/// Refusals without the store differ by less than a signature or a store call would take: medians over one connection
/// each, interleaved; `A49_ROUNDS=10000` takes more. (What is authentic costs a signature, and only who has it learns that.)
#[tokio::test]
async fn a49_refusals_take_alike() {
    let lab = Lab::start(&Flags::memory());
    let browser = lab.signed_in("alice").await;
    let (session, token) = (browser.value(SESSION), browser.value(RENEWAL));
    let unknown = {
        let mut bytes = BASE64.decode_to_vec(&session).unwrap();
        bytes[1] ^= 1;
        BASE64.encode_to_string(bytes)
    };
    let fields = [
        format!("{SESSION}={}", changed(&session, 200)),
        format!("{SESSION}={}", changed(&session, session.len() - 5)),
        format!("{SESSION}={unknown}"),
        format!("{SESSION}={}", "A".repeat(session.len())),
        format!("{RENEWAL}={}", changed(&token, 300)),
        format!("{RENEWAL}={}", "A".repeat(token.len())),
    ];
    let rounds = std::env::var("A49_ROUNDS").ok().and_then(|number| number.parse().ok()).unwrap_or(300);
    let medians = medians(&lab, &fields, rounds);
    eprintln!("medians of {rounds} requests each: {medians:?}");
    let (least, most) = (medians.iter().min().unwrap(), medians.iter().max().unwrap());
    assert!(*most - *least < Duration::from_millis(2), "{medians:?}");
}

/// What a token says of the id is hashed once more before it is looked up, with the site's name: an attacker who tries
/// beginnings of ids learns nothing from the time a lookup takes, because he does not choose what is looked up.
#[tokio::test]
async fn a53_what_is_looked_up_is_a_hash() {
    let pair = Pair::start();
    let mut expected = Vec::new();
    for _ in 0..3 {
        let token = pair.one.signed_in("alice").await.value(RENEWAL);
        let claims: serde_json::Value = serde_json::from_str(&Forger::claims_of(&token)).unwrap();
        let sid = BASE64.decode_to_vec(claims["sid"].as_str().unwrap()).unwrap();
        let hashed = [b"portcullis/1/stored-id\0".as_slice(), ORIGIN.as_bytes(), &[0], &sid].concat();
        expected.push(Sha256::digest(hashed).to_vec());
    }
    let mut connection =
        SqliteConnection::connect(&format!("sqlite://{}", pair.file().display())).await.unwrap();
    let ids = sqlx::query_as("SELECT id FROM portcullis_sessions").fetch_all(&mut connection).await;
    let mut ids: Vec<Vec<u8>> = ids.unwrap().into_iter().map(|(id,)| id).collect();
    ids.sort();
    expected.sort();
    assert_eq!(ids, expected);
}

/// Medians of the time of one request for each Cookie field, interleaved, each over a connection of its own.
fn medians(lab: &Lab, fields: &[String], rounds: usize) -> Vec<Duration> {
    use std::io::{Read as _, Write as _};
    let agent = "Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0";
    let mut taken = vec![Vec::new(); fields.len()];
    let connect = || {
        let stream = std::net::TcpStream::connect(lab.address()).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    };
    let mut streams: Vec<_> = fields.iter().map(|_| connect()).collect();
    for round in 0..rounds {
        for (at, field) in fields.iter().enumerate() {
            let request = format!(
                "GET / HTTP/1.1\r\nHost: app.site.test\r\nUser-Agent: {agent}\r\nCookie: {field}\r\n\r\n"
            );
            let begun = now();
            streams[at].write_all(request.as_bytes()).unwrap();
            let mut answer = [0; 4096];
            let read = streams[at].read(&mut answer).unwrap();
            let elapsed = begun.elapsed();
            assert!(
                answer[..read].starts_with(b"HTTP/1.1 200"),
                "{}",
                String::from_utf8_lossy(&answer[..read])
            );
            if round > 5 {
                taken[at].push(elapsed);
            }
        }
    }
    taken
        .into_iter()
        .map(|mut times| {
            times.sort_unstable();
            times[times.len() / 2]
        })
        .collect()
}

/// The length of a cookie depends on the length of what is in it, and on nothing else: nothing is compressed.
#[tokio::test]
async fn a50_compression() {
    let lab = Lab::start(&Flags::memory());
    let mut lengths = HashSet::new();
    for role in [
        "aaaaaaaaaaaaaaaaaaaaaaaa",
        "aliceclaimsrolealicerole",
        "q7Zx0KpWm3VtR9sLd2NfYb5C",
        "sessionsessionsessionses",
    ] {
        let mut browser = lab.browser();
        browser.visit("POST", "/login", &format!("user=alice&role={role}")).await;
        lengths.insert((browser.value(SESSION).len(), browser.value(RENEWAL).len()));
    }
    assert_eq!(lengths.len(), 1, "{lengths:?}");
}

/// The one thing of an id that can be seen is its hash in the token.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a52_ids_do_not_repeat_and_are_not_biased() {
    let lab = Lab::start(&Flags::memory());
    let mut seen = HashSet::new();
    let mut ones = 0_u32;
    const LOGINS: usize = 300;
    for _ in 0..LOGINS {
        let browser = lab.signed_in("alice").await;
        let claims: serde_json::Value =
            serde_json::from_str(&Forger::claims_of(&browser.value(RENEWAL))).unwrap();
        let sid = BASE64.decode_to_vec(claims["sid"].as_str().unwrap()).unwrap();
        assert_eq!(sid.len(), 32);
        ones += sid.iter().map(|byte| byte.count_ones()).sum::<u32>();
        seen.insert(sid);
        seen.insert(BASE64.decode_to_vec(browser.value(SESSION)).unwrap());
    }
    assert_eq!(seen.len(), 2 * LOGINS);
    // Half of the bits, within six standard deviations.
    let bits = (LOGINS * 256) as f64;
    assert!((f64::from(ones) - bits / 2.0).abs() < 6.0 * (bits / 4.0).sqrt(), "{ones} of {bits}");
}

/// The operating system gives no random bytes for a while: nothing is sealed, nobody is signed in with a poor id, and
/// whoever is signed in stays so.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a52_no_random_bytes() {
    let scratch = Scratch::new();
    let (source, shim, dry) = (scratch.file("dry.c"), scratch.file("dry.so"), scratch.file("dry"));
    std::fs::write(&source, DRY).unwrap();
    let compiled =
        std::process::Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&shim, &source]).status();
    if !compiled.is_ok_and(|status| status.success()) {
        eprintln!("left out: a52_no_random_bytes (it wants a C compiler, `cc`)");
        return;
    }
    // One worker, which has drawn what its hash maps need before the source runs dry: std would end the process.
    let environment = vec![("LD_PRELOAD", shim), ("DRY", dry.clone()), ("TOKIO_WORKER_THREADS", "1".into())];
    let lab = Lab::start(&Flags { environment, ..Flags::memory() });
    let mut fresh = lab.signed_in("alice").await;
    let mut stale = lab.signed_in("bob").await;
    lab.pass(FRESH).await;
    assert_eq!(fresh.who().await.as_deref(), Some("alice"));
    std::fs::write(&dry, "").unwrap();
    let login = lab.browser().ask("POST", "/login", "user=mallory").await;
    assert_eq!(login.status, 503);
    assert!(login.cookies.is_empty());
    assert_eq!(fresh.who().await.as_deref(), Some("alice"), "a fresh cookie needs none");
    let renewal = stale.visit("GET", "/", "").await;
    assert_eq!(renewal.status, 503, "a renewal does");
    assert!(renewal.cookies.is_empty());
    assert_eq!((lab.told("no_randomness"), lab.told("record_tampered")), (1, 0));
    assert!(lab.log().contains("no random bytes"), "and the log says why the renewal failed");
    std::fs::remove_file(&dry).unwrap();
    lab.pass(GRACE).await;
    assert_eq!(stale.who().await.as_deref(), Some("bob"), "nobody was signed out by it");
    assert_eq!(user_of(&lab.signed_in("mallory").await).await.as_deref(), Some("mallory"));
    assert_eq!(lab.told("authn_token_reuse"), 0);
}

/// Stands before the C library's `getrandom`, and fails while the file that `DRY` names exists.
#[cfg(target_os = "linux")]
const DRY: &str = "
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
ssize_t getrandom(void *buffer, size_t length, unsigned flags) {
    const char *dry = getenv(\"DRY\");
    if (dry && access(dry, F_OK) == 0) {
        errno = EIO;
        return -1;
    }
    return syscall(SYS_getrandom, buffer, length, flags);
}
";
