//! Tokens and cookies that are used again: after the grace, within it, after a revocation, after a restart.

use crate::{
    jar::{RENEWAL, SESSION},
    lab::{FRESH, Flags, GRACE, IDLE, Lab},
    on_every_store,
    scratch::Scratch,
    tools::{assert_nobody, user_of},
};

on_every_store!(
    a01_a_copy_in_another_browser,
    a02_a_token_used_twice_before_ends_the_session,
    a02_of_two_siblings_the_second_presented_is_the_alarm,
    a03_a_thief_within_the_grace,
    a06_the_grace_is_not_stretched,
    a07_the_grace_after_a_revocation,
    a11_an_older_cookie_with_other_claims,
    a77_a_copied_token_and_a_new_authentication,
);

const FIREFOX_ON_WINDOWS: &str =
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:153.0) Gecko/20100101 Firefox/153.0";

const CHROME: &str =
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36";

/// All cookies copied to another machine. The unbound part: what is copied from a browser of another family is worth nothing;
/// from the same family it works until it is stale, is told of, and does not get at what wants a recent authentication.
async fn a01_a_copy_in_another_browser(lab: Lab) {
    let mut owner = lab.signed_in("alice").await;
    assert_eq!(owner.ask("GET", "/recent", "").await.status, 200);
    let (mut other, mut like) = (owner.clone(), owner.clone());
    other.user_agent = Some(CHROME);
    like.user_agent = Some(FIREFOX_ON_WINDOWS);
    assert_nobody(&other, "another family").await;
    assert_nobody(&other.with_token_alone(), "another family, the token alone").await;
    assert!(lab.told("session_refused") >= 2);
    assert_eq!(user_of(&like).await.as_deref(), Some("alice"), "the same family on another platform");
    assert_eq!(like.ask("GET", "/recent", "").await.status, 403, "is asked to step up");
    assert!(lab.told("session_context_changed") >= 1, "and is never silent");
    lab.pass(FRESH).await;
    assert_nobody(&other, "another family, stale").await;
    assert_eq!(owner.who().await.as_deref(), Some("alice"), "the owner is not affected");
}

async fn a02_a_token_used_twice_before_ends_the_session(lab: Lab) {
    let mut owner = lab.signed_in("alice").await;
    let first = owner.with_token_alone();
    for _ in 0..2 {
        lab.pass(FRESH).await;
        assert_eq!(owner.who().await.as_deref(), Some("alice"));
    }
    assert_nobody(&first, "the first token, two renewals later").await;
    assert_eq!(lab.told("authn_token_reuse"), 1);
    for _ in 0..2 {
        assert_nobody(&owner, "the owner is out as well: nobody knows who is the thief").await;
        assert_nobody(&owner.with_token_alone(), "and with the token alone").await;
        lab.pass(FRESH).await;
    }
    assert_eq!(lab.told("authn_token_reuse"), 1, "one alarm");
}

async fn a02_of_two_siblings_the_second_presented_is_the_alarm(lab: Lab) {
    for thief_is_first in [true, false] {
        let alarms = lab.told("authn_token_reuse");
        let mut owner = lab.signed_in("alice").await;
        let mut thief = owner.with_token_alone();
        lab.pass(FRESH).await;
        assert_eq!(owner.who().await.as_deref(), Some("alice"));
        lab.pass(GRACE + 1).await;
        // The late one looks like a lost answer, and gets a pair of its own.
        assert!(thief.visit("GET", "/", "").await.cookies.sets(RENEWAL).is_some());
        lab.pass(FRESH).await;
        let (first, second) =
            if thief_is_first { (&mut thief, &mut owner) } else { (&mut owner, &mut thief) };
        assert_eq!(first.who().await.as_deref(), Some("alice"));
        lab.pass(GRACE).await;
        assert_eq!(second.who().await, None, "the second of the siblings");
        assert_eq!(first.who().await, None, "and with it the first");
        assert_eq!(lab.told("authn_token_reuse"), alarms + 1);
    }
}

