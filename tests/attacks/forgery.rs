//! Cookies and tokens that somebody made up, cut, pasted or signed otherwise. The forger has the key ring, so that each
//! is refused for the one reason that it is about.

use std::time::Duration;

use base64_simd::URL_SAFE_NO_PAD as BASE64;
use p256::{
    NistP256,
    ecdsa::{Signature, signature::Signer as _},
    elliptic_curve::{Curve as _, bigint::U256},
};

use crate::{
    forge::Forger,
    jar::{RENEWAL, SESSION},
    lab::{Browser, FRESH, Flags, GRACE, IDLE, Lab},
    scratch::Scratch,
    tools::{ORIGIN, Pair, assert_nobody, lab_with_known_keys, user_of},
};

/// A stale session, so that only its token counts; and the claims of that token.
async fn stale(lab: &Lab) -> (Browser, String) {
    let browser = lab.signed_in("alice").await;
    lab.pass(FRESH).await;
    let claims = Forger::claims_of(&browser.value(RENEWAL));
    (browser, claims)
}

async fn assert_refused(lab: &Lab, token: &str, what: &str) {
    assert_nobody(&lab.browser().holding(None, Some(token)), what).await;
}

#[tokio::test]
async fn a38_cut_and_paste_between_names() {
    let (lab, forger) = lab_with_known_keys();
    let browser = lab.signed_in("alice").await;
    let plaintext = forger.opened(&browser.value(SESSION));
    let sealed = |name| forger.sealed(&plaintext, "session-cookie", "session-cookie", name, ORIGIN);
    assert_eq!(user_of(&lab.browser().holding(Some(&sealed(SESSION)), None)).await.as_deref(), Some("alice"));
    for name in [RENEWAL, "__Host-session", "session", "__Host-Http-session ", ""] {
        assert_nobody(&lab.browser().holding(Some(&sealed(name)), None), name).await;
    }
    let swapped = lab.browser().holding(Some(&browser.value(RENEWAL)), Some(&browser.value(SESSION)));
    assert_nobody(&swapped, "each under the other's name").await;
}

/// Two sites with one key ring and one database.
#[tokio::test]
async fn a39_cut_and_paste_between_sites_and_purposes() {
    let keys = Lab::new_keys();
    let scratch = Scratch::new();
    let file = scratch.file("sessions.db");
    let flags = |origin: &str| Flags {
        keys: Some(keys.clone()),
        origin: Some(origin.into()),
        ..Flags::sqlite(&file)
    };
    let there = Lab::start(&flags("https://b.site.test"));
    let here = Lab::start(&flags("https://a.site.test"));
    let browser = here.signed_in("alice").await;
    here.pass(GRACE).await;
    there.pass(GRACE).await;
    let (session, token) = (browser.value(SESSION), browser.value(RENEWAL));
    for pasted in [
        browser.holding(Some(&session), None),
        browser.holding(None, Some(&token)),
        browser.holding(Some(&token), Some(&session)),
        browser.clone(),
    ] {
        assert_nobody(&pasted.at(&there), "another site with the same keys and the same database").await;
    }
    let forger = Forger::new(&keys, "https://a.site.test");
    let claims: serde_json::Value = serde_json::from_str(&Forger::claims_of(&token)).unwrap();
    let sealed_id = claims["ses"].as_str().unwrap();
    assert_nobody(&browser.holding(Some(sealed_id), None), "the id sealed in the token, as session cookie")
        .await;
    let plaintext = forger.opened(&session);
    for (key, purpose, origin) in [
        ("session-cookie", "session-cookie", "https://b.site.test"),
        ("session-cookie", "token-secret", "https://a.site.test"),
        ("token-secret", "session-cookie", "https://a.site.test"),
        ("record", "session-cookie", "https://a.site.test"),
        ("session-cookie", "session-cookie", ""),
    ] {
        let value = forger.sealed(&plaintext, key, purpose, SESSION, origin);
        let refused = browser.holding(Some(&value), None);
        assert_nobody(&refused, &format!("sealed with {key} for {purpose} at {origin:?}")).await;
    }
}

