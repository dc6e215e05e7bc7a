//! Cookies of the application itself: whatever a handler or a library in it writes leaves the site by the site's rules.

use http::StatusCode;

use crate::{
    jar::{RENEWAL, SESSION},
    lab::{Answer, FRESH, Flags, Lab},
    on_every_store,
    user_agent::{Place, Profile, UserAgent, Way},
};

on_every_store!(
    a26_a_cookie_of_the_application_that_is_too_large,
    a29_lines_that_carry_more_than_a_cookie,
    a33_a_cookie_of_the_application_states_same_site,
    a16_a_handler_that_writes_the_session_s_own_cookies,
);

fn lines(answer: &Answer) -> Vec<String> {
    let lines = answer.headers.get_all("set-cookie").iter();
    lines.map(|line| String::from_utf8(line.as_bytes().to_vec()).unwrap()).collect()
}

/// What leaves is kept by a browser as it says, or does not leave.
fn assert_kept(line: &str) {
    let mut browser = UserAgent::new(1_800_000_000, Profile::Layered);
    let place = Place { scheme: "https", host: "app.site.test", path: "/emit" };
    assert_eq!(browser.store(line.as_bytes(), place, Way::HTTP), Ok(()), "{line}");
}

async fn a26_a_cookie_of_the_application_that_is_too_large(lab: Lab) {
    for (length, leaves) in [(3_900, true), (4_094, false), (4_097, false), (8_192, false)] {
        let answer = lab.browser().ask("POST", "/emit", &format!("a={}; Path=/", "x".repeat(length))).await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT);
        assert_eq!(lines(&answer).len(), usize::from(leaves), "{length}");
        assert!(lines(&answer).iter().all(|line| line.len() < 4096));
    }
    assert!(lab.told("cookie_policy") > 0);
}

async fn a29_lines_that_carry_more_than_a_cookie(lab: Lab) {
    let hostile = [
        "a=b\tc; Path=/",
        "a=b c; Path=/",
        "a=\"b; Path=/",
        "=__Host-Http-session=x; Path=/",
        "$Version=1; Path=/",
        "%5F%5FHost-Http-session=x; Path=/",
        "__HOST-a=x; Path=/; Secure",
        "__Host-a=x; Path=/; Domain=site.test; Secure",
        "a=b; Domain=test; Path=/",
        "a=b; Domain=other.test; Path=/",
        "a=b; Path=/\\x",
    ];
    for line in hostile {
        let answer = lab.browser().ask("POST", "/emit", line).await;
        assert_eq!(lines(&answer), [""; 0], "{line}");
    }
    assert!(lab.told("cookie_policy") >= 6, "once for each name and rule");
    assert!(!lab.log().contains("a=b"), "a value is in no log");
}

/// Whoever leaves SameSite out gets two minutes of cross-site POSTs in one browser and for ever in others.
async fn a33_a_cookie_of_the_application_states_same_site(lab: Lab) {
    let mut alice = lab.signed_in("alice").await;
    for renewing in [false, true] {
        if renewing {
            lab.pass(FRESH).await;
        }
        let all = "a=1\nb=2; SameSite=Foo\nc=3; SameSite=None; Secure\nd=4; SameSite=Strict\n__Host-e=5\nf=6; Domain=site.test";
        let answer = alice.visit("POST", "/emit", all).await;
        assert_eq!(lines(&answer).len(), if renewing { 8 } else { 6 });
        for line in lines(&answer) {
            assert!(line.contains("; SameSite=Lax") || line.contains("; SameSite=Strict"), "{line}");
            assert!(line.contains("; Secure") && line.contains("; HttpOnly"), "{line}");
            assert_kept(&line);
        }
    }
}

/// A handler that somebody has talked into setting a session: fixation by way of the application.
async fn a16_a_handler_that_writes_the_session_s_own_cookies(lab: Lab) {
    let mut alice = lab.signed_in("alice").await;
    let mallory = lab.signed_in("mallory").await;
    for name in [SESSION, RENEWAL] {
        let planted = format!("{name}={}; Path=/; Secure; HttpOnly; SameSite=Lax", mallory.value(name));
        for line in
            [planted.clone(), planted.to_uppercase(), format!("{name}=; Path=/; Secure; HttpOnly; Max-Age=0")]
        {
            let answer = alice.visit("POST", "/emit", &line).await;
            assert_eq!(lines(&answer), [""; 0], "{line}");
        }
    }
    assert_eq!(alice.who().await.as_deref(), Some("alice"));
}

/// Where the policy only reports, or is off, the session's own names are guarded all the same.
#[tokio::test]
async fn a16_the_session_s_own_cookies_whatever_the_policy() {
    for policy in ["report", "off"] {
        let lab = Lab::start(&Flags { arguments: vec!["--policy".into(), policy.into()], ..Flags::memory() });
        let answer = lab.browser().ask("POST", "/emit", &format!("a=b\n{SESSION}=x; Path=/; Secure")).await;
        assert_eq!(lines(&answer), ["a=b"], "{policy}");
    }
}
