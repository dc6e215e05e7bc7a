//! Why a store could not be opened.

use std::fmt;

/// Why no session store could be opened there, and what to do about it. It names no password.
///
/// `Debug` says the same as `Display`, because `main` shows an error with `Debug`.
pub struct StoreOpenError {
    fault: String,
    remedy: &'static str,
}

impl StoreOpenError {
    pub(super) fn new(fault: impl Into<String>, remedy: &'static str) -> Self {
        Self { fault: fault.into(), remedy }
    }
}

impl fmt::Display for StoreOpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}. Remedy: {}.", self.fault, self.remedy)
    }
}

impl fmt::Debug for StoreOpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for StoreOpenError {}
