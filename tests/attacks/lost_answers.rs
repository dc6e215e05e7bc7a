//! Answers that get lost on the way (A05): the user stays in, and no alarm rings.

use crate::{
    jar::RENEWAL,
    lab::{Answer, Browser, FRESH, GRACE, IDLE, Lab},
};

crate::on_every_store!(
    a05_an_answer_is_lost_and_the_user_is_back_within_the_grace,
    a05_an_answer_is_lost_and_the_user_is_back_after_it,
    a05_an_answer_is_lost_and_the_user_is_back_much_later,
    a05_an_answer_is_lost_and_two_tabs_are_back_at_once,
    a05_answers_are_lost_again_and_again,
    a05_the_connection_is_dropped_before_the_answer,
);

/// A renewal whose answer never arrives.
async fn lose_an_answer(browser: &Browser) {
    let lost = browser.ask("GET", "/", "").await;
    assert!(lost.cookies.sets(RENEWAL).is_some());
}

/// The user goes on for a while, and nothing remains of what was lost.
async fn goes_on(browser: &mut Browser) {
    for _ in 0..4 {
        assert_eq!(browser.who().await.as_deref(), Some("alice"));
        browser.lab.pass(FRESH).await;
    }
    assert_eq!(browser.lab.told("authn_token_reuse"), 0);
}

async fn a05_an_answer_is_lost_and_the_user_is_back_within_the_grace(lab: Lab) {
    let mut browser = lab.signed_in("alice").await;
    lab.pass(FRESH).await;
    lose_an_answer(&browser).await;
    lab.pass(GRACE - 1).await;
    let answer = browser.visit("GET", "/", "").await;
    assert_eq!(answer.user().as_deref(), Some("alice"));
    assert!(answer.cookies.text(RENEWAL).is_none());
    lab.pass(FRESH).await;
    goes_on(&mut browser).await;
    assert_eq!(lab.told("renewal_answer_lost"), 1);
}

async fn a05_an_answer_is_lost_and_the_user_is_back_after_it(lab: Lab) {
    let mut browser = lab.signed_in("alice").await;
    lab.pass(FRESH).await;
    lose_an_answer(&browser).await;
    lab.pass(GRACE).await;
    goes_on(&mut browser).await;
    assert_eq!(lab.told("renewal_answer_lost"), 1);
}

async fn a05_an_answer_is_lost_and_the_user_is_back_much_later(lab: Lab) {
    let mut browser = lab.signed_in("alice").await;
    lab.pass(FRESH).await;
    lose_an_answer(&browser).await;
    lab.pass(IDLE - 1).await;
    goes_on(&mut browser).await;
}

/// Both tabs get a pair of their own. Whichever the browser keeps is good, and the other was never seen by anybody.
async fn a05_an_answer_is_lost_and_two_tabs_are_back_at_once(lab: Lab) {
    for (after, order) in [(1, [0, 1]), (1, [1, 0]), (GRACE, [0, 1]), (GRACE, [1, 0])] {
        let mut browser = lab.signed_in("alice").await;
        lab.pass(FRESH).await;
        lose_an_answer(&browser).await;
        lab.pass(after).await;
        let (first, second) = tokio::join!(browser.ask("GET", "/", ""), browser.ask("GET", "/data/x", ""));
        assert_eq!(first.user().as_deref(), Some("alice"));
        let answers: [Answer; 2] = [first, second];
        for at in order {
            browser.take(&answers[at]);
        }
        goes_on(&mut browser).await;
        // One of the two may also be lost.
        let mut tab = browser.clone();
        let (first, second) = tokio::join!(browser.ask("GET", "/", ""), tab.ask("GET", "/", ""));
        tab.take(if order[0] == 0 { &first } else { &second });
        lab.pass(FRESH).await;
        goes_on(&mut tab).await;
    }
}

async fn a05_answers_are_lost_again_and_again(lab: Lab) {
    let mut browser = lab.signed_in("alice").await;
    for _ in 0..5 {
        lab.pass(FRESH).await;
        lose_an_answer(&browser).await;
        lab.pass(GRACE).await;
        lose_an_answer(&browser).await;
        lab.pass(GRACE).await;
        assert_eq!(browser.who().await.as_deref(), Some("alice"));
    }
    lab.pass(FRESH).await;
    goes_on(&mut browser).await;
}

/// The browser hangs up at every stage of a renewal: whatever the server had done by then, the user stays in.
async fn a05_the_connection_is_dropped_before_the_answer(lab: Lab) {
    use std::io::Write as _;
    let mut browser = lab.signed_in("alice").await;
    for round in 0..30_u64 {
        lab.pass(FRESH).await;
        let field = browser.jar.field(lab.second()).unwrap();
        let agent = browser.user_agent.unwrap();
        let request = format!(
            "GET / HTTP/1.1\r\nHost: app.site.test\r\nUser-Agent: {agent}\r\nCookie: {field}\r\n\r\n"
        );
        let mut stream = std::net::TcpStream::connect(lab.address()).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(round)).await;
        drop(stream);
        // Two tabs come back, within the grace or after it.
        lab.pass(if round % 2 == 0 { 1 } else { GRACE }).await;
        let (first, second) = tokio::join!(browser.ask("GET", "/", ""), browser.ask("GET", "/", ""));
        for answer in [&first, &second] {
            assert_eq!(answer.user().as_deref(), Some("alice"), "hung up after {round} ms");
            browser.take(answer);
        }
    }
    lab.pass(FRESH).await;
    goes_on(&mut browser).await;
}
