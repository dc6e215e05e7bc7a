//! What really arrived: the proxy's log of the requests it has answered.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::driver::poll;

/// The log, from where this test began.
#[derive(Debug)]
pub(crate) struct Seen {
    file: PathBuf,
    lines: usize,
}

/// A request, and the status of its answer. A field that was not there is empty.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Request {
    scheme: String,
    host: String,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) status: u16,
    cookie: String,
    pub(crate) origin: String,
    /// Sec-Fetch-Site.
    pub(crate) site: String,
    /// Sec-Purpose.
    pub(crate) purpose: String,
}

impl Seen {
    /// The log in the folder of `tests/browsers`.
    pub(crate) fn new(folder: &Path) -> Self {
        let mut seen = Self { file: folder.join("seen"), lines: 0 };
        seen.forget();
        seen
    }

    /// From now on only what comes is looked at.
    pub(crate) fn forget(&mut self) {
        self.lines += self.so_far().len();
    }

    /// The requests to the application that were answered so far.
    pub(crate) fn all(&self) -> Vec<Request> {
        self.so_far()
            .into_iter()
            .filter(|request| request.scheme == "https" && request.host == HOST)
            .collect()
    }

    /// How many requests to other sites were answered so far.
    pub(crate) fn elsewhere(&self) -> usize {
        self.so_far().iter().filter(|request| request.host != HOST).count()
    }

    /// Waits until the application has answered such a request.
    pub(crate) fn wait(&self, method: &str, path: &str) -> Request {
        let found =
            poll(|| self.all().into_iter().find(|request| request.method == method && request.path == path));
        found.unwrap_or_else(|| panic!("no {method} {path} in {:#?}", self.so_far()))
    }

    fn so_far(&self) -> Vec<Request> {
        // A browser may send bytes that are no UTF-8; a line that is being written is not there yet.
        let log = String::from_utf8_lossy(&std::fs::read(&self.file).expect("the proxy writes its log"))
            .into_owned();
        let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let lines = whole.lines().skip(self.lines);
        lines
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
            .collect()
    }
}

impl Request {
    /// How many cookies of this name came with it.
    pub(crate) fn cookies(&self, name: &str) -> usize {
        let names = self.cookie.split(';').filter_map(|pair| pair.trim_start().split('=').next());
        names.filter(|found| *found == name).count()
    }
}

/// Where the application is.
const HOST: &str = "app.site.test";
