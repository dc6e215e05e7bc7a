//! The example `lab` as a process of its own, and a browser that talks to it over real HTTP.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http::{HeaderMap, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::{
    jar::{Jar, Lines, RENEWAL, SESSION},
    proxy::Proxy,
    scratch::Scratch,
    unique::unique,
};

/// The default timeouts in seconds, which the stories speak of.
pub(crate) const FRESH: u64 = 300;
pub(crate) const GRACE: u64 = 30;
pub(crate) const IDLE: u64 = 1800;

const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0";

/// How a lab is started.
#[derive(Debug, Clone)]
pub(crate) struct Flags {
    pub(crate) store: String,
    pub(crate) keys: Option<String>,
    pub(crate) manual_clock: bool,
    /// Another origin than lab's own.
    pub(crate) origin: Option<String>,
    /// More for its environment.
    pub(crate) environment: Vec<(&'static str, PathBuf)>,
    /// More arguments.
    pub(crate) arguments: Vec<String>,
    /// So many instances share the store, behind a plain proxy that gives each connection to the next.
    pub(crate) instances: usize,
    /// Whether each request waits until all instances have heard of what it revoked.
    pub(crate) settles: bool,
}

impl Flags {
    /// Sessions in memory, on a clock that the test moves.
    pub(crate) fn memory() -> Self {
        Self {
            store: "memory".into(),
            keys: None,
            manual_clock: true,
            origin: None,
            environment: Vec::new(),
            arguments: Vec::new(),
            instances: 1,
            settles: true,
        }
    }

    /// Sessions in the file `path`, on a clock that the test moves.
    pub(crate) fn sqlite(path: &Path) -> Self {
        Self { store: format!("sqlite:{}", path.display()), ..Self::memory() }
    }

    /// Sessions in the Redis that `tests/servers` has started, shared by three instances. `None` without one.
    pub(crate) fn redis() -> Option<Self> {
        Self::shared("PORTCULLIS_TEST_REDIS").map(|flags| Self { instances: 3, ..flags })
    }

    /// Sessions in the PostgreSQL that `tests/servers` has started, shared by two instances. `None` without one.
    pub(crate) fn postgres() -> Option<Self> {
        Self::shared("PORTCULLIS_TEST_POSTGRES")
    }

    fn shared(variable: &str) -> Option<Self> {
        Some(Self {
            store: std::env::var(variable).ok()?,
            keys: Some(Lab::new_keys()),
            arguments: vec!["--prefix".into(), unique("lab")],
            instances: 2,
            ..Self::memory()
        })
    }

    /// The same with more arguments.
    pub(crate) fn with(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(ToString::to_string));
        self
    }
}

impl Flags {
    fn command(&self) -> Command {
        let mut command = Command::new(binary());
        command.args(["--listen", "127.0.0.1:0", "--store", &self.store]);
        if self.manual_clock {
            // Of several instances no clock is ahead of another by what starting takes; who wants that moves one.
            command.args(["--clock", if self.instances > 1 { "manual@1800000000" } else { "manual" }]);
        }
        if let Some(keys) = &self.keys {
            command.args(["--keys", keys]);
        }
        if let Some(origin) = &self.origin {
            command.args(["--origin", origin]);
        }
        // A machine that runs all tests at once is slow at times, which is no outage. Who tests outages says so again.
        command.args(["--verb-timeout", "10000"]).args(&self.arguments);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        // The log is searched for events, which colours would take apart.
        command.env("NO_COLOR", "1").stdin(Stdio::null());
        command
    }
}

/// A running lab. It is killed when the last clone is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Lab(Arc<Running>);

