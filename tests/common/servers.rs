//! Servers of a test's own, to be killed, stopped and restarted.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::{
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use crate::scratch::Scratch;

/// Whether a program can be started.
pub(crate) fn is_there(program: &str) -> bool {
    let question = if program == "openssl" { "version" } else { "--version" };
    Command::new(program).arg(question).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Where PostgreSQL's programs are, if they are.
pub(crate) fn postgres_programs() -> Option<PathBuf> {
    // Debian keeps them beside others of their version.
    let mut versions: Vec<_> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    versions.sort();
    versions.pop().map(|version| version.join("bin")).filter(|bin| bin.join("initdb").exists())
}

/// A port that nobody listens on, whose bus port (10,000 above, for a cluster) is free as well.
pub(crate) fn free_port() -> u16 {
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it listens").port();
        // Below those that the system gives to clients, so that none of them takes it while the server is down.
        let port = 12_000 + port % 9_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok()
            && TcpListener::bind(("127.0.0.1", port + 10_000)).is_ok()
        {
            return port;
        }
    }
}

/// A Redis that keeps every write on disk before it answers.
#[derive(Debug)]
pub(crate) struct Redis {
    pub(crate) port: u16,
    folder: Scratch,
    arguments: Vec<String>,
    child: Mutex<Option<Child>>,
}

