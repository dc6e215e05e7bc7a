//! HTML from values: escaping, and the frame around every page.

use std::fmt::Display;

use axum::{
    http::{HeaderName, header},
    response::{Html, IntoResponse, Response},
};

/// A page. What is in `main` is HTML: every value in it went through [`escape`].
pub(crate) struct Page {
    pub(crate) title: &'static str,
    pub(crate) main: String,
}

/// A value as text of a page or of a quoted attribute.
pub(crate) fn escape(value: impl Display) -> String {
    let text = value.to_string();
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        let Self { title, main } = self;
        let html = format!(
            r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title} · Portcullis quickstart</title>
<link rel="icon" href="data:,">
<style>
{STYLE}</style>
</head>
<body>
<header><p class="brand">Portcullis <span>quickstart</span></p></header>
<main>
{main}
</main>
</body>
</html>
"#
        );
        ([POLICY], Html(html)).into_response()
    }
}

/// No script can run and no other site can put a page into a frame, even if an escape were forgotten.
const POLICY: (HeaderName, &str) = (
    header::CONTENT_SECURITY_POLICY,
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; base-uri 'none'; \
     frame-ancestors 'none'",
);

const STYLE: &str = include_str!("style.css");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_its_place_in_the_page() {
        for (value, expected) in [
            ("alice", "alice"),
            ("<script>", "&lt;script&gt;"),
            (r#"" onfocus="x"#, "&quot; onfocus=&quot;x"),
            ("' & '", "&#39; &amp; &#39;"),
            ("Größe", "Größe"),
        ] {
            assert_eq!(escape(value), expected);
        }
    }
}
