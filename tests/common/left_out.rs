//! Says what is left out, so that nobody takes silence for success.

use std::io::Write as _;

/// The test that says so, past the capture of the test harness.
#[test]
fn left_out() {
    for (variable, what) in [
        ("PORTCULLIS_TEST_REDIS", "Redis"),
        ("PORTCULLIS_TEST_SENTINEL", "Redis behind Sentinel"),
        ("PORTCULLIS_TEST_CLUSTER", "a Redis cluster"),
        ("PORTCULLIS_TEST_POSTGRES", "PostgreSQL"),
    ] {
        if std::env::var_os(variable).is_none() {
            let suite = module_path!().split("::").next().unwrap_or_default();
            // A terminal that is gone is no failure of this test.
            let _ = writeln!(
                std::io::stderr(),
                "left out: {suite} over {what} (no server: run tests/servers cargo test --all-features)"
            );
        }
    }
}