#[derive(Debug)]
struct Running {
    children: Mutex<Vec<Child>>,
    /// Of each instance.
    addresses: Vec<SocketAddr>,
    /// Where browsers go: the instance, or the proxy in front of several.
    address: SocketAddr,
    settles: bool,
    origin: String,
    _proxy: Option<Proxy>,
    /// Seconds by which the test has moved the clock.
    second: AtomicU64,
    scratch: Scratch,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Running {
    fn stop(&self) {
        for child in self.children.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Lab {
    /// Starts a lab on a port of its own and waits until it listens.
    pub(crate) fn start(flags: &Flags) -> Self {
        let scratch = Scratch::new();
        let (children, addresses): (Vec<_>, Vec<_>) = (0..flags.instances)
            .map(|number| start_one(flags, &scratch.file(&format!("log{number}"))))
            .unzip();
        let proxy = (flags.instances > 1).then(|| Proxy::start(addresses.clone()));
        let address = proxy.as_ref().map_or(addresses[0], |proxy| proxy.address);
        let (children, second) = (Mutex::new(children), AtomicU64::new(0));
        Self(Arc::new(Running {
            children,
            addresses,
            address,
            settles: flags.settles,
            origin: flags.origin.clone().unwrap_or_else(|| "https://app.site.test".into()),
            _proxy: proxy,
            second,
            scratch,
        }))
    }

    /// What a lab says that does not start; `None` if it does.
    pub(crate) fn refusal(flags: &Flags) -> Option<String> {
        let mut child = flags.command().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().ok()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take()?).read_line(&mut line).ok()?;
        if !line.is_empty() {
            let _ = child.kill();
        }
        let ended = child.wait_with_output().ok()?;
        line.is_empty().then(|| String::from_utf8_lossy(&ended.stderr).into_owned())
    }

    /// A key ring as lab makes it.
    pub(crate) fn new_keys() -> String {
        let made = Command::new(binary()).arg("--print-new-keys").output().expect("lab prints keys");
        String::from_utf8(made.stdout).expect("keys are text").trim().into()
    }

    /// Ends the process as a crash does, whoever still holds a browser of it.
    pub(crate) fn stop(&self) {
        self.0.stop();
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// Seconds since the test began, by the clock it moves.
    pub(crate) fn second(&self) -> u64 {
        self.0.second.load(Ordering::SeqCst)
    }

    /// Where each instance listens.
    pub(crate) fn instances(&self) -> &[SocketAddr] {
        &self.0.addresses
    }

    /// The process of an instance.
    pub(crate) fn process(&self, number: usize) -> u32 {
        self.0.children.lock().unwrap_or_else(PoisonError::into_inner)[number].id()
    }

    /// Ends one instance as a crash does.
    pub(crate) fn stop_instance(&self, number: usize) {
        let mut children = self.0.children.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = children[number].kill();
        let _ = children[number].wait();
    }

    /// The origin it serves.
    pub(crate) fn origin(&self) -> &str {
        &self.0.origin
    }

    /// Moves the clocks.
    pub(crate) async fn pass(&self, seconds: u64) {
        for address in self.instances() {
            let request = Request::builder().method("POST").uri("/lab/clock").header(header::HOST, "lab");
            let (parts, _) = exchange(*address, request.body(seconds.to_string()).expect("a request")).await;
            assert_eq!(parts.status, StatusCode::NO_CONTENT);
        }
        self.0.second.fetch_add(seconds, Ordering::SeqCst);
    }

    /// How often the log so far tells of `event`.
    pub(crate) fn told(&self, event: &str) -> usize {
        self.log().lines().filter(|line| line.contains(&format!("event=\"{event}\""))).count()
    }

    /// Everything it has logged.
    pub(crate) fn log(&self) -> String {
        let log = |number| self.0.scratch.file(&format!("log{number}"));
        let read = |number| std::fs::read_to_string(log(number)).expect("the log can be read");
        (0..self.instances().len()).map(read).collect()
    }

    /// Waits until all instances know of everything that was revoked.
    pub(crate) async fn settle(&self) {
        settle(self.instances().to_vec()).await;
    }

    /// What the counters of an instance say.
    pub(crate) async fn counters(&self, instance: usize) -> serde_json::Value {
        let request = Request::builder().uri("/lab/counters").header(header::HOST, "lab");
        let request = request.body(String::new()).expect("a request");
        let (_, body) = exchange(self.instances()[instance], request).await;
        serde_json::from_slice(&body).expect("JSON")
    }

    /// Sends bytes as they are over a connection of their own, and reads the status of the answer and all that follows
    /// it. `None` if the connection is closed without one.
    pub(crate) fn raw(&self, request: &[u8]) -> Option<(u16, String)> {
        let mut stream = std::net::TcpStream::connect(self.address()).expect("lab listens");
        stream.set_read_timeout(Some(LIMIT)).expect("a time limit");
        // It may answer, and close, before it has read everything.
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1)?.parse().ok()?;
        Some((status, answer))
    }

    /// A browser that was never here.
    pub(crate) fn browser(&self) -> Browser {
        Browser {
            lab: self.clone(),
            jar: Jar::default(),
            user_agent: Some(FIREFOX),
            states_origin: true,
            fields: Vec::new(),
        }
    }

    /// A browser in which `user` has just signed in.
    pub(crate) async fn signed_in(&self, user: &str) -> Browser {
        let mut browser = self.browser();
        let answer = browser.visit("POST", "/login", &format!("user={user}")).await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT);
        browser
    }
}

/// A browser. A clone of it is a thief's copy.
#[derive(Clone)]
pub(crate) struct Browser {
    pub(crate) lab: Lab,
    pub(crate) jar: Jar,
    pub(crate) user_agent: Option<&'static str>,
    /// Whether it says where its pages come from, as browsers do with what could change something.
    pub(crate) states_origin: bool,
    /// Fields that every request of this browser carries beside the usual ones.
    pub(crate) fields: Vec<(&'static str, Vec<u8>)>,
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
    /// The same browser with another jar.
    pub(crate) fn with_jar(&self, jar: Jar) -> Self {
        Self { jar, ..self.clone() }
    }

    /// The same browser holding nothing but these values under our names.
    pub(crate) fn holding(&self, session: Option<&str>, token: Option<&str>) -> Self {
        let mut jar = Jar::default();
        for (name, value) in [(SESSION, session), (RENEWAL, token)] {
            if let Some(value) = value {
                jar.put(name, value);
            }
        }
        self.with_jar(jar)
    }

    /// What it holds under a name of ours.
    pub(crate) fn value(&self, name: &str) -> String {
        self.jar.value(name).expect("it holds one").to_owned()
    }

    /// The same browser without its session cookie, so that its token is used at once.
    pub(crate) fn with_token_alone(&self) -> Self {
        self.with_jar(self.jar.without(SESSION))
    }

    /// The same browser whose requests carry one more field.
    pub(crate) fn with_field(&self, name: &'static str, value: impl AsRef<[u8]>) -> Self {
        let mut browser = self.clone();
        browser.fields.push((name, value.as_ref().to_vec()));
        browser
    }

    /// The same browser at another lab.
    pub(crate) fn at(&self, lab: &Lab) -> Self {
        Self { lab: lab.clone(), ..self.clone() }
    }

    /// Sends a request over a connection of its own, and leaves the jar as it is.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        body: &str,
    ) -> impl Future<Output = Answer> + Send + use<> {
        let address = self.lab.address();
        let mut request = self.head(Request::builder().method(method).uri(path));
        if body.contains('=') {
            request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        }
        let has_cookies = request.headers_ref().is_some_and(|headers| headers.contains_key(header::COOKIE));
        let instances = self.lab.instances();
        let settles = has_cookies && instances.len() > 1 && self.lab.0.settles;
        let settling = if settles { instances.to_vec() } else { Vec::new() };
        let request = request.body(body.to_owned()).expect("a request");
        async move {
            let (parts, body) = exchange(address, request).await;
            settle(settling).await;
            let cookies = Lines::of(&parts.headers);
            let body = String::from_utf8(body.to_vec()).expect("lab speaks UTF-8");
            Answer { status: parts.status, headers: parts.headers, body, cookies }
        }
    }

