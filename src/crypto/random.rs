//! The one place that draws random bytes: always from the operating system, at each call.
//!
//! No generator is seeded here, so a forked process or a restored snapshot of a machine repeats nothing (attack A47).

use std::fmt;

/// The operating system gave no random bytes.
///
/// Nothing is sealed and no session is made then; the request that needed them fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RandomError;

impl fmt::Display for RandomError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the operating system gave no random bytes")
    }
}

impl std::error::Error for RandomError {}

/// `N` random bytes. About 600 ns.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N], RandomError> {
    let mut bytes = [0; N];
    #[allow(clippy::disallowed_methods, reason = "this is the one place that draws random bytes")]
    getrandom::fill(&mut bytes).map_err(|_| RandomError)?;
    Ok(bytes)
}
