//! The graded comparison of contexts.

use super::{
    super::wire::{Reader, Writer},
    *,
};

#[path = "user_agent_pairs.rs"]
mod user_agent_pairs;

use user_agent_pairs::PAIRS;

const KEY: [u8; 16] = [5; 16];
const CHROME: &str = "Mozilla/5.0 (X11; Linux x86_64) Chrome/156.0.0.0 Safari/537.36";
const CHROME_UPDATED: &str = "Mozilla/5.0 (X11; Linux x86_64) Chrome/157.0.0.0 Safari/537.36";
const CHROME_WINDOWS: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/156.0.0.0 Safari/537.36";
const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0";

fn client<'a>(user_agent: &'a str, address: &str) -> ClientContext<'a> {
    let address = match address {
        "" => Seen::NotLooked,
        "?" => Seen::Missing,
        text => Seen::Shown(text.parse().unwrap()),
    };
    let user_agent = (!user_agent.is_empty()).then_some(user_agent.as_bytes());
    ClientContext { user_agent, address, ..ClientContext::default() }
}

fn relation(shown: &ClientContext<'_>, bound: &ContextDigest, policy: BindingPolicy) -> ContextRelation {
    shown.relation_to(bound, &KEY, &policy)
}

#[test]
fn what_counts_as_the_same_client() {
    use ContextRelation::{Changed, Drift, Rejected, Same};
    let platform = Changed(ContextSignal::Platform);
    let address = Changed(ContextSignal::Address);
    let family = Rejected(ContextSignal::Family);
    for (bound, shown, expected) in [
        ((CHROME, "192.0.2.1"), (CHROME, "192.0.2.1"), Same),
        ((CHROME, "192.0.2.1"), (CHROME, "192.0.2.200"), Same),
        ((CHROME, "192.0.2.1"), (CHROME, "::ffff:192.0.2.7"), Same),
        ((CHROME, "192.0.2.1"), (CHROME, ""), Same),
        ((CHROME, ""), (CHROME, ""), Same),
        ((CHROME, "?"), (CHROME, "?"), Same),
        (("", ""), ("", ""), Same),
        ((CHROME, "2001:db8:1::1"), (CHROME, "2001:db8:1:ffff::2"), Same),
        ((CHROME, "192.0.2.1"), (CHROME_UPDATED, "192.0.2.1"), Drift),
        ((CHROME, "192.0.2.1"), (CHROME, "2001:db8:1::1"), Drift),
        ((CHROME, ""), (CHROME, "192.0.2.1"), Drift),
        ((CHROME, "192.0.2.1"), (CHROME, "192.0.3.1"), address),
        ((CHROME, "192.0.2.1"), (CHROME_UPDATED, "192.0.3.1"), address),
        ((CHROME, "2001:db8:1::1"), (CHROME, "2001:db8:2::1"), address),
        // A signal that is missing is not a match.
        ((CHROME, "192.0.2.1"), (CHROME, "?"), address),
        ((CHROME, "192.0.2.1"), ("", "192.0.2.1"), family),
        ((CHROME, "192.0.2.1"), (CHROME_WINDOWS, "192.0.2.1"), platform),
        ((CHROME, "192.0.2.1"), (FIREFOX, "192.0.2.1"), family),
        (("", "192.0.2.1"), (CHROME, "192.0.2.1"), family),
        // The heaviest counts.
        ((CHROME, "192.0.2.1"), (CHROME_WINDOWS, "192.0.3.1"), platform),
        ((CHROME, "192.0.2.1"), (FIREFOX, "192.0.3.1"), family),
    ] {
        let digest = client(bound.0, bound.1).digest(&KEY);
        let found = relation(&client(shown.0, shown.1), &digest, BindingPolicy::default());
        assert_eq!(found, expected, "{bound:?} then {shown:?}");
        assert!(relation(&client(shown.0, shown.1), &digest, BindingPolicy::off()).is_tolerated());
    }
}

#[test]
fn only_drift_moves_and_what_is_only_noted_is_tolerated() {
    use ContextRelation::{Changed, Drift, Noted, Rejected, Same};
    let signal = ContextSignal::Address;
    for (relation, moves, tolerated) in [
        (Same, false, true),
        (Drift, true, true),
        (Noted(signal), false, true),
        (Changed(signal), false, false),
        (Rejected(signal), false, false),
    ] {
        assert_eq!((relation.moves(), relation.is_tolerated()), (moves, tolerated), "{relation:?}");
    }
}