async fn a03_a_thief_within_the_grace(lab: Lab) {
    let mut owner = lab.signed_in("alice").await;
    lab.pass(FRESH).await;
    let copy = owner.with_token_alone();
    assert_eq!(owner.who().await.as_deref(), Some("alice"));
    lab.pass(GRACE - 1).await;
    // From another browser: refused, and nothing is revoked.
    let mut thief = copy.clone();
    thief.user_agent = Some(CHROME);
    let answer = assert_nobody(&thief, "another browser family").await;
    assert!(answer.cookies.is_empty());
    assert_eq!(lab.told("session_refused") + lab.told("renewal_from_other_client"), 1);
    assert_eq!(lab.told("authn_token_reuse"), 0);
    // From the same: a session cookie that ends with the owner's, and no token.
    let mut thief = copy;
    let answer = thief.visit("GET", "/", "").await;
    assert_eq!(answer.user().as_deref(), Some("alice"));
    assert!(answer.cookies.sets(SESSION).is_some() && answer.cookies.text(RENEWAL).is_none());
    lab.pass(FRESH - GRACE + 1).await;
    thief.jar = thief.jar.without(RENEWAL);
    assert_nobody(&thief, "his cookie ends when the owner's does").await;
    assert_eq!(owner.who().await.as_deref(), Some("alice"));
}

async fn a06_the_grace_is_not_stretched(lab: Lab) {
    let mut owner = lab.signed_in("alice").await;
    lab.pass(FRESH).await;
    let copy = owner.with_token_alone();
    assert_eq!(owner.who().await.as_deref(), Some("alice"));
    let renewed_at = lab.second();
    let mut cookies = Vec::new();
    while lab.second() - renewed_at < FRESH {
        lab.pass(20).await;
        let answer = copy.ask("GET", "/", "").await;
        let within = lab.second() - renewed_at < GRACE;
        if let Some(cookie) = answer.cookies.sets(SESSION).filter(|_| within) {
            assert!(answer.cookies.text(RENEWAL).is_none());
            cookies.push(cookie.to_owned());
        }
        if answer.cookies.sets(RENEWAL).is_some() {
            // After the grace he is taken for a lost answer; the next renewal of either is the alarm.
            break;
        }
    }
    assert!(!cookies.is_empty());
    lab.pass(renewed_at + FRESH - lab.second()).await;
    for cookie in &cookies {
        assert_nobody(&copy.holding(Some(cookie), None), "a cookie of the grace, `fresh` after the renewal")
            .await;
    }
    lab.pass(GRACE).await;
    // He has the sibling's token nowhere; the token before it is what he comes with again and again.
    assert_eq!(owner.who().await.as_deref(), Some("alice"));
    assert_nobody(&copy, "the used-up token after the owner's next renewal").await;
    assert_eq!(lab.told("authn_token_reuse"), 1);
    assert_nobody(&owner, "both are out").await;
}

async fn a07_the_grace_after_a_revocation(lab: Lab) {
    for path in ["/logout", "/logout-everywhere"] {
        let mut owner = lab.signed_in("alice").await;
        let other = lab.signed_in("alice").await;
        lab.pass(FRESH).await;
        let copy = owner.with_token_alone();
        assert_eq!(owner.who().await.as_deref(), Some("alice"));
        let fresh = owner.clone();
        assert_eq!(owner.visit("POST", path, "").await.status, 204);
        for (thief, what) in
            [(copy, "the token before"), (fresh.with_token_alone(), "the token"), (fresh, "the cookie")]
        {
            assert_nobody(&thief, what).await;
        }
        let expected = if path == "/logout" { Some("alice") } else { None };
        assert_eq!(user_of(&other).await.as_deref(), expected, "{path}: her other browser");
    }
}

