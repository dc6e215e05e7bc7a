//! The token of a form.

use std::fmt;

use http::Extensions;

use super::rejection::{AuthRejection, attached};
use crate::middleware::Attached;

/// A token that proves that a form was rendered for this very session.
///
/// Whoever comes from another site is refused by [`CrossSite`](crate::middleware::CrossSite) without any token. It is for
/// sites with a service worker that sends POST requests again (`respondWith(fetch(event.request))`): one browser then calls
/// a foreign form the site's own, with all cookies, and no header tells it apart.
///
/// Render it into each form and check it in the handler:
///
/// ```
/// # use portcullis::{AuthRejection, FormToken};
/// use axum::Form;
///
/// #[derive(serde::Deserialize)]
/// struct Payment {
///     form_token: String,
/// }
///
/// async fn page(token: FormToken) -> String {
///     format!(r#"<form method="post">{}<button>Pay</button></form>"#, token.field())
/// }
///
/// async fn pay(token: FormToken, Form(payment): Form<Payment>) -> Result<&'static str, AuthRejection> {
///     token.verify(&payment.form_token)?;
///     Ok("paid")
/// }
/// ```
///
/// or put [`RequireFormToken`](crate::extract::RequireFormToken) in front of all routes. Nothing is stored: the token is a
/// MAC of the session's id under the ring's index secret, masked anew in every response, so that compression does not give it
/// away. A login and a new authentication give a new id, and with it new tokens: a form that was open before wants to be
/// loaded again. Where nobody has a session it stands for nobody, and proves only that.
#[derive(Clone)]
pub struct FormToken {
    attached: Attached,
    text: String,
}

impl FormToken {
    /// What the extractor does, for services that are not axum's.
    ///
    /// # Errors
    /// If no layer runs in front of the service.
    pub fn from_extensions(extensions: &Extensions) -> Result<Self, AuthRejection> {
        let attached = attached(extensions)?.clone();
        let text = attached.form_token().map_err(|_| AuthRejection::NoRandomness)?;
        Ok(Self { attached, text })
    }

    /// The token: 43 characters of base64url.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// `<input type="hidden" name="form_token" value="…">`.
    #[must_use]
    pub fn field(&self) -> String {
        format!(r#"<input type="hidden" name="{FORM_TOKEN}" value="{}">"#, self.text)
    }

    /// Checks a token that was sent, in constant time.
    ///
    /// # Errors
    /// If it is not one of this session; answer 403. Each time is an event.
    pub fn verify(&self, sent: &str) -> Result<(), AuthRejection> {
        if self.attached.accepts_form_token(sent.as_bytes()) { Ok(()) } else { Err(AuthRejection::FormToken) }
    }
}

/// The token itself, for templates.
impl fmt::Display for FormToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Mute: whoever has the token can forge forms.
impl fmt::Debug for FormToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FormToken(..)")
    }
}

/// The name of the form's field.
pub(super) const FORM_TOKEN: &str = "form_token";
