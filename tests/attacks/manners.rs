//! What answers say to browsers and caches.

use http::HeaderMap;

use crate::{
    jar::{RENEWAL, SESSION},
    lab::{Answer, FRESH, Lab},
    on_every_store,
    tools::{assert_nobody, user_of},
};

on_every_store!(
    a30_a_removal_that_browsers_obey,
    a33_every_line_states_same_site,
    a34_a_strict_cookie_and_a_link,
    a36_no_body_holds_a_credential,
    a57_shared_caches,
    a65_two_users_of_one_browser_at_once,
    a71_two_users_on_one_connection,
);

/// Answers of every kind that sets, renews or removes a cookie.
async fn answers_with_cookies(lab: &Lab) -> Vec<(&'static str, Answer)> {
    let mut browser = lab.browser();
    let mut answers = vec![("anonymous", browser.visit("POST", "/data/x", "1").await)];
    answers.push(("login", browser.visit("POST", "/login", "user=alice&role=admin").await));
    answers.push(("claims", browser.visit("POST", "/claims", "role=reader").await));
    lab.pass(FRESH).await;
    answers.push(("renewal", browser.visit("GET", "/", "").await));
    answers.push(("reauthentication", browser.visit("POST", "/reauthenticate", "").await));
    lab.pass(FRESH).await;
    answers.push(("a failed renewal", browser.visit("GET", "/status/500", "").await));
    answers.push(("logout", browser.visit("POST", "/logout", "").await));
    browser.visit("POST", "/login", "user=alice&remember=yes").await;
    answers.push(("everywhere", browser.visit("POST", "/logout-everywhere", "").await));
    for (what, answer) in &answers {
        assert!(!answer.cookies.is_empty(), "{what}");
    }
    answers
}

/// The reference user agent keeps the cookies at login and has forgotten them after the removal, whatever attribute a
/// browser insists on; [`Lines`](crate::jar::Lines) holds each removal against it as well.
async fn a30_a_removal_that_browsers_obey(lab: Lab) {
    let attributes = |line: &str| {
        let mut attributes: Vec<String> =
            line.split("; ").skip(1).filter(|part| !part.starts_with("Max-Age")).map(str::to_owned).collect();
        attributes.sort();
        attributes
    };
    for form in ["user=alice", "user=alice&remember=yes"] {
        for path in ["/logout", "/logout-everywhere"] {
            let mut browser = lab.browser();
            let login = browser.visit("POST", "/login", form).await;
            let logout = browser.visit("POST", path, "").await;
            for name in [SESSION, RENEWAL] {
                assert!(logout.cookies.removes(name));
                let (set, removed) = (login.cookies.text(name).unwrap(), logout.cookies.text(name).unwrap());
                assert_eq!(attributes(set), attributes(removed), "{name}");
            }
            assert_eq!(browser.jar.field(lab.second()), None, "the browser holds nothing");
        }
    }
}

async fn a33_every_line_states_same_site(lab: Lab) {
    for (what, answer) in answers_with_cookies(&lab).await {
        for line in answer.headers.get_all("set-cookie") {
            let line = line.to_str().unwrap();
            assert!(line.contains("; SameSite=Lax") || line.contains("; SameSite=Strict"), "{what}: {line}");
        }
    }
}

/// A link from another site arrives without Strict cookies: the page is a stranger's, and the session lives on.
async fn a34_a_strict_cookie_and_a_link(lab: Lab) {
    let browser = lab.signed_in("alice").await;
    let arriving = lab
        .browser()
        .with_field("sec-fetch-site", "cross-site")
        .with_field("sec-fetch-mode", "navigate")
        .with_field("sec-fetch-dest", "document")
        .with_field("sec-fetch-user", "?1")
        .with_field("referer", "https://elsewhere.test/");
    for _ in 0..2 {
        let answer = assert_nobody(&arriving, "a link").await;
        assert_eq!(answer.status, 200);
        assert_eq!(user_of(&browser).await.as_deref(), Some("alice"));
        lab.pass(FRESH - 1).await;
    }
    lab.pass(2).await;
    let answer = browser.ask("GET", "/", "").await;
    assert!(answer.cookies.sets(RENEWAL).is_some(), "her token was not used up by it");
}