    /// Sends a request, and takes what the answer does to the jar.
    pub(crate) async fn visit(&mut self, method: &str, path: &str, body: &str) -> Answer {
        let answer = self.ask(method, path, body).await;
        self.take(&answer);
        answer
    }

    /// Takes what an answer does to the jar.
    pub(crate) fn take(&mut self, answer: &Answer) {
        self.jar.take(&answer.cookies, self.lab.second());
    }

    /// Who lab says this is.
    pub(crate) async fn who(&mut self) -> Option<String> {
        self.visit("GET", "/", "").await.user()
    }

    /// A request with what this browser always sends: its name, and its cookies.
    pub(crate) fn head(&self, mut request: http::request::Builder) -> http::request::Builder {
        let origin = self.lab.origin();
        let host = origin.split_once("://").map_or(origin, |(_, host)| host);
        let says = |name| self.fields.iter().any(|(field, _)| *field == name);
        let states_origin = !request.method_ref().is_none_or(http::Method::is_safe) || says("upgrade");
        if !says("host") {
            request = request.header(header::HOST, host);
        }
        if self.states_origin && states_origin && !says("origin") {
            request = request.header(header::ORIGIN, origin);
        }
        if let Some(user_agent) = self.user_agent {
            request = request.header(header::USER_AGENT, user_agent);
        }
        for (name, value) in &self.fields {
            request = request.header(*name, value.as_slice());
        }
        match self.jar.field(self.lab.second()) {
            Some(cookies) => request.header(header::COOKIE, cookies),
            None => request,
        }
    }
}

impl Answer {
    /// The body, which must be JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        assert_eq!(self.status, StatusCode::OK, "{self:?}");
        serde_json::from_str(&self.body).expect("JSON")
    }