/// Every signal with every reaction, and the presets.
#[test]
fn each_signal_has_its_own_reaction() {
    use ContextRelation::{Changed, Drift, Noted, Rejected};
    let look_up =
        |address: IpAddr| Some(if address.to_string().starts_with("192.0.") { "one" } else { "two" }.into());
    let base = ClientContext {
        network_of: Some(&look_up),
        hints: Seen::Shown("Google Chrome|\"Linux\"|?0"),
        header: Seen::Shown(b"13_8daaf6152771"),
        ..client(CHROME, "192.0.2.1")
    };
    let bound = base.digest(&KEY);
    let at = |address: &str| Seen::Shown(address.parse().unwrap());
    let changes = [
        (ContextSignal::Address, ClientContext { address: at("192.0.3.1"), ..base }),
        (ContextSignal::Family, ClientContext { user_agent: Some(FIREFOX.as_bytes()), ..base }),
        (ContextSignal::Platform, ClientContext { user_agent: Some(CHROME_WINDOWS.as_bytes()), ..base }),
        (ContextSignal::Hints, ClientContext { hints: Seen::Shown("Brave|\"Linux\"|?0"), ..base }),
        (ContextSignal::Hints, ClientContext { hints: Seen::Missing, ..base }),
        (ContextSignal::Header, ClientContext { header: Seen::Shown(b"12_8daaf6152771"), ..base }),
        (ContextSignal::Header, ClientContext { header: Seen::Missing, ..base }),
        (ContextSignal::Network, ClientContext { address: at("198.51.100.1"), ..base }),
        (ContextSignal::Network, ClientContext { address: at("2001:db8::1"), ..base }),
    ];
    for (signal, shown) in changes {
        for (reaction, expected) in [
            (Reaction::Ignore, Drift),
            (Reaction::Note, Noted(signal)),
            (Reaction::StepUp, Changed(signal)),
            (Reaction::Reject, Rejected(signal)),
        ] {
            let found = relation(&shown, &bound, BindingPolicy::off().on(signal, reaction));
            // Where nothing looks at a signal, nothing moves with it either.
            assert!(
                found == expected || (reaction == Reaction::Ignore && found.is_tolerated()),
                "{signal:?}: {found:?}"
            );
        }
        let strict = relation(&shown, &bound, BindingPolicy::strict());
        let expected = if signal == ContextSignal::Hints { Changed(signal) } else { Rejected(signal) };
        let wider = signal == ContextSignal::Network && strict == Rejected(ContextSignal::Address);
        assert!(strict == expected || wider, "{signal:?}: {strict:?}");
    }
    // With a lookup another address of the same network is no change, and another network is.
    assert_eq!(relation(&changes[0].1, &bound, BindingPolicy::default()), Drift);
    for (signal, shown) in &changes[7..] {
        assert_eq!(relation(shown, &bound, BindingPolicy::default()), Changed(*signal));
    }
    // What the session was not bound to is learned, not held against it.
    let bare = client(CHROME, "192.0.2.1").digest(&KEY);
    assert_eq!(relation(&base, &bare, BindingPolicy::strict()), Drift);
    assert_eq!(
        relation(&client(CHROME, "192.0.2.1"), &bound, BindingPolicy::strict()),
        ContextRelation::Same
    );
}

/// The same person with the same session, and what becomes of it: browsers as they name themselves.
#[test]
fn pairs_of_user_agents() {
    for (why, before, after, expected) in PAIRS {
        let digest = client(before, "").digest(&KEY);
        let word = match relation(&client(after, ""), &digest, BindingPolicy::default()) {
            ContextRelation::Same => "same",
            ContextRelation::Drift => "drift",
            ContextRelation::Changed(ContextSignal::Platform) => "platform",
            ContextRelation::Rejected(ContextSignal::Family) => "family",
            other => panic!("{why}: {other:?}"),
        };
        assert_eq!(word, *expected, "{why}: {before} then {after}");
    }
}

#[test]
fn a_moved_context_keeps_the_other_address_family() {
    let old = client(CHROME, "2001:db8:7::1").digest(&KEY);
    let moved = old.moved_to(client(CHROME_UPDATED, "192.0.2.1").digest(&KEY));
    let back = relation(&client(CHROME_UPDATED, "2001:db8:8::1"), &moved, BindingPolicy::default());
    assert_eq!(back, ContextRelation::Changed(ContextSignal::Address), "the IPv6 prefix is remembered");
    let old = client(CHROME, "192.0.2.1").digest(&KEY);
    let moved = old.moved_to(client(CHROME_UPDATED, "2001:db8:1::1").digest(&KEY));
    for shown in [client(CHROME_UPDATED, "192.0.2.9"), client(CHROME_UPDATED, "2001:db8:1::5")] {
        assert_eq!(relation(&shown, &moved, BindingPolicy::default()), ContextRelation::Same);
    }
}

#[test]
fn the_wire_form_round_trips() {
    for context in [client(CHROME, "192.0.2.1"), client("", ""), client(FIREFOX, "2001:db8::1")] {
        let digest = context.digest(&KEY);
        let mut out = Writer::default();
        digest.write(&mut out);
        let bytes = out.finish();
        assert_eq!(bytes.len(), digest.length());
        assert_eq!(ContextDigest::read(&mut Reader::new(&bytes)), Some(digest));
        assert_eq!(ContextDigest::read(&mut Reader::new(&bytes[..bytes.len() - 1])), None);
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
