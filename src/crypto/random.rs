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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_says_what_is_missing() {
        assert_eq!(RandomError.to_string(), "the operating system gave no random bytes");
    }

    /// A million draws: none repeats, not even in its first half, and no bit is set more often than chance allows.
    #[test]
    fn draws_do_not_repeat_and_are_not_biased() {
        const DRAWS: usize = 1_000_000;
        let mut ones = [0_i64; 256];
        let mut halves = Vec::with_capacity(DRAWS);
        for _ in 0..DRAWS {
            let drawn: [u8; 32] = bytes().unwrap();
            let (first, second) = drawn.split_at(16);
            let words = [first, second].map(|half| u128::from_be_bytes(half.try_into().unwrap()));
            halves.push(words[0]);
            for (bit, count) in ones.iter_mut().enumerate() {
                *count += i64::from(words[bit / 128] >> (bit % 128) & 1 == 1);
            }
        }
        halves.sort_unstable();
        assert!(halves.windows(2).all(|pair| pair[0] != pair[1]));
        // Half of the draws, within six standard deviations of 500 each.
        assert!(ones.iter().all(|count| (count - 500_000).abs() < 3000), "{ones:?}");
    }
}
