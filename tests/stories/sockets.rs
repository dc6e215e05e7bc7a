//! WebSockets live as long as their session, and not a second longer (A15).

use std::{net::TcpStream, time::Duration};

use http::{Request, StatusCode};
use tokio_tungstenite::tungstenite::{
    Error, HandshakeError, Message, WebSocket, client::IntoClientRequest as _, client::client,
    protocol::frame::coding::CloseCode,
};

use crate::lab::{Browser, FRESH, IDLE, Lab};

crate::on_every_store!(
    a_logout_closes_the_socket,
    a_logout_everywhere_closes_the_sockets_of_all_browsers,
    the_idle_timeout_closes_the_socket,
    a_renewal_does_not_close_the_socket,
    a_stale_cookie_opens_three_sockets_and_no_more,
    a_stranger_gets_no_socket,
);

/// A socket that blocks: the server is another process, so nothing here waits for this thread.
struct Socket(WebSocket<TcpStream>);

impl Socket {
    fn open(browser: &Browser) -> Result<Self, StatusCode> {
        let mut request = format!("ws://{}/ws", browser.lab.address()).into_client_request().unwrap();
        let says_origin = browser.fields.iter().any(|(name, _)| *name == "origin");
        let mut head = browser.head(Request::builder());
        if !says_origin {
            head = head.header("origin", browser.lab.origin());
        }
        let head = head.body(()).unwrap();
        for (name, value) in head.headers() {
            request.headers_mut().insert(name, value.clone());
        }
        let stream = TcpStream::connect(browser.lab.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        match client(request, stream) {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(HandshakeError::Failure(Error::Http(response))) => {
                assert!(response.body().as_ref().is_none_or(Vec::is_empty));
                Err(response.status())
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn assert_echoes(&mut self) {
        self.0.send(Message::text("are you there")).unwrap();
        assert_eq!(self.0.read().unwrap(), Message::text("are you there"));
    }

    /// 1008: the session ended, do not just connect again.
    fn assert_closed_by_policy(&mut self) {
        match self.0.read().expect("a close frame in time") {
            Message::Close(Some(frame)) => assert_eq!(frame.code, CloseCode::Policy),
            other => panic!("{other:?}"),
        }
    }
}

/// A deadline is looked at once a second; the rest is for a busy machine.
const PATIENCE: Duration = Duration::from_secs(3);

async fn a_logout_closes_the_socket(lab: Lab) {
    let mut browser = lab.signed_in("alice").await;
    let mut other = Socket::open(&lab.signed_in("alice").await).unwrap();
    let mut socket = Socket::open(&browser).unwrap();
    socket.assert_echoes();
    browser.visit("POST", "/logout", "").await;
    socket.assert_closed_by_policy();
    other.assert_echoes();
}

async fn a_logout_everywhere_closes_the_sockets_of_all_browsers(lab: Lab) {
    let mut browser = lab.signed_in("alice").await;
    let mut here = Socket::open(&browser).unwrap();
    let mut there = Socket::open(&lab.signed_in("alice").await).unwrap();
    let mut bob_s = Socket::open(&lab.signed_in("bob").await).unwrap();
    browser.visit("POST", "/logout-everywhere", "").await;
    here.assert_closed_by_policy();
    there.assert_closed_by_policy();
    bob_s.assert_echoes();
}

async fn the_idle_timeout_closes_the_socket(lab: Lab) {
    let mut socket = Socket::open(&lab.signed_in("alice").await).unwrap();
    lab.pass(IDLE - 1).await;
    socket.assert_echoes();
    lab.pass(1).await;
    socket.assert_closed_by_policy();
}

async fn a_renewal_does_not_close_the_socket(lab: Lab) {
    let mut browser = lab.signed_in("alice").await;
    let mut socket = Socket::open(&browser).unwrap();
    for _ in 0..IDLE / FRESH + 1 {
        lab.pass(FRESH).await;
        assert_eq!(browser.who().await.as_deref(), Some("alice"));
        socket.assert_echoes();
    }
    browser.visit("POST", "/logout", "").await;
    socket.assert_closed_by_policy();
}

async fn a_stale_cookie_opens_three_sockets_and_no_more(lab: Lab) {
    let mut browser = lab.signed_in("alice").await;
    lab.pass(FRESH).await;
    let mut sockets: Vec<Socket> = (0..3).map(|_| Socket::open(&browser).unwrap()).collect();
    assert_eq!(Socket::open(&browser).err(), Some(StatusCode::UNAUTHORIZED));
    sockets.iter_mut().for_each(Socket::assert_echoes);
    assert_eq!(browser.who().await.as_deref(), Some("alice"));
    assert!(Socket::open(&browser).is_ok());
}

async fn a_stranger_gets_no_socket(lab: Lab) {
    assert_eq!(Socket::open(&lab.browser()).err(), Some(StatusCode::UNAUTHORIZED));
    let mut browser = lab.signed_in("alice").await;
    let copy = browser.clone();
    browser.visit("POST", "/logout", "").await;
    assert_eq!(Socket::open(&copy).err(), Some(StatusCode::UNAUTHORIZED));
}
