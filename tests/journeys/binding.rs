//! How much of a client must stay the same: presets, single signals, lookups, a proxy's header (A01, A80).

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use portcullis::{
    BindingPolicy, ClientContext, SessionEvent,
    session::{ContextSignal, Reaction},
};

use crate::{
    browser::{Browser, CHROME, FIREFOX_ON_WINDOWS, FIREFOX_UPDATED},
    handlers::{details, recent, who},
    stage::{FRESH, Stage},
};

on_every_store!(
    nothing_is_compared_where_binding_is_off,
    a_strict_site_refuses_another_network_and_platform,
    a_signal_that_is_only_noted_changes_nothing,
    one_change_is_told_once,
    another_address_of_the_same_network_is_no_change_where_networks_are_looked_up,
    networks_are_looked_up_only_where_something_changed,
    client_hints_count_where_they_are_asked_for,
    a_proxy_s_header_counts_only_from_the_proxy,
    a_handler_is_told_how_the_client_relates,
);

async fn with(stage: &Stage, policy: BindingPolicy) -> (Stage, Browser) {
    let stage = stage.rebuilt(|builder| builder.binding(policy));
    stage.layer.ready().await.unwrap();
    let alice = stage.signed_in("alice").await;
    (stage, alice)
}

const ELSEWHERE: [u8; 4] = [198, 51, 100, 7];

async fn nothing_is_compared_where_binding_is_off(stage: Stage) {
    let (stage, alice) = with(&stage, BindingPolicy::off()).await;
    let mut other = alice;
    other.address = IpAddr::from(ELSEWHERE);
    for user_agent in [Some(CHROME), Some(FIREFOX_ON_WINDOWS), None] {
        other.user_agent = user_agent;
        assert_eq!(other.who().await, "alice");
        assert_eq!(other.visit(recent).await.ok(), "recent");
        stage.pass(FRESH / 4);
    }
    assert_eq!(stage.events.names(), [""; 0]);
}

async fn a_strict_site_refuses_another_network_and_platform(stage: Stage) {
    let (stage, mut alice) = with(&stage, BindingPolicy::strict()).await;
    let mut moved = alice.clone();
    moved.address = IpAddr::from(ELSEWHERE);
    let mut windows = alice.clone();
    windows.user_agent = Some(FIREFOX_ON_WINDOWS);
    for _ in 0..2 {
        for thief in [&moved, &windows] {
            assert_eq!(thief.ask(who).await.ok(), "nobody");
            assert_eq!(stage.events.names(), ["session_refused"]);
        }
        let mut other_family = alice.clone();
        other_family.address = "2001:db8::1".parse().unwrap();
        assert_eq!(other_family.ask(recent).await.status, 403, "asked to step up, not let around it");
        stage.forget();
        let mut updated = alice.clone();
        updated.user_agent = Some(FIREFOX_UPDATED);
        assert_eq!(updated.ask(who).await.ok(), "alice", "an update is no change");
        stage.forget();
        stage.pass(FRESH);
    }
    assert_eq!(alice.who().await, "alice");
}

async fn a_signal_that_is_only_noted_changes_nothing(stage: Stage) {
    let policy = BindingPolicy::default().on(ContextSignal::Address, Reaction::Note);
    let (stage, mut alice) = with(&stage, policy).await;
    alice.address = IpAddr::from(ELSEWHERE);
    assert_eq!(alice.visit(recent).await.ok(), "recent");
    let told = stage.events.take();
    assert!(matches!(told[..], [SessionEvent::ContextChanged(_, ContextSignal::Address)]), "{told:?}");
    // Of two renewals at once both are let in.
    stage.pass(FRESH);
    let before = alice.clone();
    assert_eq!(alice.who().await, "alice");
    assert_eq!(before.ask(who).await.ok(), "alice");
    assert!(alice.visit(details).await.ok().contains("\"context_changed\":false"));
}

async fn one_change_is_told_once(stage: Stage) {
    let mut alice = stage.signed_in("alice").await;
    alice.address = IpAddr::from(ELSEWHERE);
    for _ in 0..20 {
        alice.who().await;
    }
    assert_eq!(stage.events.names(), ["session_context_changed"]);
}

async fn another_address_of_the_same_network_is_no_change_where_networks_are_looked_up(stage: Stage) {
    let look_up = |address: IpAddr| match address {
        IpAddr::V4(address) if address.octets()[0] == 192 => Some("AS64496".to_owned()),
        IpAddr::V4(_) => Some("AS64511".to_owned()),
        IpAddr::V6(_) => None,
    };
    let stage = stage.rebuilt(|builder| builder.network_lookup(look_up));
    stage.layer.ready().await.unwrap();
    let mut alice = stage.signed_in("alice").await;
    alice.address = IpAddr::from([192, 88, 99, 1]);
    stage.pass(FRESH);
    assert_eq!(alice.who().await, "alice");
    assert_eq!(stage.events.names(), ["session_renewed"]);
    let mut other = alice.clone();
    other.address = IpAddr::from(ELSEWHERE);
    assert_eq!(other.who().await, "alice");
    assert_eq!(other.ask(recent).await.status, 403);
    let told = stage.events.take();
    assert!(matches!(told[..], [SessionEvent::ContextChanged(_, ContextSignal::Network)]), "{told:?}");
}

