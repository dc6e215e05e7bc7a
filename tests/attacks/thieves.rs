//! Somebody copies the whole jar, from the same network and with the same browser: the hardest thief there is without
//! device keys (A02, A73, A75). Whoever of the two renews first, the alarm trips and both are out.

use crate::{
    jar::RENEWAL,
    lab::{Browser, FRESH, GRACE, IDLE, Lab},
};

crate::on_every_store!(
    a02_a_thief_who_renews_first,
    a02_a_thief_who_renews_second,
    a73_a_thief_in_step_with_the_owner,
    a75_a_thief_overnight,
);

/// The alarm rang once, and neither of the two gets in again, fresh cookie or not.
async fn both_are_out(owner: &mut Browser, thief: &mut Browser) {
    let lab = owner.lab.clone();
    assert_eq!(lab.told("authn_token_reuse"), 1);
    // The third time the instance has forgotten the revocation, and the store must know it.
    for _ in 0..3 {
        assert_eq!(owner.who().await, None);
        assert_eq!(thief.who().await, None);
        lab.pass(FRESH).await;
    }
    assert_eq!(lab.told("authn_token_reuse"), 1);
    let answer = owner.visit("POST", "/login", "user=alice").await;
    assert!(answer.cookies.sets(RENEWAL).is_some());
    assert_eq!(owner.who().await.as_deref(), Some("alice"));
    assert_eq!(thief.who().await, None);
}

async fn a02_a_thief_who_renews_first(lab: Lab) {
    let mut owner = lab.signed_in("alice").await;
    let mut thief = owner.clone();
    for _ in 0..2 {
        lab.pass(FRESH).await;
        assert_eq!(thief.who().await.as_deref(), Some("alice"), "for now");
    }
    assert_eq!(owner.who().await, None);
    both_are_out(&mut owner, &mut thief).await;
}

async fn a02_a_thief_who_renews_second(lab: Lab) {
    let mut owner = lab.signed_in("alice").await;
    let mut thief = owner.clone();
    for _ in 0..2 {
        lab.pass(FRESH).await;
        assert_eq!(owner.who().await.as_deref(), Some("alice"));
    }
    assert_eq!(thief.who().await, None);
    both_are_out(&mut owner, &mut thief).await;
}

/// The thief renews shortly after each renewal of the owner, or shortly before it, within the grace or beyond.
async fn a73_a_thief_in_step_with_the_owner(lab: Lab) {
    for (lag, thief_leads) in
        [1, 15, GRACE, GRACE + 15].into_iter().flat_map(|lag| [(lag, false), (lag, true)])
    {
        let mut owner = lab.signed_in("alice").await;
        let mut thief = owner.clone();
        let alarms = lab.told("authn_token_reuse");
        let began = lab.second();
        loop {
            lab.pass(FRESH).await;
            let (first, second) =
                if thief_leads { (&mut thief, &mut owner) } else { (&mut owner, &mut thief) };
            let leader = first.who().await;
            lab.pass(lag).await;
            let follower = second.who().await;
            if leader.is_none() && follower.is_none() {
                break;
            }
            assert!(lab.second() - began <= 4 * FRESH + 4 * lag, "{lag} s apart, he is still in");
        }
        assert_eq!(lab.told("authn_token_reuse"), alarms + 1, "{lag} s apart, he leads: {thief_leads}");
        assert_eq!((owner.who().await, thief.who().await), (None, None));
    }
}

async fn a75_a_thief_overnight(lab: Lab) {
    let mut owner = lab.signed_in("alice").await;
    let mut thief = owner.clone();
    for _ in 0..20 {
        lab.pass(IDLE - 1).await;
        assert_eq!(thief.who().await.as_deref(), Some("alice"), "nobody else is there to notice");
    }
    // The owner's token is long past its own `exp`, and still tells that there are two.
    assert_eq!(owner.who().await, None);
    both_are_out(&mut owner, &mut thief).await;
}
