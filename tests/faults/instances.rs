//! Instances that differ: in their keys (A66), in their clocks (A51), and in when they start.

use std::time::Duration;

use crate::{
    lab::{FRESH, Flags, Lab},
    outage::on_real_servers,
    stage::{Server, now},
};

on_real_servers!(
    a66_a_rolling_restart,
    a66_a_rolling_deploy_of_a_new_key,
    a51_clocks_half_a_minute_apart,
    another_instance_hears_of_an_end_at_once,
);

fn flags(server: &Server, keys: &str) -> Flags {
    let flags = Flags { keys: Some(keys.into()), store: server.url(), ..Flags::memory() };
    flags.with(&["--clock", "manual@1800000000"])
}

/// Instances of one version that start, stop and come back while people work: nobody notices.
async fn a66_a_rolling_restart(server: Server) {
    let flags = flags(&server, &Lab::new_keys());
    let mut labs = [Lab::start(&flags), Lab::start(&flags)];
    let mut alice = labs[0].signed_in("alice").await;
    let mut second = 0;
    for round in 0..6 {
        second += FRESH;
        for lab in &labs {
            lab.pass(FRESH).await;
        }
        for number in [0, 1, 0] {
            let mut there = alice.at(&labs[number]);
            assert_eq!(there.who().await.as_deref(), Some("alice"), "round {round}");
            alice = there;
        }
        let restarted = round % 2;
        labs[restarted].stop();
        labs[restarted] = Lab::start(&flags);
        labs[restarted].pass(second).await;
    }
    assert_eq!(labs[0].told("authn_token_reuse") + labs[1].told("authn_token_reuse"), 0);
}

/// A new key is spread (pending), then becomes active, instance by instance, with requests that go back and forth between
/// the old and the new: nobody is signed out, and no instance writes what another cannot read.
async fn a66_a_rolling_deploy_of_a_new_key(server: Server) {
    let (old, other) = (Lab::new_keys(), Lab::new_keys());
    let lines: Vec<&str> = old.split(';').collect();
    let key = lines.iter().find(|line| line.contains(" active ")).unwrap();
    let index = lines.iter().find(|line| line.starts_with("index ")).unwrap();
    let new = other.split(';').find(|line| line.contains(" active ")).unwrap();
    let spreading = [*key, &new.replace(" active ", " pending "), index].join(";");
    let active = [&key.replace(" active ", " retired "), new, index].join(";");
    let mut labs = [Lab::start(&flags(&server, &old)), Lab::start(&flags(&server, &old))];
    let mut alice = labs[0].signed_in("alice").await;
    let mut second = 0;
    for (number, keys) in [(0, &spreading), (1, &spreading), (0, &active), (1, &active)] {
        labs[number].stop();
        labs[number] = Lab::start(&flags(&server, keys));
        labs[number].pass(second).await;
        for round in 0..3 {
            second += FRESH;
            for lab in &labs {
                lab.pass(FRESH).await;
            }
            // Renewed at one, shown to the other, both ways.
            for instance in [round % 2, (round + 1) % 2, round % 2] {
                let mut there = alice.at(&labs[instance]);
                assert_eq!(there.who().await.as_deref(), Some("alice"));
                assert_eq!(there.visit("POST", "/data/colour", "green").await.status, 204);
                assert_eq!(there.visit("GET", "/data/colour", "").await.status, 200);
                alice = there;
            }
        }
    }
    for lab in &labs {
        assert_eq!((lab.told("record_tampered"), lab.told("crypt_decrypt_fail")), (0, 0));
    }
}

/// Sessions go by the store's clock, so it does not matter what an instance thinks.
async fn a51_clocks_half_a_minute_apart(server: Server) {
    let flags =
        Flags { keys: Some(Lab::new_keys()), store: server.url(), manual_clock: false, ..Flags::memory() };
    let flags = flags.with(&["--fresh", "2", "--grace", "1"]);
    let ahead = Lab::start(&flags.clone().with(&["--ahead", "30000"]));
    let behind = Lab::start(&flags.with(&["--ahead", "-30000"]));
    for lab in [&ahead, &behind] {
        assert!(lab.log().contains("let NTP set both clocks"), "it is said");
    }
    let mut alice = ahead.signed_in("alice").await;
    let mut renewals = 0;
    for _ in 0..3 {
        for lab in [&behind, &ahead] {
            // Until it is stale, by real time: the store's is no test's.
            tokio::time::sleep(Duration::from_millis(2100)).await;
            let mut there = alice.at(lab);
            let answer = there.visit("GET", "/", "").await;
            assert_eq!(answer.user().as_deref(), Some("alice"));
            renewals += u64::from(answer.cookies.sets(crate::jar::RENEWAL).is_some());
            let elsewhere = there.at(if std::ptr::eq(lab, &ahead) { &behind } else { &ahead });
            let answer = elsewhere.ask("GET", "/", "").await;
            assert_eq!(answer.user().as_deref(), Some("alice"));
            assert!(answer.cookies.is_empty(), "what one minted is fresh at the other");
            alice = there;
        }
    }
    assert_eq!(renewals, 6, "each was stale when its time was over, and not before");
    assert_eq!(ahead.told("authn_token_reuse") + behind.told("authn_token_reuse"), 0);
}

async fn another_instance_hears_of_an_end_at_once(server: Server) {
    let flags = flags(&server, &Lab::new_keys());
    let (one, two) = (Lab::start(&flags), Lab::start(&flags));
    let mut took = Vec::new();
    for number in 0..40 {
        let mut browser = one.signed_in("alice").await;
        let there = browser.at(&two);
        assert_eq!(there.ask("GET", "/", "").await.user().as_deref(), Some("alice"));
        let path = if number % 2 == 0 { "/logout" } else { "/logout-everywhere" };
        assert_eq!(browser.visit("POST", path, "").await.status, 204);
        let ended = now();
        while there.ask("GET", "/", "").await.user().is_some() {
            assert!(ended.elapsed() < Duration::from_secs(5), "it was never heard of");
        }
        took.push(ended.elapsed());
    }
    // Everybody at once.
    let carol = one.signed_in("carol").await.at(&two);
    one.pass(1).await;
    two.pass(1).await;
    let answer = one.browser().ask("POST", "/lab/logout-before-now", "").await;
    assert_eq!(answer.status, 204);
    let ended = now();
    while carol.ask("GET", "/", "").await.user().is_some() {
        assert!(ended.elapsed() < Duration::from_secs(5), "it was never heard of");
    }
    took.push(ended.elapsed());
    took.sort();
    println!("MEASURED heard of by the other instance: median {:?}, worst of 40 {:?}", took[20], took[39]);
    // Well below the second look at the feed, which would mean that nothing was heard.
    assert!(took[20] < Duration::from_millis(200), "{took:?}");
}
