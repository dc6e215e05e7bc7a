//! An instance of lab, and a connection to one.
#![allow(dead_code, reason = "each driver uses some of it")]

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    time::Duration,
};

/// An instance of lab, killed when it is dropped.
pub struct Lab {
    child: Child,
    pub address: String,
}

impl Lab {
    pub fn start(lab: &str, store: &str, keys: &str, more: &[&str]) -> Self {
        let mut command = Command::new(lab);
        command.args([
            "--store",
            store,
            "--keys",
            keys,
            "--clock",
            "manual@1800000000",
            "--verb-timeout",
            "10000",
        ]);
        command.args(["--prefix", "bench", "--idle", "86400", "--absolute", "864000"]).args(more);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("lab starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("listening on ").expect("it listens").to_owned();
        Self { child, address }
    }

    /// Seconds of processor time so far.
    pub fn cpu(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("it runs");
        let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
        let ticks: f64 =
            fields[11].parse::<f64>().expect("utime") + fields[12].parse::<f64>().expect("stime");
        ticks / 100.0
    }

    pub fn resident(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a size");
        line.split_whitespace().nth(1).expect("a number").parse().expect("a number")
    }

    pub fn pass(&self, seconds: u64) {
        Connection::open(&self.address).ask("POST", "/lab/clock", "", &seconds.to_string());
    }

    pub fn counters(&self) -> String {
        Connection::open(&self.address).ask("GET", "/lab/counters", "", "").body
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection to one.
pub struct Connection {
    stream: BufReader<TcpStream>,
}

pub struct Answer {
    pub status: u16,
    /// Both cookies as the next request sends them, if both were set.
    pub cookies: Option<String>,
    pub session: Option<String>,
    /// The other fields, by their names in lower case.
    pub fields: BTreeMap<String, String>,
    pub body: String,
}

impl Connection {
    pub fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("lab listens");
        stream.set_nodelay(true).expect("no delay");
        Self { stream: BufReader::new(stream) }
    }

    pub fn ask(&mut self, method: &str, path: &str, cookies: &str, body: &str) -> Answer {
        let form =
            if body.contains('=') { "Content-Type: application/x-www-form-urlencoded\r\n" } else { "" };
        let cookies = if cookies.is_empty() { String::new() } else { format!("Cookie: {cookies}\r\n") };
        self.send(method, path, &format!("{cookies}{form}"), body)
    }

    /// The same with these lines of fields.
    pub fn send(&mut self, method: &str, path: &str, lines: &str, body: &str) -> Answer {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: app.site.test\r\nOrigin: https://app.site.test\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 \
             Firefox/153.0\r\n{lines}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).expect("written");
        let mut status = 0;
        let (mut set, mut fields, mut length) = (BTreeMap::new(), BTreeMap::new(), 0);
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).expect("a line");
            let line = line.trim_end();
            if status == 0 {
                status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
            }
            if line.is_empty() {
                break;
            }
            let Some((name, value)) = line.split_once(": ") else { continue };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.parse().expect("a length");
            } else if name.eq_ignore_ascii_case("set-cookie") {
                let pair = value.split(';').next().unwrap_or_default();
                let name = pair.split('=').next().unwrap_or_default();
                set.insert(name.to_owned(), pair.to_owned());
            } else {
                fields.insert(name.to_ascii_lowercase(), value.to_owned());
            }
        }
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).expect("a body");
        let body = String::from_utf8(bytes).expect("text");
        let both: Vec<_> = set.values().cloned().collect();
        let session = set.iter().find(|(name, _)| name.ends_with("session")).map(|(_, pair)| pair.clone());
        Answer { status, cookies: (both.len() == 2).then(|| both.join("; ")), session, fields, body }
    }
}

/// In milliseconds.
pub fn percentile(times: &mut [Duration], part: f64) -> f64 {
    times.sort();
    times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1000.0
}