async fn a11_an_older_cookie_with_other_claims(lab: Lab) {
    let mut browser = lab.browser();
    browser.visit("POST", "/login", "user=alice&role=admin").await;
    let admin = browser.holding(Some(&browser.value(SESSION)), None);
    let both = browser.clone();
    assert_eq!(browser.visit("POST", "/claims", "role=reader").await.status, 204);
    assert_eq!(browser.ask("GET", "/", "").await.json()["claims"]["role"], "reader");
    let answer = admin.ask("GET", "/", "").await;
    assert_eq!(answer.user(), None, "the cookie with the old role, alone");
    // With its token it renews, and has the new role.
    lab.pass(GRACE).await;
    let answer = both.ask("GET", "/", "").await.json();
    assert_eq!((answer["user"].as_str(), answer["claims"]["role"].as_str()), (Some("alice"), Some("reader")));
}

/// The instance restarts and has forgotten everything; the file has not, and a store in memory is asked.
#[tokio::test]
async fn a12_a_replay_across_a_restart() {
    let scratch = Scratch::new();
    let keys = Some(Lab::new_keys());
    let on_file = Flags { keys: keys.clone(), ..Flags::sqlite(&scratch.file("sessions.db")) };
    let in_memory = Flags { keys, ..Flags::memory() };
    for flags in [on_file, in_memory] {
        let first = Lab::start(&flags);
        let mut gone = first.signed_in("alice").await;
        let mut used = first.signed_in("bob").await;
        let copies = [gone.clone(), gone.with_token_alone(), used.with_token_alone()];
        gone.visit("POST", "/logout", "").await;
        for _ in 0..2 {
            first.pass(FRESH).await;
            assert_eq!(used.who().await.as_deref(), Some("bob"));
        }
        first.stop();
        drop((gone, used));
        let second = Lab::start(&flags);
        for (copy, what) in
            copies.iter().zip(["a cookie that was logged out", "its token", "a used-up token"])
        {
            assert_nobody(&copy.at(&second), what).await;
        }
    }
}

/// The store is flooded with other sessions: nothing that ended is forgotten early.
#[tokio::test]
async fn a12_a_replay_after_a_flood() {
    let lab = Lab::start(&Flags::memory());
    let mut gone = lab.signed_in("alice").await;
    let copy = gone.clone();
    gone.visit("POST", "/logout", "").await;
    // Others come and go by the hundred, and each logout is one more thing to remember.
    for number in 0..150 {
        lab.browser().visit("POST", "/data/x", &format!("value {number}")).await;
        lab.signed_in("mallory").await.visit("POST", "/logout", "").await;
    }
    assert_nobody(&copy, "the cookie after a flood").await;
    assert_nobody(&copy.with_token_alone(), "the token after a flood").await;
}

async fn a77_a_copied_token_and_a_new_authentication(lab: Lab) {
    let mut owner = lab.signed_in("alice").await;
    // A renewal later the authentication is not recent any more, and the cookie that is copied then is fresh.
    lab.pass(FRESH).await;
    assert_eq!(owner.who().await.as_deref(), Some("alice"));
    assert_eq!(owner.ask("GET", "/recent", "").await.status, 403);
    let copy = owner.clone();
    let thief = copy.with_token_alone();
    lab.pass(GRACE).await;
    assert_eq!(owner.visit("POST", "/reauthenticate", "").await.status, 204);
    assert_eq!(owner.ask("GET", "/recent", "").await.status, 200);
    // The copied session cookie lives out at its old strength; the token renews nothing.
    assert_eq!(user_of(&copy).await.as_deref(), Some("alice"));
    assert_eq!(copy.ask("GET", "/recent", "").await.status, 403, "not with the new authentication");
    assert_nobody(&thief, "within the grace").await;
    assert_eq!(lab.told("authn_superseded_token_used"), 0);
    lab.pass(GRACE).await;
    assert_nobody(&thief, "after it").await;
    assert_eq!(lab.told("authn_superseded_token_used"), 1);
    lab.pass(FRESH).await;
    assert_nobody(&copy, "once its cookie is stale").await;
    assert_eq!(copy.ask("GET", "/recent", "").await.status, 401);
    for _ in 0..IDLE / FRESH {
        assert_eq!(owner.who().await.as_deref(), Some("alice"), "her new session is untouched");
        lab.pass(FRESH).await;
    }
}
