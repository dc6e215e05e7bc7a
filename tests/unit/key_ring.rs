//! The ring and its text form from inside.

use super::*;
use crate::crypto::root_keys::Purpose;

fn secret(n: u8) -> String {
    let bytes: Vec<u8> = (0..32).map(|i| i ^ n).collect();
    crate::base64url::encode(&bytes)
}

fn line(id: &str, state: &str, n: u8) -> String {
    format!("{id} {state} 2026-11-30T12:00:00Z {}", secret(n))
}

#[test]
fn the_text_form_round_trips_and_reads_both_separators() {
    let text = format!(
        "# first version\n{}\r\n  {}\n{}\n\nindex {}\n",
        line("00000001", "retired", 1),
        line("00000002", "active", 2),
        line("00000003", "pending", 3),
        secret(9)
    );
    let ring = KeyRing::from_text(&text).unwrap();
    let again = KeyRing::from_text(&ring.to_text().replace('\n', ";")).unwrap();
    assert_eq!(*ring.to_text(), *again.to_text());
    assert_eq!(
        format!("{ring:?}"),
        "{KeyId(00000001): Retired, KeyId(00000002): Active, KeyId(00000003): Pending}"
    );
    assert_eq!(ring.active().id, KeyId([0, 0, 0, 2]));
    assert!(ring.opening(KeyId([0, 0, 0, 1])).is_some());
}

/// The ring's text of version 1, frozen: every later version must read it and derive the same keys from it.
#[test]
fn version_1_is_read_for_ever() {
    let text = format!("{};index {}", line("5f3a9c01", "active", 1), secret(2));
    let ring = KeyRing::from_text(&text).unwrap();
    let keys = ring.active();
    assert_eq!(
        [
            keys.record_mac.tag(&[b"m"]),
            keys.data.tag(&[b"m"]),
            keys.token_mac.tag(&[b"m"]),
            ring.index().subject.tag(&[b"m"]),
            ring.index().session_ref.of(&[b'm'; 32]),
            ring.index().check,
            *ring.index().context,
        ]
        .map(|tag| crate::base64url::encode(&tag)),
        FROZEN.map(str::to_owned)
    );
    assert_eq!(keys.token_signature.verifying_key().thumbprint().unwrap(), FROZEN_THUMBPRINT);
}

const FROZEN: [&str; 7] = [
    "XzuA-Ohr86OFndaWyazKUw",
    "w4t8DMCU4dvyif5H2gQWMQ",
    "7kIKKnl0Fb417pWhyJ1tYg",
    "aOM37WMHM7Lhey8g6iMFdA",
    "PoAzcezp-noITa8YZNOCXA",
    "sKGClrYfSweaEurwbFt1sg",
    "cdd29HztwCrQ7WMm8j2Qfw",
];
const FROZEN_THUMBPRINT: &str = "8s52qpmsZ__ibloCtDSsLaSJ8ojAFfnNTqXwU8hXLXI";

#[test]
fn every_fault_is_named_with_its_remedy_and_without_a_secret() {
    let good = line("00000001", "active", 1);
    let index = format!("index {}", secret(9));
    for (text, fault) in [
        (String::new(), "the key ring is empty"),
        (good.clone(), "no index secret"),
        (index.clone(), "no active key"),
        (format!("{}\n{index}", line("00000001", "retired", 1)), "no active key"),
        (format!("{good}\n{}\n{index}", line("00000002", "active", 2)), "2 active keys"),
        (format!("{good}\n{}\n{index}", line("00000001", "retired", 2)), "00000001 stands twice"),
        (format!("{good}\n{}\n{index}", line("00000002", "retired", 1)), "the secret of key 00000001"),
        (format!("{}\n{index}", line("00000001", "active", 9)), "the secret of key 00000001"),
        (format!("{good}\n{index}\n{index}"), "line 3 of the key ring states a second index"),
        (format!("{}\n{index}", line("0000001", "active", 1)), "line 1 of the key ring has an id"),
        (format!("{}\n{index}", line("0000000A", "active", 1)), "line 1 of the key ring has an id"),
        (format!("{}\n{index}", line("+0000001", "active", 1)), "line 1 of the key ring has an id"),
        (format!("{}\n{index}", line("00000001", "Active", 1)), "line 1 of the key ring has a state"),
        (format!("{good}=\n{index}"), "line 1 of the key ring has a secret"),
        (good.replace("2026-11-30T", "2026-13-30T"), "line 1 of the key ring has a date"),
        (format!("{good} more"), "line 1 of the key ring is neither"),
        (format!("{index}\n00000001 active 2026-11-30T12:00:00Z {}", "A".repeat(43)), "one byte repeated"),
    ] {
        let error = KeyRing::from_text(&text).unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(shown.contains(fault), "{text:?} gave {shown}");
        assert!(error.to_string().contains(": "), "{shown} has no remedy");
        assert!(!shown.contains(&secret(1)) && !shown.contains(&secret(9)), "{shown} shows a secret");
    }
}

#[cfg(unix)]
#[test]
fn a_key_file_is_made_once_for_its_owner_alone() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let path = folder.join("site.keys");
    let made: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| KeyRing::from_file_or_generate(&path).unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap().to_text()).collect()
    });
    assert!(made.iter().all(|text| text == made.first().unwrap()), "two processes made two rings");
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1, "no temporary file stays");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(KeyRing::from_file(&path).unwrap_err().to_string().contains("mode 0644"));
    assert!(KeyRing::from_file(folder.join("absent")).unwrap_err().to_string().contains("cannot be read"));
    assert!(
        KeyRing::from_file_or_generate(folder.join("no/such/folder"))
            .unwrap_err()
            .to_string()
            .contains("made")
    );
}

/// Where the place is known the fault is not lost over it.
#[test]
fn an_error_names_the_place_and_the_fault() {
    let error = KeyRing::from_env("PORTCULLIS_NO_SUCH_VARIABLE").unwrap_err();
    let shown = error.to_string();
    assert!(
        shown.starts_with("the environment variable PORTCULLIS_NO_SUCH_VARIABLE: it is not set. Remedy: "),
        "{shown}"
    );
    assert_eq!(format!("{error:?}"), shown);
}

#[test]
fn debug_shows_no_secret() {
    let ring = KeyRing::generate().unwrap();
    let text = ring.to_text();
    let (keys, index) = (ring.active(), ring.index());
    let seal = crate::crypto::seal::Seal::new(&ring, Purpose::SessionCookie, "name", "origin");
    let shown = [
        format!("{:?}", keys.token_signature),
        format!("{:?}", keys.token_signature.verifying_key()),
        format!("{:?}", keys.data),
        format!("{:?}", index.session_ref),
        format!("{:?}", keys.sealing(Purpose::SessionCookie)),
        format!("{seal:?}"),
    ];
    let expected = [
        "SigningKey(..)",
        "VerifyingKey(..)",
        "MacKey(..)",
        "NameKey(..)",
        "XaesKey(..)",
        "Seal { purpose: SessionCookie, .. }",
    ];
    assert_eq!(shown, expected, "a name, and no more");
    assert_eq!(format!("{keys:?}"), format!("RootKeys({})", keys.id));
    let shown = format!("{ring:?} {shown:?}");
    for word in text.split([' ', '\n']).filter(|word| word.len() == 43) {
        assert!(!shown.contains(word));
    }
}