impl Redis {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let (port, folder) = (free_port(), Scratch::new());
        let arguments = arguments.iter().map(ToString::to_string).collect();
        let redis = Self { port, folder, arguments, child: Mutex::new(None) };
        redis.restart();
        redis
    }

    /// Starts it again, with what it has on disk, and waits until it answers.
    pub(crate) fn restart(&self) {
        let mut command = Command::new("redis-server");
        let port = self.port.to_string();
        let folder = self.folder.file("");
        command.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--logfile", "log"]);
        command.arg("--dir").arg(folder);
        if !self.arguments.iter().any(|argument| argument == "--sentinel") {
            command.args(["--appendonly", "yes", "--appendfsync", "always"]);
        }
        let child = command.args(&self.arguments).stdout(Stdio::null()).spawn().expect("redis-server starts");
        *self.child() = Some(child);
        let answers =
            || matches!(self.cli(&["ping"]).trim(), said if said == "PONG" || said.starts_with("NOAUTH"));
        assert!(
            (0..400).any(|_| answers() || {
                thread::sleep(Duration::from_millis(25));
                false
            }),
            "it answers"
        );
    }

    /// A sentinel that watches `primary` under the name `main`.
    pub(crate) fn sentinel(primary: u16) -> Self {
        let (port, folder) = (free_port(), Scratch::new());
        let text = format!(
            "port {port}\nbind 127.0.0.1\nsentinel monitor main 127.0.0.1 {primary} 1\n\
             sentinel down-after-milliseconds main 600\nsentinel failover-timeout main 3000\n"
        );
        let file = folder.file("conf");
        std::fs::write(&file, text).expect("the configuration can be written");
        let child = Command::new("redis-server")
            .arg(file)
            .arg("--sentinel")
            .stdout(Stdio::null())
            .spawn()
            .expect("the sentinel starts");
        let sentinel = Self { port, folder, arguments: Vec::new(), child: Mutex::new(Some(child)) };
        let answers = || sentinel.cli(&["ping"]).trim() == "PONG";
        assert!(
            (0..400).any(|_| answers() || {
                thread::sleep(Duration::from_millis(25));
                false
            }),
            "it answers"
        );
        sentinel
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// What `redis-cli` prints.
    pub(crate) fn cli(&self, arguments: &[&str]) -> String {
        let port = self.port.to_string();
        let mut command = Command::new("timeout");
        command.args(["5", "redis-cli", "-h", "127.0.0.1", "-p", &port]).args(arguments);
        let output = command.stderr(Stdio::null()).output().expect("redis-cli runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The fields of a hash, whatever bytes they are.
    pub(crate) fn hash(&self, key: &str) -> Vec<(String, Vec<u8>)> {
        let text = "local out = {} local all = redis.call('HGETALL', KEYS[1]) \
                    for i = 1, #all do out[i] = (all[i]:gsub('.', function(c) return string.format('%02x', c:byte()) end)) end \
                    return out";
        let said = self.cli(&["eval", text, "1", key]);
        let bytes = |line: &str| -> Vec<u8> {
            let digits: Vec<_> = line.trim().chars().filter_map(|digit| digit.to_digit(16)).collect();
            digits.chunks(2).filter_map(|pair| u8::try_from(pair[0] * 16 + pair.get(1)?).ok()).collect()
        };
        let lines: Vec<_> = said.lines().map(bytes).collect();
        lines
            .chunks(2)
            .map(|pair| (String::from_utf8_lossy(&pair[0]).into_owned(), pair[1].clone()))
            .collect()
    }

    /// Sets a field of a hash to any bytes.
    pub(crate) fn set_field(&self, key: &str, field: &str, value: &[u8]) {
        let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = "return redis.call('HSET', KEYS[1], ARGV[1], \
                    (ARGV[2]:gsub('..', function(c) return string.char(tonumber(c, 16)) end)))";
        self.cli(&["eval", text, "1", key, field, &hex]);
    }

    /// Ends it as a crash does.
    pub(crate) fn kill(&self) {
        if let Some(mut child) = self.child().take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Makes it hang, or go on.
    pub(crate) fn signal(&self, signal: &str) {
        if let Some(child) = &*self.child() {
            signal_to(child.id(), signal);
        }
    }

    fn child(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.signal("CONT");
        self.kill();
    }
}

/// Sends a signal by its name.
pub(crate) fn signal_to(process: u32, signal: &str) {
    let _ = Command::new("kill").args([&format!("-{signal}"), &process.to_string()]).status();
}

/// Three primaries, each with a third of the slots; a slot whose node is down does not take the others with it.
#[derive(Debug)]
pub(crate) struct Cluster(pub(crate) [Redis; 3]);

impl Cluster {
    pub(crate) fn start() -> Self {
        let node = || {
            Redis::start(&[
                "--cluster-enabled",
                "yes",
                "--cluster-config-file",
                "nodes",
                "--cluster-node-timeout",
                "1000",
                "--cluster-require-full-coverage",
                "no",
            ])
        };
        let nodes = [node(), node(), node()];
        let addresses: Vec<_> = nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
        let mut create = vec!["--cluster", "create"];
        create.extend(addresses.iter().map(String::as_str));
        create.push("--cluster-yes");
        let made =
            Command::new("redis-cli").args(create).stdout(Stdio::null()).status().expect("redis-cli runs");
        assert!(made.success());
        let is_whole = |node: &Redis| node.cli(&["cluster", "info"]).contains("cluster_state:ok");
        let whole = || nodes.iter().all(is_whole);
        assert!(
            (0..400).any(|_| whole() || {
                thread::sleep(Duration::from_millis(25));
                false
            }),
            "it is whole"
        );
        Self(nodes)
    }

    pub(crate) fn url(&self) -> String {
        let addresses: Vec<_> = self.0.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
        format!("redis+cluster://{}", addresses.join(","))
    }
}

/// A PostgreSQL of a test's own.
#[derive(Debug)]
pub(crate) struct Postgres {
    pub(crate) port: u16,
    bin: PathBuf,
    folder: Scratch,
}

impl Postgres {
    /// `None` if it is not installed.
    pub(crate) fn start() -> Option<Self> {
        let bin = postgres_programs()?;
        let postgres = Self { port: free_port(), bin, folder: Scratch::new() };
        let folder = postgres.folder.file("");
        if is_root() {
            assert!(
                Command::new("chown").arg("postgres").arg(&folder).status().expect("chown runs").success()
            );
        }
        let data = postgres.data();
        postgres.run("initdb", &["-D", &data, "-U", "portcullis", "-A", "trust", "--no-sync"]);
        postgres.restart();
        let port = postgres.port.to_string();
        postgres.run("createdb", &["-h", "127.0.0.1", "-p", &port, "-U", "portcullis", "portcullis"]);
        Some(postgres)
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://portcullis@127.0.0.1:{}/portcullis", self.port)
    }

    pub(crate) fn restart(&self) {
        let options = format!(
            "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories={} -c fsync=off",
            self.port,
            self.folder.file("").display()
        );
        let log = self.folder.file("log").display().to_string();
        self.run("pg_ctl", &["-D", &self.data(), "-l", &log, "-w", "-o", &options, "start"]);
    }

    /// Ends it as a crash does.
    pub(crate) fn kill(&self) {
        self.run("pg_ctl", &["-D", &self.data(), "-m", "immediate", "-w", "stop"]);
    }

    /// Makes all its processes hang, or go on.
    pub(crate) fn signal(&self, signal: &str) {
        let pid = std::fs::read_to_string(self.folder.file("data/postmaster.pid")).unwrap_or_default();
        let Some(parent) = pid.lines().next() else { return };
        let listed = Command::new("ps").args(["-o", "pid=", "--ppid", parent, "-p", parent]).output();
        let listed = String::from_utf8_lossy(&listed.expect("ps runs").stdout).into_owned();
        for process in listed.split_whitespace().filter_map(|process| process.parse().ok()) {
            signal_to(process, signal);
        }
    }

    /// Runs a statement.
    pub(crate) fn sql(&self, statement: &str) {
        self.run("psql", &["-q", "-d", &self.url(), "-c", statement]);
    }

    /// The lines of a query's answer.
    pub(crate) fn rows(&self, query: &str) -> Vec<String> {
        let output =
            Command::new(self.bin.join("psql")).args(["-qAt", "-d", &self.url(), "-c", query]).output();
        String::from_utf8_lossy(&output.expect("psql runs").stdout).lines().map(str::to_owned).collect()
    }

    fn data(&self) -> String {
        self.folder.file("data").display().to_string()
    }

    /// PostgreSQL does not run as root.
    fn run(&self, program: &str, arguments: &[&str]) {
        let program = self.bin.join(program);
        let mut command = if is_root() {
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        command.args(arguments).current_dir("/").stdout(Stdio::null()).stderr(Stdio::null());
        assert!(command.status().expect("it runs").success(), "{arguments:?}");
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.signal("CONT");
        if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
            self.kill();
        }
    }
}

fn is_root() -> bool {
    std::env::var("USER").is_ok_and(|user| user == "root") || std::path::Path::new("/root").read_dir().is_ok()
}