    /// The user that the answer of `/` names.
    pub(crate) fn user(&self) -> Option<String> {
        self.json()["user"].as_str().map(str::to_owned)
    }
}

fn start_one(flags: &Flags, log: &Path) -> (Child, SocketAddr) {
    let log = File::create(log).expect("the log can be written");
    let started = flags.command().stdout(Stdio::piped()).stderr(log).spawn();
    let mut child = started.expect("the example `lab` was built with the tests");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("standard output is piped");
    BufReader::new(stdout).read_line(&mut line).expect("it says where it listens");
    let address = line.trim().strip_prefix("listening on ").and_then(|address| address.parse().ok());
    (child, address.unwrap_or_else(|| panic!("it said {line:?}")))
}

/// One request over a connection of its own.
async fn exchange(
    address: SocketAddr,
    request: Request<String>,
) -> (http::response::Parts, hyper::body::Bytes) {
    within(async {
        let stream = loop {
            match TcpStream::connect(address).await {
                Ok(stream) => break stream,
                // Thousands of requests, each over a connection of its own, use up the machine's ports for a while.
                Err(error) if error.kind() == std::io::ErrorKind::AddrNotAvailable => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(error) => panic!("lab does not listen: {error}"),
            }
        };
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP/1.1");
        tokio::spawn(connection);
        let response = sender.send_request(request).await.expect("an answer");
        let (parts, body) = response.into_parts();
        (parts, body.collect().await.expect("a whole body").to_bytes())
    })
    .await
}

/// Waits until instances know of everything that was revoked. They hear of it within milliseconds by themselves; this way no
/// test hangs on how many.
async fn settle(instances: Vec<SocketAddr>) {
    for instance in instances {
        let request = Request::builder().method("POST").uri("/lab/settle").header(header::HOST, "lab");
        exchange(instance, request.body(String::new()).expect("a request")).await;
    }
}

/// Waits for what must not take long.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(LIMIT, future).await.expect("an answer within the time limit")
}

/// Asks until the answer is yes, for at most `limit`.
pub(crate) async fn eventually<F: Future<Output = bool>>(limit: Duration, mut holds: impl FnMut() -> F) {
    let polled = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(limit, polled)
        .await
        .unwrap_or_else(|_| panic!("it did not come about within {limit:?}"));
}

/// Tests lie in `deps/`, examples beside it.
fn binary() -> PathBuf {
    // Whoever names another lab, as `tests/attacks/prove` does, knows what it is.
    if let Some(lab) = std::env::var_os("PORTCULLIS_LAB") {
        return lab.into();
    }
    let test = std::env::current_exe().expect("the test knows its own path");
    let folder = test.parent().and_then(Path::parent).expect("tests lie two folders deep");
    let lab = folder.join("examples").join(format!("lab{}", std::env::consts::EXE_SUFFIX));
    // Cargo builds examples with `cargo test`, but not with `cargo test --test stories`, which would then prove an older
    // lab. Sources that are newer than the test itself are being edited at this moment, and are none of its business.
    let modified = |path: &Path| path.metadata().and_then(|file| file.modified()).expect("it was built");
    let (built, tested) = (modified(&lab), modified(&test));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for source in [root.join("src"), root.join("examples/lab")].iter().flat_map(|folder| files(folder)) {
        let changed = modified(&source);
        assert!(
            changed < built || tested < changed,
            "{} is newer than lab: run `cargo build --example lab` first",
            source.display()
        );
    }
    lab
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

const LIMIT: Duration = Duration::from_secs(20);
