//! Ways to stay in, to get further than one should, or to lose what somebody else wrote, that were open once: each is a
//! sequence that a reviewer of the code found.

use std::{sync::Arc, time::Duration};

use portcullis::{Auth, MemoryStore, Session, store::Store as _};
use serde_json::json;

use crate::{
    browser::Browser,
    gate::Gate,
    handlers::{details, login, logout, read, reauthenticate, recent, who, write},
    jar::{RENEWAL, SESSION},
    stage::{FRESH, GRACE, IDLE, MS, Stage, eventually},
};

on_every_store!(
    a_lowered_fresh_brings_no_logged_out_cookie_back,
    a_store_that_is_younger_than_a_cookie_is_asked_about_it,
    a_logout_beside_a_new_authentication_means_the_newer_id_too,
    a_login_beside_a_new_authentication_means_the_newer_id_too,
    a_late_answer_of_the_old_id_does_not_overwrite_the_new_cookies,
    a_new_id_keeps_what_others_wrote_meanwhile,
    a_flush_and_then_a_new_id_is_a_sign_out,
    what_is_written_after_a_flush_was_saved_is_a_session_of_nobody,
    junk_under_our_names_does_not_keep_a_logout_from_the_session,
    old_credentials_cost_one_write_and_no_more,
    an_instance_that_has_not_read_the_feed_yet_trusts_no_superseded_id,
    a_fresh_copy_on_another_network_is_asked_to_step_up,
    a_refused_request_writes_over_nobodys_cookies,
    a_login_that_nobody_waits_for_leaves_nothing_half_done,
    a_post_is_no_socket,
    a_value_nested_too_deeply_is_no_alarm,
    a_page_that_asks_for_news_keeps_nobody_signed_in,
    who_works_beside_a_polling_page_stays_signed_in,
);

async fn a_lowered_fresh_brings_no_logged_out_cookie_back(stage: Stage) {
    let hour = Duration::from_secs(3600);
    let long = stage.rebuilt(|builder| {
        let timeouts = portcullis::Timeouts::default().fresh(hour).idle(hour * 2);
        builder.timeouts(timeouts)
    });
    let mut owner = long.browser();
    owner.login("alice").await;
    let thief = owner.clone().at(&stage);
    owner.at(&stage).visit(logout).await.ok();
    stage.pass(FRESH + GRACE + Duration::from_secs(120));
    let restarted = stage.restarted_with(stage.keys.clone());
    restarted.layer.ready().await.unwrap();
    for instance in [&stage, &restarted] {
        assert_eq!(thief.at(instance).ask(who).await.ok(), "nobody");
    }
}

async fn a_store_that_is_younger_than_a_cookie_is_asked_about_it(stage: Stage) {
    let thief = stage.signed_in("alice").await;
    stage.pass(MS);
    let restarted = stage.over_store(MemoryStore::with_clock(Arc::clone(&stage.clock) as _));
    restarted.layer.ready().await.unwrap();
    restarted.forget();
    assert_eq!(thief.at(&restarted).ask(who).await.ok(), "nobody");
    assert_eq!(restarted.store.calls(), ["load"]);
    let mut new = restarted.signed_in("bob").await;
    assert_eq!(new.who().await, "bob");
    assert_eq!(restarted.store.calls(), [""; 0], "what began here needs no asking");
}

/// A request that authenticates anew, and whose answer is slow to come.
async fn slow_reauthentication(browser: &Browser) -> (tokio::task::JoinHandle<crate::browser::Answer>, Gate) {
    let gate = Gate::default();
    let inside = gate.clone();
    let slow = move |auth: Auth| async move {
        auth.reauthenticated().await.unwrap();
        inside.wait_inside().await;
    };
    let under_way = tokio::spawn(browser.ask(slow));
    gate.is_reached().await;
    (under_way, gate)
}

async fn a_logout_beside_a_new_authentication_means_the_newer_id_too(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let (under_way, gate) = slow_reauthentication(&browser).await;
    browser.visit(logout).await.ok();
    gate.open();
    let late = under_way.await.unwrap();
    browser.take(&late);
    assert_eq!(browser.who().await, "nobody");
    assert!(late.cookies.is_empty());
}

/// The same for a login: it must not be undone by the late answer of the user before.
async fn a_login_beside_a_new_authentication_means_the_newer_id_too(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let (under_way, gate) = slow_reauthentication(&browser).await;
    browser.login("bob").await;
    gate.open();
    let late = under_way.await.unwrap();
    assert!(late.cookies.is_empty());
    browser.take(&late);
    assert_eq!(browser.who().await, "bob");
}

async fn a_late_answer_of_the_old_id_does_not_overwrite_the_new_cookies(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    stage.pass(FRESH);
    let gate = Gate::default();
    let inside = gate.clone();
    let under_way = tokio::spawn(browser.ask(move || async move { inside.wait_inside().await }));
    gate.is_reached().await;
    browser.visit(reauthenticate).await.ok();
    gate.open();
    let late = under_way.await.unwrap();
    assert!(late.cookies.is_empty());
    browser.take(&late);
    stage.forget();
    stage.pass(FRESH);
    assert_eq!(browser.who().await, "alice");
    assert_eq!(stage.events.names(), ["session_renewed"]);
}

