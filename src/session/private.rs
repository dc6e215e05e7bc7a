//! What a record keeps sealed: who it is and how they came.
//!
//! ```text
//! version(1) ‖ flags(1) ‖ context(1 to 65) ‖ len ‖ subject ‖ len ‖ methods ‖ len ‖ claims ‖ len ‖ client
//! ```

use zeroize::Zeroizing;

use super::{
    context_digest::ContextDigest,
    wire::{Reader, Writer},
};

/// The sealed part of a record. `Debug` leaves out what it says of a person.
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) struct Private {
    /// Who is signed in; none in an anonymous session.
    pub(crate) subject: Option<String>,
    /// How they were authenticated, separated by spaces.
    pub(crate) methods: String,
    /// A JSON object, or nothing.
    pub(crate) claims: String,
    /// The client the session is bound to.
    pub(crate) context: ContextDigest,
    /// Whether another network or platform was seen since the last authentication.
    pub(crate) context_changed: bool,
    /// Whether a remembered session was silent for longer than an ordinary one may be.
    pub(crate) dormant: bool,
    /// "Firefox on Linux", for the user's own list.
    pub(crate) client: String,
}

impl Private {
    pub(crate) fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut out = Writer::with_capacity(64 + self.methods.len() + self.claims.len() + self.client.len());
        out.byte(VERSION);
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        out.byte(
            flag(self.subject.is_some(), HAS_SUBJECT)
                | flag(self.context_changed, CONTEXT_CHANGED)
                | flag(self.dormant, DORMANT),
        );
        self.context.write(&mut out);
        for text in [self.subject.as_deref().unwrap_or_default(), &self.methods, &self.claims, &self.client] {
            out.text(text);
        }
        Zeroizing::new(out.finish())
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let [version, flags] = reader.array()?;
        if version != VERSION {
            return None;
        }
        let context = ContextDigest::read(&mut reader)?;
        let subject = reader.text()?;
        let private = Self {
            subject: (flags & HAS_SUBJECT != 0).then(|| subject.into()),
            methods: reader.text()?.into(),
            claims: reader.text()?.into(),
            context,
            context_changed: flags & CONTEXT_CHANGED != 0,
            dormant: flags & DORMANT != 0,
            client: reader.text()?.into(),
        };
        reader.is_done().then_some(private)
    }
}

impl std::fmt::Debug for Private {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Private")
            .field("context_changed", &self.context_changed)
            .field("dormant", &self.dormant)
            .finish_non_exhaustive()
    }
}

const VERSION: u8 = 1;
const HAS_SUBJECT: u8 = 1;
const CONTEXT_CHANGED: u8 = 2;
const DORMANT: u8 = 4;
