//! What a response says to caches and to the browser's own storage.

use http::HeaderValue;

/// Something that a browser clears when a user signs out, with the header `Clear-Site-Data`.
///
/// Removing our cookies and ending the session on the server is what signs a user out; this is for what else the site left in
/// the browser. Sent on the answer to a logout with status 200, to a request of the site itself: on a redirect one browser
/// ignores it. `"cache"` is not offered: it stalls some browsers for seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClearSiteData {
    /// All cookies; in Chromium those of the whole registrable domain, sibling subdomains included.
    Cookies,
    /// Local storage, databases and service workers: also drafts that the page keeps there.
    Storage,
    /// Pages that were fetched ahead of a click, which a browser would show although the user is signed out.
    PrefetchCache,
    /// Pages that were rendered ahead of a click.
    PrerenderCache,
}

/// The site's choices.
#[derive(Debug, Clone, Default)]
pub(super) struct Manners {
    /// The whole header, where something is to be cleared.
    pub(super) clear: Option<HeaderValue>,
    /// No response to somebody who is signed in is stored anywhere, whatever it says itself.
    pub(super) no_store: bool,
}

impl Manners {
    pub(super) fn new(clear: &[ClearSiteData], no_store: bool) -> Self {
        let name = |what: &ClearSiteData| match what {
            ClearSiteData::Cookies => "\"cookies\"",
            ClearSiteData::Storage => "\"storage\"",
            ClearSiteData::PrefetchCache => "\"prefetchCache\"",
            ClearSiteData::PrerenderCache => "\"prerenderCache\"",
        };
        let names: Vec<&str> = clear.iter().map(name).collect();
        let header = HeaderValue::from_str(&names.join(", ")).ok();
        Self { clear: header.filter(|header| !header.is_empty()), no_store }
    }
}