async fn a_new_id_keeps_what_others_wrote_meanwhile(stage: Stage) {
    for authenticates in [true, false] {
        let mut browser = stage.signed_in("alice").await;
        browser.visit(write("colour", "green")).await.ok();
        browser.visit(write("size", "small")).await.ok();
        let gate = Gate::default();
        let inside = gate.clone();
        let slow = move |auth: Auth, session: Session| async move {
            session.insert("size", "large").await.unwrap();
            session.remove_value("colour").await.unwrap();
            inside.wait_inside().await;
            if authenticates {
                auth.reauthenticated().await.unwrap()
            } else {
                session.cycle_id().await.unwrap()
            }
        };
        let under_way = tokio::spawn(browser.ask(slow));
        gate.is_reached().await;
        browser.ask(write("note", "kept")).await.ok();
        browser
            .ask(|auth: Auth| async move { auth.set_claims(json!({ "role": "reader" })).await })
            .await
            .ok();
        gate.open();
        browser.take(&under_way.await.unwrap());
        for (name, value) in [("note", "kept"), ("size", "large"), ("colour", "nothing")] {
            assert_eq!(browser.visit(read(name)).await.ok(), value, "{name}, {authenticates}");
        }
        let told: serde_json::Value = serde_json::from_str(&browser.visit(details).await.ok()).unwrap();
        assert_eq!(told["claims"], json!({ "role": "reader" }));
    }
}

async fn a_flush_and_then_a_new_id_is_a_sign_out(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    browser.visit(write("colour", "green")).await.ok();
    let both = |session: Session| async move {
        session.flush().await.unwrap();
        session.cycle_id().await.unwrap();
        session.insert("note", "goodbye").await.unwrap();
    };
    let old = browser.clone();
    browser.visit(both).await.ok();
    assert_eq!(browser.who().await, "nobody");
    assert_eq!(browser.visit(read("note")).await.ok(), "goodbye");
    assert_eq!(browser.visit(read("colour")).await.ok(), "nothing");
    assert_eq!(old.ask(who).await.ok(), "nobody");
}

async fn what_is_written_after_a_flush_was_saved_is_a_session_of_nobody(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let says_goodbye = |session: Session| async move {
        session.flush().await.unwrap();
        session.save().await.unwrap();
        session.insert("note", "goodbye").await.unwrap();
    };
    browser.visit(says_goodbye).await.ok();
    assert_eq!(browser.who().await, "nobody");
    assert_eq!(browser.visit(read("note")).await.ok(), "goodbye");
}

async fn junk_under_our_names_does_not_keep_a_logout_from_the_session(stage: Stage) {
    for name in [SESSION, RENEWAL] {
        let alice = stage.signed_in("alice").await;
        let mut tossed = String::new();
        for junk in 0..6 {
            tossed.push_str(&format!("{name}=junk{junk}; "));
        }
        tossed.push_str(&format!("{name}={}", alice.jar.value(name).unwrap()));
        stage.browser().with_field("cookie", tossed).ask(logout).await.ok();
        assert_eq!(alice.ask(who).await.ok(), "nobody", "{name}");
    }
}

async fn old_credentials_cost_one_write_and_no_more(stage: Stage) {
    let browser = stage.signed_in("alice").await;
    for calls in [&["revoke"][..], &[], &[]] {
        browser.ask(logout).await.ok();
        assert_eq!(stage.store.calls(), calls);
    }
    // And a token of a session that is over costs the store one question.
    let browser = stage.signed_in("alice").await;
    stage.pass(IDLE);
    for calls in [&["rotate"][..], &[], &[]] {
        assert_eq!(browser.ask(who).await.ok(), "nobody");
        assert_eq!(stage.store.calls(), calls);
    }
}

/// Before an instance has read the feed it cannot know what became of the claims under the newer id.
async fn an_instance_that_has_not_read_the_feed_yet_trusts_no_superseded_id(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let copy = browser.clone();
    browser.visit(reauthenticate).await.ok();
    assert_eq!(copy.ask(who).await.ok(), "alice", "it lives out where the feed is read");
    let restarted = stage.restarted_with(stage.keys.clone());
    // The store says nothing to the feed's task, so that it stays unread.
    stage.store.fails_only(portcullis::events::StoreVerb::Subscribe);
    assert_eq!(copy.at(&restarted).ask(who).await.ok(), "nobody");
    assert_eq!(browser.at(&restarted).ask(who).await.ok(), "alice");
}

async fn a_fresh_copy_on_another_network_is_asked_to_step_up(stage: Stage) {
    let owner = stage.signed_in("alice").await;
    let mut thief = owner.clone();
    thief.address = std::net::IpAddr::from([198, 51, 100, 7]);
    assert_eq!(thief.ask(recent).await.status, 403);
    let told: serde_json::Value = serde_json::from_str(&thief.ask(details).await.ok()).unwrap();
    assert_eq!(told["context_changed"], true);
    assert_eq!(owner.ask(recent).await.ok(), "recent");
}

