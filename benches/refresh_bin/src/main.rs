//! What `benches/stores` measures of device-bound sessions: how long a refresh takes over HTTP, and how many an instance verifies.
//!
//! Usage: refresh_bin LAB NAME STORE

#[path = "../../../tests/common/device.rs"]
mod device;
#[path = "../../stores_bin/lab.rs"]
mod lab;

use std::{
    env,
    process::Command,
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use device::{Device, Offer};
use lab::{Answer, Connection, Lab, percentile};

const FRESH: u64 = 300;
const SESSIONS: usize = 2000;

/// A browser whose session is bound, and the proof that it shows next: made before, so that signing is not measured.
struct Bound {
    device: Device,
    proof: String,
}

impl Bound {
    fn take(&mut self, answer: &Answer) {
        assert_eq!(answer.status, 200, "{}", answer.body);
        let challenge = &answer.fields["secure-session-challenge"];
        self.device.take(&answer.body, challenge);
        self.proof = self.device.proof(&self.device.challenge);
    }
}

/// Runs `what` for each of so many, over connections; the times of what it measures, and how long all took.
fn each<T: Send>(
    lab: &Lab,
    connections: usize,
    items: &mut [T],
    what: impl Fn(&mut Connection, &mut T) -> Duration + Sync,
) -> (Vec<Duration>, Duration) {
    let times = Mutex::new(Vec::new());
    let begun = Instant::now();
    let share = items.len().div_ceil(connections);
    thread::scope(|scope| {
        for items in items.chunks_mut(share) {
            let (times, what) = (&times, &what);
            scope.spawn(move || {
                let mut connection = Connection::open(&lab.address);
                let mine: Vec<Duration> = items.iter_mut().map(|item| what(&mut connection, item)).collect();
                times.lock().expect("no panic").extend(mine);
            });
        }
    });
    (times.into_inner().expect("no panic"), begun.elapsed())
}

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let [_, lab, name, store] = arguments.as_slice() else { panic!("usage: refresh_bin LAB NAME STORE") };
    let keys = Command::new(lab).arg("--print-new-keys").output().expect("keys").stdout;
    let keys = String::from_utf8(keys).expect("text").trim().to_owned();
    let lab = Lab::start(lab, store, &keys, &["--device-binding", "offer"]);
    let mut bound: Vec<Bound> =
        (0..SESSIONS).map(|_| Bound { device: Device::new(7), proof: String::new() }).collect();
    each(&lab, 8, &mut bound, |connection, bound| {
        let login = connection.ask("POST", "/login", "", "user=alice");
        let offer = Offer::read(&login.fields["secure-session-registration"]).expect("an offer");
        let proof = bound.device.registration(&offer.challenge);
        let cookies = login.cookies.expect("both cookies");
        let lines = format!("Cookie: {cookies}\r\nSecure-Session-Response: {proof}\r\n");
        bound.take(&connection.send("POST", &offer.path, &lines, ""));
        Duration::ZERO
    });
    for connections in [1, 64] {
        lab.pass(FRESH);
        let cpu = lab.cpu();
        let answers = Mutex::new(Vec::new());
        let (mut times, took) = each(&lab, connections, &mut bound, |connection, bound| {
            let (identifier, proof) = (&bound.device.identifier, &bound.proof);
            let lines =
                format!("Sec-Secure-Session-Id: {identifier}\r\nSecure-Session-Response: {proof}\r\n");
            let asked = Instant::now();
            let answer = connection.send("POST", "/portcullis/device/refresh", &lines, "");
            let took = asked.elapsed();
            answers.lock().expect("no panic").push((identifier.clone(), answer));
            took
        });
        let cpu = lab.cpu() - cpu;
        println!(
            "{name}: refresh over HTTP, {connections} connections: P50 {:.2} ms, P99 {:.2} ms, {:.0} a second, {:.0} a second and core of the instance",
            percentile(&mut times, 0.5),
            percentile(&mut times, 0.99),
            times.len() as f64 / took.as_secs_f64(),
            times.len() as f64 / cpu.max(0.01)
        );
        // What comes next is signed while nothing is measured.
        let mut answers = answers.into_inner().expect("no panic");
        bound.sort_by(|one, other| one.device.identifier.cmp(&other.device.identifier));
        answers.sort_by(|(one, _), (other, _)| one.cmp(other));
        bound.iter_mut().zip(&answers).for_each(|(bound, (_, answer))| bound.take(answer));
    }
}
