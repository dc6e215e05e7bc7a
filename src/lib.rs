//! x
#![allow(dead_code, missing_docs, unused_imports)]
mod base64url;
pub mod clock;
mod cookie;
mod crypto;
mod id;
mod session;
pub use cookie::*;
pub use crypto::*;
pub use id::*;
pub use session::*;
#[cfg(test)]
#[path = "../tests/common/corpus.rs"]
mod corpus;
