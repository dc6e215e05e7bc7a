//! What `benches/stores` measures one store with: it starts two instances of lab and speaks HTTP to them.
//!
//! Usage: stores_driver LAB NAME STORE

mod lab;

use std::{
    env,
    process::Command,
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use lab::{Connection, Lab, percentile};

const FRESH: u64 = 300;
const SESSIONS: usize = 3000;
const LIVE: usize = 100_000;

/// Signs `count` users in, over many connections. Their cookies.
fn sign_in(lab: &Lab, count: usize, connections: usize) -> Vec<String> {
    let all = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for worker in 0..connections {
            let all = &all;
            scope.spawn(move || {
                let mut connection = Connection::open(&lab.address);
                let mut mine = Vec::new();
                for number in (worker..count).step_by(connections) {
                    let answer = connection.ask("POST", "/login", "", &format!("user=user{number}"));
                    assert_eq!(answer.status, 204);
                    mine.push(answer.cookies.expect("both cookies"));
                }
                all.lock().expect("no panic").extend(mine);
            });
        }
    });
    all.into_inner().expect("no panic")
}

/// Sends one request of each jar over so many connections. The times, how long it took in all, and the cookies after.
fn each(
    lab: &Lab,
    jars: &[String],
    connections: usize,
    method: &str,
    path: &str,
    body: &str,
) -> (Vec<Duration>, Duration, Vec<String>) {
    let done = Mutex::new((Vec::new(), Vec::new()));
    let begun = Instant::now();
    thread::scope(|scope| {
        for worker in 0..connections {
            let done = &done;
            scope.spawn(move || {
                let mut connection = Connection::open(&lab.address);
                let (mut times, mut after) = (Vec::new(), Vec::new());
                for jar in jars.iter().skip(worker).step_by(connections) {
                    let asked = Instant::now();
                    let answer = connection.ask(method, path, jar, body);
                    times.push(asked.elapsed());
                    assert!(answer.status < 300, "{} {}", answer.status, answer.body);
                    after.push(answer.cookies.unwrap_or_else(|| jar.clone()));
                    let _ = answer.session;
                }
                let mut done = done.lock().expect("no panic");
                done.0.extend(times);
                done.1.extend(after);
            });
        }
    });
    let (times, after) = done.into_inner().expect("no panic");
    (times, begun.elapsed(), after)
}

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let [_, lab, name, store] = arguments.as_slice() else { panic!("usage: stores_driver LAB NAME STORE") };
    let keys = Command::new(lab).arg("--print-new-keys").output().expect("keys").stdout;
    let keys = String::from_utf8(keys).expect("text").trim().to_owned();
    let one = Lab::start(lab, store, &keys, &[]);
    // Memory is not shared, and neither is measured against another instance.
    let two = (store != "memory").then(|| Lab::start(lab, store, &keys, &[]));
    let mut jars = sign_in(&one, SESSIONS, 8);
    for connections in [1, 64] {
        one.pass(FRESH);
        if let Some(two) = &two {
            two.pass(FRESH);
        }
        let cpu = one.cpu();
        let (mut times, took, after) = each(&one, &jars, connections, "GET", "/", "");
        let cpu = one.cpu() - cpu;
        jars = after;
        println!(
            "{name}: renewal over HTTP, {connections} connections: P50 {:.2} ms, P99 {:.2} ms, {:.0} a second, {:.0} a second and core of the instance",
            percentile(&mut times, 0.5),
            percentile(&mut times, 0.99),
            times.len() as f64 / took.as_secs_f64(),
            times.len() as f64 / cpu.max(0.01)
        );
    }
    // What each costs the store, by verb; benches/stores counts what reaches the server.
    for (what, method, path, body) in [
        ("admitted", "GET", "/", ""),
        ("read", "GET", "/data/colour", ""),
        ("write", "POST", "/data/colour", "green"),
    ] {
        let some = &jars[..500];
        if what == "read" {
            each(&one, some, 8, "POST", "/data/colour", "blue");
        }
        let before = trips(store);
        let (mut times, ..) = each(&one, some, 8, method, path, body);
        let after = trips(store);
        println!(
            "{name}: {what}: {} P50 {:.2} ms",
            match (before, after) {
                (Some(before), Some(after)) =>
                    format!("{:.2} commands a request at the server,", (after - before) as f64 / 500.0),
                _ => "commands not counted,".into(),
            },
            percentile(&mut times, 0.5)
        );
    }
    if trips(store).is_some() {
        one.pass(FRESH);
        let before = trips(store).unwrap_or(0);
        let (_, _, after) = each(&one, &jars[..500], 8, "GET", "/", "");
        jars.splice(..500, after);
        let after = trips(store).unwrap_or(0);
        println!("{name}: renewal: {:.2} commands a request at the server", (after - before) as f64 / 500.0);
    }
    if let Some(two) = &two {
        let mut times = Vec::new();
        let (mut here, mut there) = (Connection::open(&one.address), Connection::open(&two.address));
        // Both clocks agree again.
        if trips(store).is_some() {
            two.pass(FRESH);
        }
        for number in 0..500 {
            let jar =
                here.ask("POST", "/login", "", &format!("user=leaving{number}")).cookies.expect("cookies");
            assert!(there.ask("GET", "/", &jar, "").body.contains("leaving"));
            assert_eq!(here.ask("POST", "/logout", &jar, "").status, 204);
            let ended = Instant::now();
            while there.ask("GET", "/", &jar, "").body.contains("leaving") {}
            times.push(ended.elapsed());
        }
        println!(
            "{name}: a revocation holds at the other instance: P50 {:.2} ms, P99 {:.2} ms, worst of 500 {:.2} ms after the answer",
            percentile(&mut times, 0.5),
            percentile(&mut times, 0.99),
            percentile(&mut times, 1.0)
        );
    }
    if name == "redis" {
        let before = one.resident();
        sign_in(&one, LIVE, 16);
        println!(
            "{name}: resident memory of the instance: {before} KiB, after {LIVE} more live sessions {} KiB",
            one.resident()
        );
    }
    println!("{name}: counters {}", one.counters());
}

/// How many commands or transactions the server has done for clients, without those of the feed (about 130 a second from two
/// instances, which are few beside what is measured, and counted before and after).
fn trips(store: &str) -> Option<u64> {
    if let Some(rest) = store.strip_prefix("redis://") {
        let port = rest.rsplit(':').next()?;
        let said = Command::new("redis-cli").args(["-p", port, "info", "commandstats"]).output().ok()?;
        let said = String::from_utf8(said.stdout).ok()?;
        let calls = |line: &str| line.split("calls=").nth(1)?.split(',').next()?.parse::<u64>().ok();
        let counts = ["cmdstat_evalsha:", "cmdstat_get:"];
        // GET is called by scripts too; what is left of it are the epochs that renewals read.
        let wanted = |line: &&str| counts.iter().any(|name| line.starts_with(name));
        return Some(said.lines().filter(wanted).filter_map(calls).sum());
    }
    None
}