async fn networks_are_looked_up_only_where_something_changed(stage: Stage) {
    let lookups = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&lookups);
    let stage = stage.rebuilt(|builder| {
        builder.network_lookup(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            Some("AS64496".into())
        })
    });
    stage.layer.ready().await.unwrap();
    let mut alice = stage.signed_in("alice").await;
    assert_eq!(lookups.swap(0, Ordering::Relaxed), 1, "at login");
    for _ in 0..3 {
        stage.pass(FRESH);
        assert_eq!(alice.who().await, "alice");
    }
    assert_eq!(lookups.load(Ordering::Relaxed), 0, "nothing changed");
    alice.user_agent = Some(FIREFOX_UPDATED);
    assert_eq!(alice.who().await, "alice");
    assert_eq!(lookups.load(Ordering::Relaxed), 0, "another version, a fresh cookie");
    stage.pass(FRESH);
    assert_eq!(alice.who().await, "alice");
    assert_eq!(lookups.load(Ordering::Relaxed), 1, "the session follows its client");
}

async fn client_hints_count_where_they_are_asked_for(stage: Stage) {
    let policy = BindingPolicy::default().on(ContextSignal::Hints, Reaction::Reject);
    let stage = stage.rebuilt(|builder| builder.binding(policy));
    stage.layer.ready().await.unwrap();
    let hinted = |browser: &Browser, brands: &str| {
        let browser = browser.with_field("sec-ch-ua", brands).with_field("sec-ch-ua-mobile", "?0");
        browser.with_field("sec-ch-ua-platform", "\"Linux\"")
    };
    let mut alice = hinted(&stage.browser(), "\"Google Chrome\";v=\"155\", \"Not.A/Brand\";v=\"24\"");
    alice.login("alice").await;
    let plain = Browser { fields: Vec::new(), ..alice.clone() };
    let updated = hinted(&plain, "\"Not)A;Brand\";v=\"8\", \"Google Chrome\";v=\"156\"");
    assert_eq!(updated.ask(who).await.ok(), "alice");
    assert_eq!(hinted(&plain, "\"Brave\";v=\"156\"").ask(who).await.ok(), "nobody");
    assert_eq!(plain.ask(who).await.ok(), "nobody", "what is missing is no match");
    assert_eq!(plain.with_field("upgrade", "websocket").ask(who).await.ok(), "alice", "sockets carry none");
}

async fn a_proxy_s_header_counts_only_from_the_proxy(stage: Stage) {
    let policy = BindingPolicy::default()
        .on(ContextSignal::Header, Reaction::Reject)
        .on(ContextSignal::Address, Reaction::Ignore);
    let stage = stage
        .rebuilt(|builder| builder.binding(policy).trusted_proxies(["10.0.0.0/8"]).context_header("x-ja4"));
    stage.layer.ready().await.unwrap();
    let shows = |browser: &Browser, fingerprint: &str| {
        let mut browser = Browser { fields: Vec::new(), ..browser.clone() };
        browser.address = IpAddr::from([10, 0, 0, 1]);
        browser.with_field("x-forwarded-for", "192.0.2.1").with_field("x-ja4", fingerprint)
    };
    let mut alice = shows(&stage.browser(), "t13d1516h2_8daaf6152771_e5627efa2ab1");
    alice.login("alice").await;
    let resumed = shows(&alice, "t13d1517h1_8daaf6152771_b1ff8ab2d16f");
    assert_eq!(resumed.ask(who).await.ok(), "alice", "the same browser, another handshake");
    assert_eq!(shows(&alice, "t13d1516h2_0123456789ab_e5627efa2ab1").ask(who).await.ok(), "nobody");
    let mut outside = shows(&alice, "t13d1516h2_8daaf6152771_e5627efa2ab1");
    outside.address = IpAddr::from([192, 0, 2, 1]);
    assert_eq!(outside.ask(who).await.ok(), "nobody", "anybody can write a header");
}

async fn a_handler_is_told_how_the_client_relates(stage: Stage) {
    async fn relation(client: ClientContext) -> String {
        assert!(!format!("{client:?}").contains("192.0.2"));
        format!("{} {:?}", client.change().name(), client.address())
    }
    let mut alice = stage.signed_in("alice").await;
    assert_eq!(alice.ask(relation).await.ok(), "same Some(192.0.2.1)");
    assert_eq!(stage.browser().ask(relation).await.ok(), "same Some(192.0.2.1)");
    alice.user_agent = Some(FIREFOX_UPDATED);
    assert_eq!(alice.ask(relation).await.ok(), "drift Some(192.0.2.1)");
    alice.address = IpAddr::from(ELSEWHERE);
    assert_eq!(alice.ask(relation).await.ok(), "changed Some(198.51.100.7)");
    alice.user_agent = Some(CHROME);
    assert_eq!(alice.ask(relation).await.ok(), "rejected Some(198.51.100.7)");
    assert_eq!(alice.ask(relation).await.field("vary"), "Cookie");
}
