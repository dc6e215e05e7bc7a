//! Runs one case of the hot path some number of times, for `benches/hot_path` to count.
//!
//! ```text
//! hot_path_bin --list            the names of all cases, one a line
//! hot_path_bin CASE ITERATIONS   prints `allocations N`: those of all iterations, without the setup
//! ```
//!
//! No network: the axum router is called as the tower service it is, on one thread. A case that does not do what its
//! name says panics, so a figure of something else is never printed.

mod allocator;
mod cases;
mod controls;
mod handlers;
mod portcullis_site;
mod request;
mod tower_sessions_site;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["--list"] => {
            cases::NAMES.iter().for_each(|name| println!("{name}"));
            ExitCode::SUCCESS
        }
        [name, iterations] if cases::NAMES.contains(name) => match iterations.parse() {
            Ok(iterations) => {
                println!("allocations {}", run(name, iterations));
                ExitCode::SUCCESS
            }
            Err(error) => usage(&format!("{iterations}: {error}")),
        },
        _ => usage("no such case"),
    }
}

fn run(name: &str, iterations: u64) -> u64 {
    // Only the time driver: portcullis needs it for its feed, and nothing here does I/O.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(cases::run(name, iterations))
}

fn usage(fault: &str) -> ExitCode {
    eprintln!("hot_path_bin: {fault}\nusage: hot_path_bin --list | CASE ITERATIONS");
    ExitCode::from(2)
}