#[tokio::test]
async fn a40_key_ids() {
    let (lab, forger) = lab_with_known_keys();
    let (browser, claims) = stale(&lab).await;
    let fresh = lab.signed_in("alice").await;
    let bytes = BASE64.decode_to_vec(fresh.value(SESSION)).unwrap();
    for id in [*b"\0\0\0\0", *b"\xff\xff\xff\xff", *b"../.", *b"nul\0"] {
        let mut other = bytes.clone();
        other[1..5].copy_from_slice(&id);
        let value = BASE64.encode_to_string(other);
        assert_nobody(&lab.browser().holding(Some(&value), None), &format!("{id:?}")).await;
    }
    let own = forger.id();
    let kids = [
        "00000000",
        "../../etc/passwd",
        "",
        "*",
        "' OR 1=1 --",
        &own.to_ascii_uppercase(),
        &format!(" {own}"),
    ];
    for kid in kids.into_iter().map(str::to_owned).chain(["k".repeat(2500), format!("{own}\\u0000")]) {
        if kid == own {
            continue;
        }
        let header = format!(r#"{{"alg":"ES256","kid":"{kid}","typ":"renewal+jwt"}}"#);
        assert_refused(&lab, &forger.token_under(&header, &claims), &kid).await;
    }
    assert_eq!(user_of(&browser).await.as_deref(), Some("alice"), "her own token is still good");
}

#[tokio::test]
async fn a41_what_was_never_sealed() {
    let (lab, _) = lab_with_known_keys();
    let browser = lab.signed_in("alice").await;
    let json = r#"{"sub":"alice","user":"alice","role":"admin"}"#;
    let signed = format!("{}.{}", BASE64.encode_to_string(json), "A".repeat(43));
    for value in [
        json.replace(';', ""),
        BASE64.encode_to_string(json),
        format!("s:{signed}"),
        signed,
        format!("v0:{}", browser.value(SESSION)),
        format!("{}:{}", browser.value(SESSION), "A".repeat(43)),
        "alice".into(),
        "1".into(),
        "null".into(),
        "true".into(),
    ] {
        assert_nobody(&lab.browser().holding(Some(&value), None), &value).await;
        assert_nobody(&lab.browser().holding(None, Some(&value)), &value).await;
    }
}

#[tokio::test]
async fn a42_truncation() {
    let (lab, _) = lab_with_known_keys();
    let browser = lab.signed_in("alice").await;
    lab.pass(GRACE).await;
    let bytes = BASE64.decode_to_vec(browser.value(SESSION)).unwrap();
    for length in 0..bytes.len() {
        let value = BASE64.encode_to_string(&bytes[..length]);
        assert_nobody(&lab.browser().holding(Some(&value), None), &format!("{length} bytes")).await;
    }
    for start in [1, 4, 5, 29] {
        let value = BASE64.encode_to_string(&bytes[start..]);
        assert_nobody(&lab.browser().holding(Some(&value), None), &format!("without the first {start}"))
            .await;
    }
    let token = browser.value(RENEWAL);
    for length in (0..token.len()).step_by(7).chain(token.len() - 4..token.len()) {
        assert_refused(&lab, &token[..length], &format!("{length} characters")).await;
    }
    for longer in [format!("{token}A"), format!("{token}="), format!("{token}.")] {
        assert_refused(&lab, &longer, "longer").await;
    }
}

#[tokio::test]
async fn a43_other_algorithms() {
    let (lab, forger) = lab_with_known_keys();
    let (browser, claims) = stale(&lab).await;
    let kid = forger.id();
    for header in [
        format!(r#"{{"alg":"none","kid":"{kid}","typ":"renewal+jwt"}}"#),
        format!(r#"{{"alg":"NONE","kid":"{kid}","typ":"renewal+jwt"}}"#),
        format!(r#"{{"alg":"HS256","kid":"{kid}","typ":"renewal+jwt"}}"#),
        format!(r#"{{"alg":"RS256","kid":"{kid}","typ":"renewal+jwt"}}"#),
        format!(r#"{{"alg":"ES384","kid":"{kid}","typ":"renewal+jwt"}}"#),
        format!(r#"{{"alg":"es256","kid":"{kid}","typ":"renewal+jwt"}}"#),
        format!(r#"{{"alg":"ES256","alg":"none","kid":"{kid}","typ":"renewal+jwt"}}"#),
        format!(r#"{{"kid":"{kid}","typ":"renewal+jwt"}}"#),
        format!(r#"{{"alg":"ES256","kid":"{kid}"}}"#),
        format!(r#"{{"alg":"ES256","kid":"{kid}","typ":"JWT"}}"#),
        format!(r#"{{"typ":"renewal+jwt","kid":"{kid}","alg":"ES256"}}"#),
        format!(r#" {{"alg":"ES256","kid":"{kid}","typ":"renewal+jwt"}}"#),
        "{}".into(),
        String::new(),
    ] {
        let token = forger.token_under(&header, &claims);
        assert_refused(&lab, &token, &header).await;
        let (signing_input, _) = token.rsplit_once('.').unwrap();
        assert_refused(&lab, &format!("{signing_input}."), "and without a signature").await;
    }
    // HMAC with the public key as its secret, as a verifier that takes the algorithm from the header would check it.
    let header = format!(r#"{{"alg":"HS256","kid":"{kid}","typ":"renewal+jwt"}}"#);
    let token = forger.token_under(&header, &claims);
    let (signing_input, _) = token.rsplit_once('.').unwrap();
    for key in forger.public_keys() {
        let mac = BASE64.encode_to_string(hmac_sha256(&key, signing_input.as_bytes()));
        assert_refused(&lab, &format!("{signing_input}.{mac}"), "HMAC with the public key").await;
    }
    // And the payload of an honest token under another signature.
    let (honest, _) =
        browser.value(RENEWAL).rsplit_once('.').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    for third in [String::new(), "A".repeat(43), "A".repeat(86), "A".repeat(85), "A".repeat(128)] {
        assert_refused(&lab, &format!("{honest}.{third}"), "another signature").await;
    }
    assert_eq!(user_of(&browser).await.as_deref(), Some("alice"), "none of it used her token up");
}

/// HMAC-SHA256 (RFC 2104).
fn hmac_sha256(key: &[u8], message: &[u8]) -> Vec<u8> {
    use sha2::{Digest as _, Sha256};
    let mut block = [0; 64];
    let key = if key.len() > 64 { Sha256::digest(key).to_vec() } else { key.to_vec() };
    block[..key.len()].copy_from_slice(&key);
    let pad = |byte: u8| block.map(|key| key ^ byte);
    let inner = Sha256::digest([pad(0x36).as_slice(), message].concat());
    Sha256::digest([pad(0x5c).as_slice(), &inner].concat()).to_vec()
}

#[tokio::test]
async fn a44_keys_and_addresses_in_the_header() {
    let (lab, forger) = lab_with_known_keys();
    let (browser, claims) = stale(&lab).await;
    // Whoever followed an address would come here.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/keys", listener.local_addr().unwrap());
    let kid = forger.id();
    let jwk = r#"{"kty":"EC","crv":"P-256","x":"AQ","y":"AQ"}"#;
    for member in [
        format!(r#""jku":"{url}""#),
        format!(r#""x5u":"{url}""#),
        format!(r#""jwk":{jwk}"#),
        r#""x5c":["AAAA"]"#.into(),
        r#""crit":["exp"],"exp":1"#.into(),
        r#""b64":false,"crit":["b64"]"#.into(),
        r#""zip":"DEF""#.into(),
    ] {
        for header in [
            format!(r#"{{"alg":"ES256","kid":"{kid}","typ":"renewal+jwt",{member}}}"#),
            format!(r#"{{{member},"alg":"ES256","kid":"{kid}","typ":"renewal+jwt"}}"#),
        ] {
            assert_refused(&lab, &forger.token_under(&header, &claims), &header).await;
        }
    }
    // A key of the attacker's own, embedded as the header's key and signing under it.
    let own = p256::ecdsa::SigningKey::from_slice(&[7; 32]).unwrap();
    let point = own.verifying_key().to_sec1_point(false);
    let [x, y] = [point.x(), point.y()].map(|part| BASE64.encode_to_string(part.unwrap()));
    let jwk = format!(r#"{{"kty":"EC","crv":"P-256","x":"{x}","y":"{y}"}}"#);
    for header in [
        format!(r#"{{"alg":"ES256","kid":"{kid}","typ":"renewal+jwt","jwk":{jwk}}}"#),
        format!(r#"{{"alg":"ES256","kid":"{kid}","typ":"renewal+jwt"}}"#),
    ] {
        let token = forger.token_under(&header, &claims);
        let (signing_input, _) = token.rsplit_once('.').unwrap();
        let signature: Signature = own.sign(signing_input.as_bytes());
        let token = format!("{signing_input}.{}", BASE64.encode_to_string(signature.to_bytes()));
        assert_refused(&lab, &token, "signed by the attacker's key").await;
    }
    // Nor does a claim lead anywhere.
    let claims = claims.replacen(ORIGIN, &url, 1);
    assert_refused(&lab, &forger.token(&claims), "an issuer that is an address").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(listener.accept().is_err(), "somebody followed an address");
    assert_eq!(user_of(&browser).await.as_deref(), Some("alice"));
}

/// `(r, n − s)` verifies too, so it is the same token: used once with either signature, it is used.
#[tokio::test]
async fn a45_the_twin_of_a_signature() {
    let (lab, _) = lab_with_known_keys();
    let twin = |token: &str| {
        let (signing_input, signature) = token.rsplit_once('.').unwrap();
        let bytes: [u8; 64] = BASE64.decode_to_vec(signature).unwrap().try_into().unwrap();
        let s = U256::from_be_slice(&bytes[32..]);
        let other = NistP256::ORDER.get().wrapping_sub(&s);
        let other = [&bytes[..32], &<[u8; 32]>::from(other.to_be_bytes())].concat();
        assert!(Signature::from_slice(&other).is_ok());
        format!("{signing_input}.{}", BASE64.encode_to_string(other))
    };
    for twin_is_first in [true, false] {
        let alarms = lab.told("authn_token_reuse");
        let mut owner = lab.signed_in("alice").await;
        let (token, other) = (owner.value(RENEWAL), twin(&owner.value(RENEWAL)));
        let (first, second) = if twin_is_first { (other, token) } else { (token, other) };
        lab.pass(FRESH).await;
        let answer = owner.holding(None, Some(&first)).ask("GET", "/", "").await;
        assert!(answer.cookies.sets(RENEWAL).is_some(), "good once");
        owner.take(&answer);
        // Within the grace it is the token before; two renewals later it is a reuse.
        let echo = owner.holding(None, Some(&second)).ask("GET", "/", "").await;
        assert!(echo.cookies.text(RENEWAL).is_none());
        lab.pass(FRESH).await;
        assert_eq!(owner.who().await.as_deref(), Some("alice"));
        assert_refused(&lab, &second, "its twin").await;
        assert_eq!(lab.told("authn_token_reuse"), alarms + 1);
    }
}

#[tokio::test]
async fn a46_signatures_out_of_range() {
    let (lab, _) = lab_with_known_keys();
    let (browser, _) = stale(&lab).await;
    let token = browser.value(RENEWAL);
    let (signing_input, signature) = token.rsplit_once('.').unwrap();
    let honest: [u8; 64] = BASE64.decode_to_vec(signature).unwrap().try_into().unwrap();
    let order: [u8; 32] = NistP256::ORDER.get().to_be_bytes().into();
    let (r, s) = honest.split_at(32);
    let (zero, ones) = ([0; 32], [0xff; 32]);
    let mut one = zero;
    one[31] = 1;
    for [r, s] in [
        [&zero[..], &zero],
        [&zero, s],
        [r, &zero],
        [&order, s],
        [r, &order],
        [&order, &order],
        [&ones, &ones],
        [&one, &one],
        [s, r],
    ] {
        let forged = format!("{signing_input}.{}", BASE64.encode_to_string([r, s].concat()));
        assert_refused(&lab, &forged, &format!("{r:?} {s:?}")).await;
    }
    let der = [&[0x30, 0x44, 0x02, 0x20], r, &[0x02, 0x20], s].concat();
    assert_refused(&lab, &format!("{signing_input}.{}", BASE64.encode_to_string(der)), "in DER").await;
    assert_eq!(user_of(&browser).await.as_deref(), Some("alice"));
}

/// Under two keys of one ring: each value opens under the key it names, and nothing is ever tried under the other.
#[tokio::test]
async fn a48_a_value_meets_one_key() {
    let (old, new) = (Lab::new_keys(), Lab::new_keys());
    let line = |keys: &str| keys.split(';').next().unwrap().to_owned();
    let index = old.split(';').find(|line| line.starts_with("index")).unwrap().to_owned();
    let retired = line(&old).replace(" active ", " retired ");
    let keys = format!("{};{retired};{index}", line(&new));
    let lab = Lab::start(&Flags { keys: Some(keys.clone()), ..Flags::memory() });
    let browser = lab.signed_in("alice").await;
    let (of_new, of_old) = (Forger::new(&keys, ORIGIN), Forger::new(&old, ORIGIN));
    let plaintext = of_new.opened(&browser.value(SESSION));
    let by = |forger: &Forger| forger.session_cookie(&plaintext);
    for value in [by(&of_new), by(&of_old)] {
        assert_eq!(user_of(&lab.browser().holding(Some(&value), None)).await.as_deref(), Some("alice"));
    }
    let id = |value: &str| BASE64.decode_to_vec(value).unwrap()[1..5].to_vec();
    for (value, other) in [(by(&of_new), by(&of_old)), (by(&of_old), by(&of_new))] {
        let mut bytes = BASE64.decode_to_vec(&value).unwrap();
        bytes[1..5].copy_from_slice(&id(&other));
        let value = BASE64.encode_to_string(bytes);
        assert_nobody(&lab.browser().holding(Some(&value), None), "under the other key's id").await;
    }
}

#[tokio::test]
async fn a51_the_clock() {
    let (lab, forger) = lab_with_known_keys();
    let (browser, claims) = stale(&lab).await;
    let json: serde_json::Value = serde_json::from_str(&claims).unwrap();
    let iat = json["iat"].as_u64().unwrap();
    let now = iat + lab.second();
    let issued = |at: u64| claims.replace(&format!("\"iat\":{iat}"), &format!("\"iat\":{at}"));
    for ahead in [600, 60, 30, 8] {
        assert_refused(&lab, &forger.token(&issued(now + ahead)), &format!("{ahead} s ahead")).await;
    }
    // Its own `exp` decides nothing: the stored deadline does, so that a late owner trips the alarm.
    let exp = json["exp"].as_u64().unwrap();
    for past in [1, 30, 61] {
        let mut owner = lab.signed_in("alice").await;
        lab.pass(FRESH).await;
        let claims = Forger::claims_of(&owner.value(RENEWAL));
        let own: serde_json::Value = serde_json::from_str(&claims).unwrap();
        let expired = own["iat"].as_u64().unwrap() + FRESH - past;
        let claims = claims.replace(&format!("\"exp\":{}", own["exp"]), &format!("\"exp\":{expired}"));
        let answer = owner.holding(None, Some(&forger.token(&claims))).ask("GET", "/", "").await;
        assert_eq!(answer.user().as_deref(), Some("alice"), "`exp` {past} s ago");
        owner.take(&answer);
    }
    assert!(exp > iat);
    // Within the leeway it is good.
    let answer = browser.holding(None, Some(&forger.token(&issued(now + 4)))).ask("GET", "/", "").await;
    assert_eq!(answer.user().as_deref(), Some("alice"), "4 s ahead");
    // The stored deadline is what ends a session.
    let owner = lab.signed_in("bob").await;
    lab.pass(IDLE).await;
    assert_nobody(&owner, "after the idle timeout").await;
}

/// Two instances whose clocks are half a minute apart: nobody is signed out by it, and no alarm rings.
#[tokio::test]
async fn a51_instances_with_other_clocks() {
    let pair = Pair::start();
    pair.two.pass(30).await;
    let mut browser = pair.one.signed_in("alice").await;
    for round in 0..6 {
        let lab = if round % 2 == 0 { &pair.two } else { &pair.one };
        let mut there = browser.at(lab);
        assert_eq!(there.who().await.as_deref(), Some("alice"), "round {round}");
        browser.jar = there.jar;
        pair.pass(FRESH / 2).await;
    }
    assert_eq!(pair.one.told("authn_token_reuse") + pair.two.told("authn_token_reuse"), 0);
}

/// Session and token claims that are deep, wide or repeated: read or refused, never a fault.
#[tokio::test]
async fn a28_deep_and_wide_claims() {
    let (lab, forger) = lab_with_known_keys();
    let (browser, claims) = stale(&lab).await;
    let open = claims.strip_suffix('}').unwrap();
    let deep = |n: usize| format!("{open},\"x\":{}{}}}", "[".repeat(n), "]".repeat(n));
    let mut wide = open.to_owned();
    for number in 0..250 {
        wide.push_str(&format!(",\"k{number}\":1"));
    }
    for claims in [
        deep(1),
        deep(100),
        deep(600),
        format!("{wide}}}"),
        format!("{open},\"gen\":1}}"),
        format!("{open},\"sid\":\"AAAA\"}}"),
        claims.replace("\"gen\":", "\"gen\":1e3,\"x\":"),
        claims.replace("\"gen\":", "\"gen\":-"),
        claims.replace("\"iat\":", "\"iat\":99999999999999999999"),
        claims.replace("\"ctx\":{", "\"ctx\":{\"ua\":\"AAAAAAAAAAA\","),
    ] {
        assert_refused(&lab, &forger.token(&claims), &claims).await;
    }
    assert_eq!(user_of(&browser).await.as_deref(), Some("alice"));
    // A body is capped before it is parsed, and a value is the application's own.
    let mut browser = lab.signed_in("alice").await;
    assert_eq!(browser.visit("POST", "/claims", &format!("role={}", "a".repeat(5000))).await.status, 413);
    assert_eq!(browser.visit("POST", "/data/deep", &"[".repeat(4000)).await.status, 204);
    assert_eq!(browser.visit("GET", "/data/deep", "").await.body, "[".repeat(4000));
}
