//! The same site over HTTP/2: no Host but an authority, cookies in crumbs, many requests at once on one connection.

use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Empty};
use hyper::{body::Bytes, client::conn::http2::SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{net::TcpStream, task::JoinSet};

use crate::{
    jar::Lines,
    lab::{Browser, FRESH, Lab, within},
    on_every_store,
};

on_every_store!(
    a71_two_users_on_the_streams_of_one_connection,
    a25_under_another_authority,
    a32_over_http2_a_change_from_another_site,
);

type Connection = SendRequest<Empty<Bytes>>;

async fn connect(lab: &Lab) -> Connection {
    let stream = TcpStream::connect(lab.address()).await.unwrap();
    let executor = TokioExecutor::new();
    let (sender, connection) =
        hyper::client::conn::http2::handshake(executor, TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

/// What a browser sends: its cookies each in a field of its own, as HTTP/2 lets it.
fn request(
    browser: &Browser,
    method: Method,
    authority: &str,
    fields: &[(&str, &str)],
) -> Request<Empty<Bytes>> {
    let mut request = Request::builder().method(method).uri(format!("https://{authority}/"));
    request = request.header(header::USER_AGENT, browser.user_agent.unwrap());
    for crumb in browser.jar.field(browser.lab.second()).iter().flat_map(|field| field.split("; ")) {
        request = request.header(header::COOKIE, crumb);
    }
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    request.body(Empty::new()).unwrap()
}

async fn send(connection: &Connection, request: Request<Empty<Bytes>>) -> (StatusCode, HeaderMap, String) {
    let mut connection = connection.clone();
    let (parts, body) = within(connection.send_request(request)).await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (parts.status, parts.headers, String::from_utf8(body.to_vec()).unwrap())
}

/// Fresh and stale, `HEAD` among `GET`, a stranger between them, all under way at once.
async fn a71_two_users_on_the_streams_of_one_connection(lab: Lab) {
    let (mut alice, mut bob) = (lab.signed_in("alice").await, lab.signed_in("bob").await);
    let connection = connect(&lab).await;
    for stale in [false, true] {
        if stale {
            lab.pass(FRESH).await;
        }
        let mut streams = JoinSet::new();
        for number in 0..60 {
            let (user, browser) = match number % 3 {
                0 => ("\"alice\"", alice.clone()),
                1 => ("\"bob\"", bob.clone()),
                _ => ("null", lab.browser()),
            };
            let method = if number % 5 == 4 { Method::HEAD } else { Method::GET };
            let connection = connection.clone();
            streams.spawn(async move {
                let request = request(&browser, method.clone(), "app.site.test", &[]);
                let (status, headers, body) = send(&connection, request).await;
                assert_eq!(status, StatusCode::OK);
                assert_eq!(headers["vary"], "Cookie");
                assert!(
                    method == Method::HEAD || body.contains(&format!("\"user\":{user}")),
                    "{user}: {body}"
                );
                (user, Lines::of(&headers))
            });
        }
        let mut tokens = (0, 0);
        for (user, lines) in streams.join_all().await {
            let owner = match user {
                "\"alice\"" => Some((&mut alice, &mut tokens.0)),
                "\"bob\"" => Some((&mut bob, &mut tokens.1)),
                _ => None,
            };
            let Some((owner, tokens)) = owner else {
                assert!(lines.is_empty(), "a stranger was given cookies");
                continue;
            };
            *tokens += usize::from(lines.sets(crate::jar::RENEWAL).is_some());
            owner.jar.take(&lines, lab.second());
        }
        assert_eq!(tokens, if stale { (1, 1) } else { (0, 0) }, "one successor each");
        assert_eq!(alice.who().await.as_deref(), Some("alice"));
        assert_eq!(bob.who().await.as_deref(), Some("bob"));
    }
}

async fn a25_under_another_authority(lab: Lab) {
    let alice = lab.signed_in("alice").await;
    let connection = connect(&lab).await;
    for (authority, fields, user) in [
        ("app.site.test", &[][..], "\"alice\""),
        ("app.site.test:443", &[], "\"alice\""),
        ("evil.test", &[], "null"),
        ("app.site.test:8443", &[], "null"),
        ("app.site.test", &[("x-forwarded-proto", "http")], "null"),
    ] {
        let (status, headers, body) =
            send(&connection, request(&alice, Method::GET, authority, fields)).await;
        assert_eq!(status, StatusCode::OK);
        assert!(body.contains(&format!("\"user\":{user}")), "{authority} {fields:?}: {body}");
        assert!(!headers.contains_key("set-cookie"));
    }
}

async fn a32_over_http2_a_change_from_another_site(lab: Lab) {
    let alice = lab.signed_in("alice").await;
    let connection = connect(&lab).await;
    for (fields, expected) in [
        (&[("origin", "https://app.site.test")][..], StatusCode::METHOD_NOT_ALLOWED),
        (&[("origin", "https://evil.test")], StatusCode::FORBIDDEN),
        (&[("origin", "https://app.site.test"), ("origin", "https://evil.test")], StatusCode::FORBIDDEN),
        (&[("sec-fetch-site", "cross-site")], StatusCode::FORBIDDEN),
        (&[], StatusCode::FORBIDDEN),
    ] {
        let (status, ..) = send(&connection, request(&alice, Method::POST, "app.site.test", fields)).await;
        assert_eq!(status, expected, "{fields:?}");
    }
}