async fn a36_no_body_holds_a_credential(lab: Lab) {
    let mut browser = lab.browser();
    browser.visit("POST", "/login", "user=alice&role=admin").await;
    let other = lab.signed_in("alice").await;
    browser.visit("POST", "/data/colour", "green").await;
    let list = browser.ask("GET", "/sessions", "").await.json();
    let mut secrets = Vec::new();
    for holder in [&browser, &other] {
        for name in [SESSION, RENEWAL] {
            secrets.extend(holder.value(name).split('.').map(str::to_owned));
        }
    }
    for (method, path) in [
        ("GET", "/"),
        ("GET", "/sessions"),
        ("GET", "/data/colour"),
        ("GET", "/recent"),
        ("GET", "/status/404"),
        ("GET", "/nowhere"),
        ("GET", "/.well-known/jwks.json"),
        ("POST", "/claims"),
        ("DELETE", "/sessions/AAAAAAAAAAAAAAAAAAAAAA"),
        ("POST", "/logout"),
    ] {
        let answer = browser.ask(method, path, "").await;
        let set: Vec<_> = answer.headers.get_all("set-cookie").iter().collect();
        let mut others = HeaderMap::new();
        answer.headers.iter().filter(|(name, _)| *name != "set-cookie").for_each(|(name, value)| {
            others.append(name, value.clone());
        });
        let shown = format!("{} {others:?}", answer.body);
        for secret in &secrets {
            for part in secret.as_bytes().chunks(16).filter(|part| part.len() == 16) {
                let part = std::str::from_utf8(part).unwrap();
                assert!(!shown.contains(part), "{method} {path} shows {part}");
            }
        }
        assert!(set.iter().all(|line| line.to_str().unwrap().contains("; HttpOnly")), "scripts see none");
    }
    // The list shows names that open nothing.
    assert_eq!(list.as_array().map(Vec::len), Some(2));
    for entry in list.as_array().unwrap() {
        let handle = entry["handle"].as_str().unwrap();
        assert_nobody(&lab.browser().holding(Some(handle), Some(handle)), "a handle").await;
    }
}

async fn a57_shared_caches(lab: Lab) {
    for (what, answer) in answers_with_cookies(&lab).await {
        // It empties sibling sites too, or stalls the browser: never without the operator's wish.
        assert!(!answer.headers.contains_key("clear-site-data"), "{what}");
        let caching = answer.headers["cache-control"].to_str().unwrap();
        assert_eq!(caching, "no-store", "{what}");
        let vary = answer.headers["vary"].to_str().unwrap().to_ascii_lowercase();
        assert!(vary.split(',').any(|name| name.trim() == "cookie"), "{what}: {vary}");
    }
    // A page that looked at who is there, without setting anything, and the same for a stranger.
    let browser = lab.signed_in("alice").await;
    for asking in [browser, lab.browser()] {
        let answer = asking.ask("GET", "/", "").await;
        assert!(answer.cookies.is_empty());
        assert_eq!(answer.headers["cache-control"], "private, no-store");
        assert_eq!(answer.headers["vary"].to_str().unwrap().to_ascii_lowercase(), "cookie");
    }
}

/// Two users who look alike in everything but their cookies renew at the same moment.
async fn a65_two_users_of_one_browser_at_once(lab: Lab) {
    let (alice, bob) = (lab.signed_in("alice").await, lab.signed_in("bob").await);
    lab.pass(FRESH).await;
    let mut requests = tokio::task::JoinSet::new();
    for number in 0..40 {
        let (user, browser) = if number % 2 == 0 { ("alice", &alice) } else { ("bob", &bob) };
        let (mut kept, asked) = (browser.clone(), browser.ask("GET", "/", ""));
        requests.spawn(async move {
            let answer = asked.await;
            kept.take(&answer);
            (user, answer.user(), kept)
        });
    }
    for (user, answered, kept) in requests.join_all().await {
        assert_eq!(answered.as_deref(), Some(user));
        assert_eq!(user_of(&kept).await.as_deref(), Some(user), "and so with the cookies it set");
    }
}

/// Requests of two users, stale and fresh, and of a stranger between them, one after the other on one connection.
async fn a71_two_users_on_one_connection(lab: Lab) {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    let (alice, bob) = (lab.signed_in("alice").await, lab.signed_in("bob").await);
    let stream = std::net::TcpStream::connect(lab.address()).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    for round in 0..40 {
        if round == 20 {
            lab.pass(FRESH).await;
        }
        for (user, browser) in [("\"alice\"", Some(&alice)), ("null", None), ("\"bob\"", Some(&bob))] {
            let cookies = browser.and_then(|browser| browser.jar.field(lab.second()));
            let cookies = cookies.map(|field| format!("Cookie: {field}\r\n")).unwrap_or_default();
            let agent = "Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0";
            write!(stream, "GET / HTTP/1.1\r\nHost: app.site.test\r\nUser-Agent: {agent}\r\n{cookies}\r\n")
                .unwrap();
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                    length = value.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let body = String::from_utf8(body).unwrap();
            assert!(body.contains(&format!("\"user\":{user}")), "{round}: {user} got {body}");
        }
    }
}
