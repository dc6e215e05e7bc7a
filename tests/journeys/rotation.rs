//! One-time renewal, seen from outside: races, lost answers, and thieves.

use crate::{
    browser::FIREFOX_ON_WINDOWS,
    handlers::{read, reauthenticate, who, write},
    jar::{RENEWAL, SESSION},
    stage::{FRESH, GRACE, MS, SECOND, Stage, eventually},
};

on_every_store!(
    two_tabs_at_once_get_one_new_token_between_them,
    a_token_just_issued_gives_a_session_cookie_only,
    cookies_of_a_lost_race_are_fresh_no_longer_than_the_winner_s,
    cookies_of_a_young_token_are_fresh_no_longer_than_the_login_s,
    a_lost_answer_is_answered_again_after_the_grace,
    a_lost_answer_does_not_begin_a_new_grace,
    of_two_answers_to_one_token_only_the_first_presented_counts,
    a_used_token_ends_the_session_for_all_with_one_alarm,
    a_thief_who_renews_first_is_found_out_by_the_owner,
    a_thief_who_renews_second_is_found_out_by_his_own_renewal,
    within_the_grace_another_client_is_refused_and_nothing_is_revoked,
    revocation_counts_within_the_grace_too,
    the_grace_cannot_be_stretched,
    a_superseded_token_used_late_is_an_alarm_and_leaves_the_new_session,
    a_superseded_token_within_the_grace_is_a_race,
    an_alarm_ends_the_old_id_too,
    many_renewals_at_once_are_all_let_in_and_one_gets_the_token,
);

async fn two_tabs_at_once_get_one_new_token_between_them(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    stage.pass(FRESH);
    let (first, second) = (browser.ask(who).await, browser.ask(who).await);
    assert_eq!((first.ok(), second.ok()), ("alice".into(), "alice".into()));
    assert!(first.cookies.sets(RENEWAL).is_some());
    assert!(second.cookies.sets(SESSION).is_some());
    assert!(second.cookies.text(RENEWAL).is_none(), "the loser leaves the token alone");
    assert_eq!(stage.events.names(), ["session_renewed"]);
    // A08: whichever answer the browser takes last, it goes on.
    for order in [[&first, &second], [&second, &first]] {
        let mut tabs = browser.clone();
        for answer in order {
            tabs.take(answer);
        }
        assert_eq!(tabs.ask(who).await.ok(), "alice");
    }
    browser.take(&second);
    browser.take(&first);
    stage.pass(FRESH);
    assert_eq!(browser.who().await, "alice");
}

async fn a_token_just_issued_gives_a_session_cookie_only(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    browser.jar = browser.jar.without(SESSION);
    stage.pass(GRACE - MS);
    let answer = browser.ask(who).await;
    assert_eq!(answer.ok(), "alice");
    assert!(answer.cookies.sets(SESSION).is_some() && answer.cookies.text(RENEWAL).is_none());
    assert_eq!(stage.events.names(), [""; 0]);
    stage.pass(MS);
    assert!(browser.ask(who).await.cookies.sets(RENEWAL).is_some());
}

async fn cookies_of_a_lost_race_are_fresh_no_longer_than_the_winner_s(stage: Stage) {
    let mut winner = stage.signed_in("alice").await;
    let mut loser = winner.clone();
    stage.pass(FRESH);
    winner.who().await;
    stage.pass(GRACE - MS);
    assert!(loser.visit(who).await.cookies.sets(SESSION).is_some());
    loser.jar = loser.jar.without(RENEWAL);
    stage.pass(FRESH - GRACE);
    assert_eq!(loser.who().await, "alice");
    stage.pass(MS);
    assert_eq!(loser.who().await, "nobody");
}

async fn cookies_of_a_young_token_are_fresh_no_longer_than_the_login_s(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let token = browser.jar.value(RENEWAL).unwrap().to_owned();
    browser.jar = browser.jar.without(SESSION);
    stage.pass(GRACE - MS);
    browser.who().await;
    browser.jar = browser.jar.without(RENEWAL);
    stage.pass(FRESH - GRACE);
    assert_eq!(browser.who().await, "alice");
    stage.pass(MS);
    assert_eq!(browser.who().await, "nobody");
    browser.jar.put(RENEWAL, token);
    assert_eq!(browser.who().await, "alice");
}

