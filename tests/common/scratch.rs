//! A directory of a test's own, gone when the test is.

use std::path::PathBuf;

use tempfile::TempDir;

/// A new directory, empty whatever an earlier process left behind. Removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Scratch(TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("the temporary directory can be written"))
    }

    /// A file in it, which is not there yet.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}
