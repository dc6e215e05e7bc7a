//! One browser of a site. A clone of it is a thief's copy: same cookies, same client, unless the test changes that.

use std::{future::Future, net::IpAddr, time::Duration};

use axum::{Router, body::Body, handler::Handler, routing::any};
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

use crate::{
    handlers::{login, who},
    jar::{Jar, Lines},
    stage::Stage,
};

pub(crate) const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0";
pub(crate) const FIREFOX_UPDATED: &str =
    "Mozilla/5.0 (X11; Linux x86_64; rv:154.0) Gecko/20100101 Firefox/154.0";
pub(crate) const FIREFOX_ON_WINDOWS: &str =
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:153.0) Gecko/20100101 Firefox/153.0";
pub(crate) const CHROME: &str =
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36";

/// A browser.
#[derive(Clone)]
pub(crate) struct Browser {
    pub(crate) stage: Stage,
    pub(crate) jar: Jar,
    pub(crate) user_agent: Option<&'static str>,
    pub(crate) address: IpAddr,
    /// Whether it says where its pages come from, as browsers do with what could change something.
    pub(crate) states_origin: bool,
    /// Fields that every request of this browser carries beside the usual ones.
    pub(crate) fields: Vec<(&'static str, String)>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
    pub(crate) cookies: Lines,
}

impl Browser {
    pub(crate) fn new(stage: Stage) -> Self {
        let address = IpAddr::from([192, 0, 2, 1]);
        Self {
            stage,
            jar: Jar::default(),
            user_agent: Some(FIREFOX),
            address,
            states_origin: true,
            fields: Vec::new(),
        }
    }

    /// The same browser with another jar.
    pub(crate) fn with_jar(&self, jar: Jar) -> Self {
        Self { jar, ..self.clone() }
    }

    /// The same browser at another instance or site.
    pub(crate) fn at(&self, stage: &Stage) -> Self {
        Self { stage: stage.clone(), ..self.clone() }
    }

    /// The same browser whose requests carry one more field.
    pub(crate) fn with_field(&self, name: &'static str, value: impl Into<String>) -> Self {
        let mut browser = self.clone();
        browser.fields.push((name, value.into()));
        browser
    }

    /// The same browser where it asks by itself, without what pages make it send.
    pub(crate) fn without_fields(mut self) -> Self {
        self.fields.clear();
        self
    }

    /// Sends a request to an application that consists of `handler`, and leaves the jar as it is. The future owns what
    /// it needs, so that several can be under way at once.
    pub(crate) fn ask<H, T>(&self, handler: H) -> impl Future<Output = Answer> + Send + use<H, T>
    where
        H: Handler<T, ()>,
        T: 'static,
    {
        self.send(Method::GET, handler)
    }

    /// The same at another path.
    pub(crate) fn ask_at<H, T>(
        &self,
        path: &'static str,
        handler: H,
    ) -> impl Future<Output = Answer> + Send + use<H, T>
    where
        H: Handler<T, ()>,
        T: 'static,
    {
        let app = Router::new().route(path, any(handler)).layer(self.stage.layer.clone());
        let mut request = self.request(Method::GET);
        *request.uri_mut() = http::Uri::from_static(path);
        answer(app, request)
    }

    /// The same with a POST.
    pub(crate) fn post<H, T>(&self, handler: H) -> impl Future<Output = Answer> + Send + use<H, T>
    where
        H: Handler<T, ()>,
        T: 'static,
    {
        self.send(Method::POST, handler)
    }

    /// The same with any method.
    pub(crate) fn send<H, T>(
        &self,
        method: Method,
        handler: H,
    ) -> impl Future<Output = Answer> + Send + use<H, T>
    where
        H: Handler<T, ()>,
        T: 'static,
    {
        let app = Router::new().route("/", any(handler)).layer(self.stage.layer.clone());
        answer(app, self.request(method))
    }

    /// Sends a request, and takes what the answer does to the jar.
    pub(crate) async fn visit<H, T>(&mut self, handler: H) -> Answer
    where
        H: Handler<T, ()>,
        T: 'static,
    {
        let answer = self.ask(handler).await;
        self.take(&answer);
        answer
    }

    /// Takes what an answer does to the jar.
    pub(crate) fn take(&mut self, answer: &Answer) {
        self.jar.take(&answer.cookies, self.stage.second());
    }

    /// Who the application thinks this is.
    pub(crate) async fn who(&mut self) -> String {
        self.visit(who).await.ok()
    }

    /// Signs in, which must succeed.
    pub(crate) async fn login(&mut self, user: &'static str) {
        self.visit(login(user)).await.ok();
    }

    /// What it sends.
    pub(crate) fn request(&self, method: Method) -> Request<Body> {
        let says = |name| self.fields.iter().any(|(field, _)| *field == name);
        let states_origin = !method.is_safe() || says("upgrade");
        let mut request = Request::builder().method(method).uri("/");
        if self.states_origin && states_origin && !says("origin") {
            request = request.header(header::ORIGIN, &self.stage.origin);
        }
        if let Some(user_agent) = self.user_agent {
            request = request.header(header::USER_AGENT, user_agent);
        }
        if let Some(cookies) = self.jar.field(self.stage.second()) {
            request = request.header(header::COOKIE, cookies);
        }
        for (name, value) in &self.fields {
            request = request.header(*name, value.as_bytes());
        }
        request.extension(self.address).body(Body::empty()).unwrap()
    }
}

/// What an application answers, within a time limit.
pub(crate) async fn answer(app: Router, request: Request<Body>) -> Answer {
    let answered = async {
        let response = app.oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (parts, String::from_utf8(body.to_vec()).unwrap())
    };
    let (parts, body) = tokio::time::timeout(LIMIT, answered).await.expect("an answer within the time limit");
    let cookies = Lines::of(&parts.headers);
    Answer { status: parts.status, headers: parts.headers, body, cookies }
}

impl Answer {
    /// The body of an answer that must be 200.
    pub(crate) fn ok(&self) -> String {
        assert_eq!(self.status, StatusCode::OK, "{self:?}");
        self.body.clone()
    }

    /// The field `name`; several are joined as HTTP joins them.
    pub(crate) fn field(&self, name: &str) -> String {
        let values: Vec<&str> =
            self.headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect();
        values.join(", ")
    }

    /// Asserts the answer of a store outage: come again, and nothing happened to the cookies.
    pub(crate) fn assert_unavailable(&self) {
        assert_eq!(self.status, StatusCode::SERVICE_UNAVAILABLE, "{self:?}");
        assert_eq!(self.field("retry-after"), "1");
        assert!(self.cookies.is_empty(), "{self:?}");
    }
}

const LIMIT: Duration = Duration::from_secs(30);