/// A losing answer never overwrites cookies: not with an anonymous session either.
async fn a_refused_request_writes_over_nobodys_cookies(stage: Stage) {
    let mut owner = stage.signed_in("alice").await;
    let mut behind = owner.clone();
    stage.pass(FRESH);
    owner.who().await;
    behind.address = std::net::IpAddr::from([198, 51, 100, 7]);
    behind.jar = behind.jar.without(SESSION);
    stage.forget();
    assert!(behind.ask(write("flash", "hello")).await.cookies.is_empty());
    assert_eq!(
        stage.events.names(),
        ["session_context_changed", "renewal_from_other_client", "write_of_refused_request"]
    );
    // A login is no write of a refused request.
    assert!(behind.ask(login("alice")).await.cookies.sets(SESSION).is_some());
}

async fn a_login_that_nobody_waits_for_leaves_nothing_half_done(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let hurried = |auth: Auth| async move {
        match tokio::time::timeout(Duration::ZERO, auth.login("bob").into_future()).await {
            Ok(done) => done.map(|()| "bob"),
            Err(_) => Ok("alice"),
        }
    };
    let told = browser.visit(hurried).await.ok();
    assert_eq!(browser.who().await, told);
}

async fn a_post_is_no_socket(stage: Stage) {
    let browser = stage.signed_in("alice").await;
    stage.pass(FRESH);
    let renewed = browser.with_field("upgrade", "websocket").post(who).await;
    assert_eq!(renewed.ok(), "alice");
    assert!(renewed.cookies.sets(RENEWAL).is_some(), "it renews as any request does");
}

/// A site that keeps visitors' JSON in a session must not let them ring the alarm.
async fn a_value_nested_too_deeply_is_no_alarm(stage: Stage) {
    let mut browser = stage.signed_in("alice").await;
    let nests = |session: Session| async move {
        let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
        session.insert_value("deep", deep).await.unwrap();
    };
    browser.visit(nests).await.ok();
    assert_eq!(browser.visit(read("deep")).await.ok(), "nothing");
    browser.visit(write("colour", "green")).await.ok();
    assert_eq!(browser.visit(read("colour")).await.ok(), "green");
    assert_eq!(stage.events.names(), [""; 0]);
    let id = *stage.store.ids().last().unwrap();
    let (_, fields) = stage.store.load(&id).await.unwrap().unwrap();
    assert_eq!(fields.len(), 2, "what cannot be read is not thrown away");
}

/// The first request may come on a runtime that does not last.
#[test]
fn the_feed_is_read_again_after_its_runtime_is_gone() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    let stage = first.block_on(Stage::memory());
    let other = first.block_on(async {
        let other = stage.restarted_with(stage.keys.clone());
        other.layer.ready().await.unwrap();
        other
    });
    drop(first);
    runtime().block_on(async {
        let alice = stage.signed_in("alice").await;
        assert_eq!(alice.at(&other).ask(who).await.ok(), "alice");
        alice.clone().visit(logout).await.ok();
        eventually(|| async { alice.at(&other).ask(who).await.ok() == "nobody" }).await;
    });
}

/// A70: the heartbeat of a page in an empty office.
async fn a_page_that_asks_for_news_keeps_nobody_signed_in(stage: Stage) {
    let polling = stage.rebuilt(|builder| builder.polling_route("/"));
    polling.layer.ready().await.unwrap();
    for (stage, stays) in [(&stage, true), (&polling, false)] {
        let mut alice = stage.signed_in("alice").await;
        for _ in 0..6 {
            assert_eq!(alice.who().await, "alice");
            stage.pass(IDLE / 6);
        }
        assert_eq!(alice.who().await, if stays { "alice" } else { "nobody" });
    }
}

/// The page polls all the time, and the user clicks now and then: it is the clicks that count.
async fn who_works_beside_a_polling_page_stays_signed_in(stage: Stage) {
    let stage = stage.rebuilt(|builder| builder.polling_route("/news"));
    stage.layer.ready().await.unwrap();
    let mut alice = stage.signed_in("alice").await;
    let mut polls = 0;
    // A poll is always the first after `fresh`, and a click follows a moment later, also within the grace.
    for click_after in [1, 20, 60, 1, 1, 29, 31, 1].map(Duration::from_secs).into_iter().cycle().take(32) {
        stage.pass(FRESH);
        let poll = alice.ask_at("/news", who).await;
        assert_eq!(poll.ok(), "alice");
        polls += usize::from(poll.cookies.sets(RENEWAL).is_some());
        alice.take(&poll);
        stage.pass(click_after);
        assert_eq!(alice.who().await, "alice");
    }
    assert_eq!(polls, 32, "the polls renewed");
    // A store that is silent, or a lost token, takes nothing from a fresh cookie.
    stage.pass(FRESH);
    let poll = alice.ask_at("/news", who).await;
    alice.take(&poll);
    stage.pass(GRACE);
    stage.store.goes_down();
    assert_eq!(alice.ask(who).await.ok(), "alice");
    stage.store.comes_back();
    assert_eq!(alice.with_jar(alice.jar.without(RENEWAL)).ask(who).await.ok(), "alice");
}
