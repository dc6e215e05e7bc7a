//! Device-bound sessions of a Chromium on two instances that share a Redis: an answer that is lost, a store that is killed and
//! comes back, an instance that dies.

use serde_json::json;

use crate::{
    bound::{OFFERS, REFRESH, SESSION, requests, sign_in},
    driver::{Kind, poll},
    proxy::{Fault, Proxy},
    servers::Redis,
    stage::{DESK, Stage, play_over_redis},
};

#[test]
fn two_instances_refresh_by_turns() {
    play_over_redis(Kind::BindingChromium, OFFERS, |stage, _, _| {
        sign_in(stage, "alice");
        for _ in 0..4 {
            stage.pass(299);
            stage.browser.forget_cookie(SESSION);
            assert_eq!(stage.who().as_deref(), Some("alice"));
        }
        let refreshes = requests(stage, "POST", REFRESH);
        assert!(refreshes.iter().all(|request| [200, 403].contains(&request.status)), "{refreshes:#?}");
        assert_eq!(refreshes.iter().filter(|request| request.status == 200).count(), 4);
    });
}

#[test]
fn a_lost_answer_costs_a_try_and_no_session() {
    play_over_redis(Kind::BindingChromium, OFFERS, a_lost_answer);
}

fn a_lost_answer(stage: &mut Stage, _: &Redis, proxy: &Proxy) {
    sign_in(stage, "alice");
    for _ in 0..3 {
        stage.browser.open(DESK);
        stage.pass(1);
        stage.browser.forget_cookie(SESSION);
        let renewed = stage.lab.told("session_renewed");
        // It is handled, and the browser hears nothing of it.
        proxy.set(Fault::MuteServer);
        stage.browser.run("window.answer = fetch('/').then((answer) => answer.status, () => 0)");
        poll(|| (stage.lab.told("session_renewed") > renewed).then_some(())).expect("it was handled");
        proxy.set(Fault::None);
        let status = stage.browser.run("return await window.answer");
        assert!([json!(503), json!(502), json!(0), json!(200)].contains(&status), "{status}");
        assert_eq!(
            again(stage).as_deref(),
            Some("alice"),
            "the same proof again is answered with another challenge"
        );
    }
}

#[test]
fn a_killed_store_ends_nothing() {
    play_over_redis(Kind::BindingChromium, OFFERS, a_killed_store);
}

fn a_killed_store(stage: &mut Stage, redis: &Redis, _: &Proxy) {
    sign_in(stage, "alice");
    stage.browser.open(DESK);
    redis.kill();
    stage.browser.forget_cookie(SESSION);
    stage.seen.forget();
    for _ in 0..3 {
        let status = stage.browser.run("return (await fetch('/')).status");
        assert_eq!(status, 503, "come again, never a sign-out");
    }
    let refreshes = requests(stage, "POST", REFRESH);
    assert!(
        !refreshes.is_empty() && refreshes.iter().all(|request| [503, 403].contains(&request.status)),
        "{refreshes:#?}"
    );
    redis.restart();
    assert_eq!(again(stage).as_deref(), Some("alice"));
    assert_eq!(stage.lab.told("device_proof_refused"), 0);
}

#[test]
fn an_instance_that_dies_takes_nobody_with_it() {
    play_over_redis(Kind::BindingChromium, OFFERS, |stage, _, _| {
        sign_in(stage, "alice");
        stage.lab.stop_instance(0);
        stage.browser.open(DESK);
        stage.browser.forget_cookie(SESSION);
        assert_eq!(again(stage).as_deref(), Some("alice"));
    });
}

/// Who it is once the browser, which waits a while after a failure, has tried again.
fn again(stage: &mut Stage) -> Option<String> {
    poll(|| {
        let script = "const answer = await fetch('/'); return answer.ok ? (await answer.json()).user : null";
        stage.browser.try_run(script).ok()?.as_str().map(str::to_owned)
    })
}
