//! What a browser is told to do with a session, as JSON.

use crate::cookie::SetCookie;

/// The instructions for one session.
#[derive(Debug)]
pub(crate) struct Instructions<'a> {
    /// What the browser calls it; base64url.
    pub(crate) identifier: &'a str,
    /// The path that refreshes it.
    pub(crate) refresh_path: &'a str,
    /// The session's scope: the site's origin, or where the site is included that of its registrable domain.
    pub(crate) scope_origin: &'a str,
    /// Whether every host of the site is in the scope.
    pub(crate) include_site: bool,
    /// The cookie that must be there: its Set-Cookie line and what is said of it here come from one value, because a browser
    /// that finds them different refreshes before every single request.
    pub(crate) cookie: &'a SetCookie,
    /// Hosts whose pages may make the browser refresh before it follows a link to the site.
    pub(crate) initiators: &'a [String],
}

impl Instructions<'_> {
    /// The JSON. Nothing in it needs an escape: identifiers are base64url, and the rest was checked when the layer was built.
    pub(crate) fn to_json(&self) -> String {
        let Self { identifier, refresh_path, scope_origin, include_site, cookie, initiators } = self;
        let (name, attributes) = (cookie.name(), cookie.attributes());
        let initiators: Vec<String> = initiators.iter().map(|host| format!(r#""{host}""#)).collect();
        format!(
            concat!(
                r#"{{"session_identifier":"{}","refresh_url":"{}","scope":{{"origin":"{}","include_site":{}}},"#,
                r#""credentials":[{{"type":"cookie","name":"{}","attributes":"{}"}}],"allowed_refresh_initiators":[{}]}}"#
            ),
            identifier,
            refresh_path,
            scope_origin,
            include_site,
            name,
            attributes,
            initiators.join(",")
        )
    }
}

/// The JSON that ends a session in the browser. `identifier` must be base64url.
pub(crate) fn ended(identifier: &str) -> String {
    format!(r#"{{"session_identifier":"{identifier}","continue":false}}"#)
}