/// A05.
async fn a_lost_answer_is_answered_again_after_the_grace(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    browser.visit(write("colour", "green")).await.ok();
    stage.pass(FRESH);
    stage.forget();
    drop(browser.ask(who).await);
    stage.pass(GRACE);
    let answer = browser.visit(read("colour")).await;
    assert_eq!(answer.ok(), "green");
    assert!(answer.cookies.sets(SESSION).is_some() && answer.cookies.sets(RENEWAL).is_some());
    assert_eq!(stage.events.names(), ["session_renewed", "renewal_answer_lost"]);
    for _ in 0..3 {
        stage.pass(FRESH);
        assert_eq!(browser.who().await, "alice");
    }
    assert_eq!(stage.events.names(), ["session_renewed"; 3]);
}

/// A73: if what a thief can reach moved `rotated_at`, he would always be within some grace, and could stay for ever.
async fn a_lost_answer_does_not_begin_a_new_grace(stage: Stage) {
    let browser = stage.signed_in("alice").await;
    stage.pass(FRESH);
    drop(browser.ask(who).await);
    stage.pass(GRACE);
    let mut answered = browser.clone();
    for _ in 0..2 {
        let answer = answered.with_jar(browser.jar.clone()).ask(who).await;
        assert!(answer.cookies.sets(RENEWAL).is_some(), "no echo, the grace being over");
        answered.take(&answer);
    }
    answered.jar = answered.jar.without(SESSION);
    stage.forget();
    let answer = answered.visit(who).await;
    assert!(answer.cookies.sets(RENEWAL).is_some(), "not young, whenever it was issued");
    assert_eq!(stage.events.names(), ["session_renewed"]);
}

/// A02: the owner and whoever else has the token each got a pair; the second of them who comes back shows that there
/// are two.
async fn of_two_answers_to_one_token_only_the_first_presented_counts(stage: Stage) {
    let mut first = stage.signed_in("alice").await;
    let mut second = first.clone();
    stage.pass(FRESH);
    first.who().await;
    stage.pass(GRACE);
    second.who().await;
    stage.pass(FRESH);
    stage.forget();
    assert_eq!(first.who().await, "alice");
    stage.pass(GRACE);
    assert_eq!(second.who().await, "nobody");
    assert_eq!(stage.events.names(), ["session_renewed", "authn_token_reuse"]);
    assert_eq!(first.who().await, "nobody");
}

async fn a_used_token_ends_the_session_for_all_with_one_alarm(stage: Stage) {
    let mut owner = stage.signed_in("alice").await;
    let mut thief = owner.clone();
    for _ in 0..2 {
        stage.pass(FRESH);
        owner.who().await;
    }
    stage.forget();
    let answer = thief.visit(who).await;
    assert_eq!(answer.ok(), "nobody");
    assert!(answer.cookies.is_empty());
    assert_eq!(stage.events.names(), ["authn_token_reuse"]);
    stage.store.calls();
    assert_eq!(owner.who().await, "nobody", "at once, the cookie being fresh");
    assert_eq!(thief.who().await, "nobody");
    assert_eq!(stage.store.calls(), [""; 0]);
    assert_eq!(stage.events.names(), ["session_refused", "session_refused"], "the alarm rings once");
}

async fn a_thief_who_renews_first_is_found_out_by_the_owner(stage: Stage) {
    let mut owner = stage.signed_in("alice").await;
    let mut thief = owner.clone();
    for _ in 0..2 {
        stage.pass(FRESH);
        assert_eq!(thief.who().await, "alice");
    }
    stage.forget();
    assert_eq!(owner.who().await, "nobody");
    assert_eq!(stage.events.names(), ["authn_token_reuse"]);
    assert_eq!(thief.who().await, "nobody");
}

/// A06, A73: the thief copies after a renewal and stays behind the owner, always with the token before.
async fn a_thief_who_renews_second_is_found_out_by_his_own_renewal(stage: Stage) {
    let mut owner = stage.signed_in("alice").await;
    let mut thief = owner.clone();
    let mut rounds = 0;
    while owner.who().await == "alice" && rounds < 4 {
        stage.pass(FRESH);
        assert_eq!(owner.who().await, "alice");
        stage.pass(GRACE + SECOND);
        thief.who().await;
        rounds += 1;
    }
    assert_eq!(owner.who().await, "nobody");
    assert_eq!(thief.who().await, "nobody");
    assert!(rounds < 4, "ended within four times `fresh`");
    let alarms = stage.events.names().into_iter().filter(|name| *name == "authn_token_reuse").count();
    assert_eq!(alarms, 1);
}

