//! The graded comparison of contexts.

use super::*;

const KEY: [u8; 16] = [5; 16];
const CHROME: &str = "Mozilla/5.0 (X11; Linux x86_64) Chrome/156.0.0.0 Safari/537.36";
const CHROME_UPDATED: &str = "Mozilla/5.0 (X11; Linux x86_64) Chrome/157.0.0.0 Safari/537.36";
const CHROME_WINDOWS: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/156.0.0.0 Safari/537.36";
const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0";

fn client<'a>(user_agent: &'a str, address: &str) -> ClientContext<'a> {
    ClientContext {
        user_agent: (!user_agent.is_empty()).then_some(user_agent.as_bytes()),
        address: address.parse().ok(),
    }
}

#[test]
fn what_counts_as_the_same_client() {
    use ContextRelation::{Changed, Drift, Rejected, Same};
    let platform = Changed(ContextSignal::Platform);
    let network = Changed(ContextSignal::Network);
    for (bound, shown, expected) in [
        ((CHROME, "192.0.2.1"), (CHROME, "192.0.2.1"), Same),
        ((CHROME, "192.0.2.1"), (CHROME, "192.0.2.200"), Same),
        ((CHROME, "192.0.2.1"), (CHROME, "::ffff:192.0.2.7"), Same),
        ((CHROME, "192.0.2.1"), (CHROME, ""), Same),
        ((CHROME, ""), (CHROME, ""), Same),
        (("", ""), ("", ""), Same),
        ((CHROME, "2001:db8:1::1"), (CHROME, "2001:db8:1:ffff::2"), Same),
        ((CHROME, "192.0.2.1"), (CHROME_UPDATED, "192.0.2.1"), Drift),
        ((CHROME, "192.0.2.1"), (CHROME, "2001:db8:1::1"), Drift),
        ((CHROME, ""), (CHROME, "192.0.2.1"), Drift),
        ((CHROME, "192.0.2.1"), (CHROME, "192.0.3.1"), network),
        ((CHROME, "192.0.2.1"), (CHROME_UPDATED, "192.0.3.1"), network),
        ((CHROME, "2001:db8:1::1"), (CHROME, "2001:db8:2::1"), network),
        ((CHROME, "192.0.2.1"), (CHROME_WINDOWS, "192.0.2.1"), platform),
        ((CHROME, "192.0.2.1"), (FIREFOX, "192.0.2.1"), Rejected),
        ((CHROME, "192.0.2.1"), ("", "192.0.2.1"), Rejected),
        (("", "192.0.2.1"), (CHROME, "192.0.2.1"), Rejected),
    ] {
        let bound_digest = client(bound.0, bound.1).digest(&KEY);
        assert_eq!(
            client(shown.0, shown.1).relation_to(&bound_digest, &KEY),
            expected,
            "{bound:?} then {shown:?}"
        );
    }
}

#[test]
fn only_drift_moves_and_only_same_and_drift_are_tolerated() {
    use ContextRelation::{Changed, Drift, Rejected, Same};
    for (relation, moves, tolerated) in [
        (Same, false, true),
        (Drift, true, true),
        (Changed(ContextSignal::Network), false, false),
        (Rejected, false, false),
    ] {
        assert_eq!((relation.moves(), relation.is_tolerated()), (moves, tolerated), "{relation:?}");
    }
    // Another platform stays another platform where the network changed as well, or is not known.
    let bound = client(CHROME, "192.0.2.1").digest(&KEY);
    for address in ["192.0.3.1", "2001:db8::1", ""] {
        let relation = client(CHROME_WINDOWS, address).relation_to(&bound, &KEY);
        assert_eq!(relation, Changed(ContextSignal::Platform), "{address}");
    }
}

#[test]
fn a_moved_context_keeps_the_other_address_family() {
    let old = client(CHROME, "2001:db8:7::1").digest(&KEY);
    let moved = old.moved_to(client(CHROME_UPDATED, "192.0.2.1").digest(&KEY));
    let back = client(CHROME_UPDATED, "2001:db8:8::1").relation_to(&moved, &KEY);
    assert_eq!(back, ContextRelation::Changed(ContextSignal::Network), "the IPv6 network is remembered");
    let old = client(CHROME, "192.0.2.1").digest(&KEY);
    let moved = old.moved_to(client(CHROME_UPDATED, "2001:db8:1::1").digest(&KEY));
    for shown in [client(CHROME_UPDATED, "192.0.2.9"), client(CHROME_UPDATED, "2001:db8:1::5")] {
        assert_eq!(shown.relation_to(&moved, &KEY), ContextRelation::Same);
    }
}

#[test]
fn the_wire_form_round_trips() {
    for context in [client(CHROME, "192.0.2.1"), client("", ""), client(FIREFOX, "2001:db8::1")] {
        let digest = context.digest(&KEY);
        let mut out = Writer::default();
        digest.write(&mut out);
        let bytes = out.finish();
        assert_eq!(bytes.len(), ContextDigest::LENGTH);
        assert_eq!(ContextDigest::read(&mut Reader::new(&bytes)), Some(digest));
        assert_eq!(ContextDigest::read(&mut Reader::new(&bytes[..40])), None);
    }
}

/// Without the key nobody can tell which network or browser a digest stands for.
#[test]
fn digests_depend_on_the_key() {
    let context = client(CHROME, "192.0.2.1");
    let (one, other) = (context.digest(&KEY), context.digest(&[6; 16]));
    assert!(one.signals().iter().zip(other.signals()).all(|(a, b)| a.is_none() || *a != b));
}

#[test]
fn labels_are_for_people() {
    assert_eq!(client(FIREFOX, "").label(), "Firefox on Linux");
    assert_eq!(client("curl/8.5.0", "").label(), "curl");
    assert_eq!(client("", "").label(), "unknown");
    assert!(client(&"é".repeat(400), "").label().len() <= 64);
}