/// A03.
async fn within_the_grace_another_client_is_refused_and_nothing_is_revoked(stage: Stage) {
    let mut owner = stage.signed_in("alice").await;
    let mut thief = owner.clone();
    thief.user_agent = Some(FIREFOX_ON_WINDOWS);
    stage.pass(FRESH);
    owner.who().await;
    stage.forget();
    let answer = thief.visit(who).await;
    assert_eq!(answer.ok(), "nobody");
    assert!(answer.cookies.is_empty());
    let events = stage.events.names();
    assert_eq!(events.iter().filter(|name| **name == "renewal_from_other_client").count(), 1, "{events:?}");
    assert_eq!(owner.who().await, "alice");
    stage.pass(FRESH);
    assert_eq!(owner.who().await, "alice");
}

/// A07.
async fn revocation_counts_within_the_grace_too(stage: Stage) {
    let mut owner = stage.signed_in("alice").await;
    let mut copy = owner.clone();
    stage.pass(FRESH);
    owner.who().await;
    owner.visit(crate::handlers::logout).await.ok();
    assert_eq!(copy.who().await, "nobody");
}

/// A06.
async fn the_grace_cannot_be_stretched(stage: Stage) {
    let mut owner = stage.signed_in("alice").await;
    let mut thief = owner.clone();
    stage.pass(FRESH);
    owner.who().await;
    // Every echo is within the grace of one and the same win.
    for _ in 0..3 {
        thief.who().await;
        stage.pass(GRACE / 4);
    }
    thief.jar = thief.jar.without(RENEWAL);
    stage.pass(FRESH - GRACE * 3 / 4 - MS);
    assert_eq!(thief.who().await, "alice");
    stage.pass(MS);
    assert_eq!(thief.who().await, "nobody");
}

/// A77.
async fn a_superseded_token_used_late_is_an_alarm_and_leaves_the_new_session(stage: Stage) {
    let mut owner = stage.signed_in("alice").await;
    let mut thief = owner.clone();
    owner.visit(reauthenticate).await.ok();
    thief.jar = thief.jar.without(SESSION);
    stage.pass(GRACE);
    stage.forget();
    let answer = thief.visit(who).await;
    assert_eq!(answer.ok(), "nobody");
    assert!(answer.cookies.is_empty());
    assert_eq!(stage.events.names(), ["authn_superseded_token_used"]);
    assert_eq!(owner.who().await, "alice");
    stage.pass(FRESH);
    assert_eq!(owner.who().await, "alice");
}

async fn a_superseded_token_within_the_grace_is_a_race(stage: Stage) {
    let mut owner = stage.signed_in("alice").await;
    let mut tab = owner.clone();
    owner.visit(reauthenticate).await.ok();
    tab.jar = tab.jar.without(SESSION);
    stage.pass(GRACE - MS);
    stage.forget();
    let answer = tab.visit(who).await;
    assert_eq!(answer.ok(), "nobody");
    assert!(answer.cookies.is_empty());
    assert_eq!(stage.events.names(), ["session_refused"]);
    assert_eq!(owner.who().await, "alice");
}

async fn an_alarm_ends_the_old_id_too(stage: Stage) {
    let mut owner = stage.signed_in("alice").await;
    let old = owner.clone();
    owner.visit(reauthenticate).await.ok();
    let mut thief = owner.clone();
    for _ in 0..2 {
        stage.pass(GRACE);
        owner.jar = owner.jar.without(SESSION);
        owner.who().await;
    }
    assert_eq!(old.ask(who).await.ok(), "alice", "so far it lives out");
    thief.jar = thief.jar.without(SESSION);
    assert_eq!(thief.who().await, "nobody");
    assert!(stage.events.names().contains(&"authn_token_reuse"));
    eventually(|| async { old.ask(who).await.ok() == "nobody" }).await;
}

/// A04, in one process; `stories` does it over HTTP.
async fn many_renewals_at_once_are_all_let_in_and_one_gets_the_token(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    stage.pass(FRESH);
    let mut tabs = tokio::task::JoinSet::new();
    for _ in 0..20 {
        tabs.spawn(browser.ask(who));
    }
    let answers = tabs.join_all().await;
    assert!(answers.iter().all(|answer| answer.ok() == "alice" && answer.cookies.sets(SESSION).is_some()));
    assert_eq!(answers.iter().filter(|answer| answer.cookies.sets(RENEWAL).is_some()).count(), 1);
    for answer in &answers {
        browser.take(answer);
    }
    stage.pass(FRESH);
    assert_eq!(browser.who().await, "alice");
    assert_eq!(stage.events.names(), ["session_renewed"; 2]);
}
