//! The vault from inside: fields and rows open only where they were sealed (attacks A59, A78).

use super::*;
use crate::{
    dbsc::KeyKind,
    session::{Device, Rotation},
};

const ORIGIN: &str = "https://app.example.com";

fn row(vault: &Vault, id: &StoredId, private: &Private) -> Row {
    let (key, sealed) = vault.seal_private(id, private).unwrap();
    let at = Timestamp::from_seconds;
    let mut row = Row {
        rotation: Rotation { previous: 1, floor: 2, issued: 3, rotated_at: at(4) },
        created_at: at(5),
        renewed_at: at(6),
        authenticated_at: at(7),
        deadline: at(8),
        ends_at: at(9),
        superseded_at: None,
        predecessor: None,
        successor: None,
        subject: Some(vault.subject_key("alice")),
        epoch: 10,
        claims_version: 11,
        upgrades: 12,
        remembered: false,
        device: None,
        key,
        sealed,
        mac: [0; 16],
    };
    vault.keeper(RowEdit::None).sign(id, &mut row);
    row
}

#[test]
fn fields_open_for_their_session_and_name_alone() {
    let ring = KeyRing::generate().unwrap();
    let vault = Vault::new(&ring, ORIGIN);
    let (id, other) = (SessionId([1; 32]), SessionId([2; 32]));
    let (stored, other_stored) = (StoredId::from_bytes([3; 32]), StoredId::from_bytes([4; 32]));
    let keys = vault.data_keys(id.clone(), stored);
    let tag = vault.tag(&keys, "cart");
    let sealed = vault.seal_field(&keys, "cart", &tag, b"[1,2]").unwrap();
    let open = |vault: &Vault, keys: &DataKeys, tag: &FieldTag, sealed: &[u8]| {
        vault.open_field(keys, tag, sealed.to_vec()).map(|(name, json)| (name, json.to_vec()))
    };
    assert_eq!(open(&vault, &keys, &tag, &sealed), Some(("cart".into(), b"[1,2]".to_vec())));
    let text = String::from_utf8_lossy(&sealed);
    assert!(!text.contains("cart") && !text.contains("[1,2]"));
    assert!(open(&vault, &keys, &vault.tag(&keys, "role"), &sealed).is_none(), "moved to another name");
    let other_row = vault.data_keys(id.clone(), other_stored);
    assert!(open(&vault, &other_row, &tag, &sealed).is_none(), "moved to another row");
    let other_id = vault.data_keys(other, stored);
    assert!(open(&vault, &other_id, &tag, &sealed).is_none(), "another session id");
    assert_ne!(vault.tag(&other_id, "cart"), tag, "names of two sessions cannot be matched");
    let elsewhere = Vault::new(&ring, "https://b.example.com");
    assert!(open(&elsewhere, &elsewhere.data_keys(id, stored), &tag, &sealed).is_none(), "another origin");
    for n in 0..sealed.len() {
        assert!(open(&vault, &keys, &tag, &sealed[..n]).is_none());
        let mut changed = sealed.clone();
        changed[n] ^= 1;
        assert!(open(&vault, &keys, &tag, &changed).is_none());
    }
}

type Change<'a> = &'a dyn Fn(&mut Row);

/// Attack A78: a row changed by hand in any column, moved to another id, or of another origin does not verify.
#[test]
fn every_column_of_a_row_is_signed() {
    let ring = KeyRing::generate().unwrap();
    let vault = Vault::new(&ring, ORIGIN);
    let id = StoredId::from_bytes([3; 32]);
    let good = row(&vault, &id, &Private { subject: Some("alice".into()), ..Private::default() });
    let keeper = vault.keeper(RowEdit::None);
    assert!(keeper.verify(&id, &good));
    assert!(!keeper.verify(&StoredId::from_bytes([4; 32]), &good));
    assert!(!Vault::new(&ring, "https://b.example.com").keeper(RowEdit::None).verify(&id, &good));
    let later = |at: &mut Timestamp| *at = Timestamp::from_millis(at.as_millis() + 1);
    let changes: [(&str, Change<'_>); 20] = [
        ("previous", &|row| row.rotation.previous += 1),
        ("floor", &|row| row.rotation.floor -= 1),
        ("issued", &|row| row.rotation.issued += 1),
        ("rotated_at", &|row| later(&mut row.rotation.rotated_at)),
        ("created_at", &|row| later(&mut row.created_at)),
        ("renewed_at", &|row| later(&mut row.renewed_at)),
        ("authenticated_at", &|row| later(&mut row.authenticated_at)),
        ("deadline", &|row| later(&mut row.deadline)),
        ("ends_at", &|row| later(&mut row.ends_at)),
        ("superseded_at", &|row| row.superseded_at = Some(Timestamp::default())),
        ("predecessor", &|row| row.predecessor = Some(StoredId::from_bytes([0; 32]))),
        ("successor", &|row| row.successor = Some(StoredId::from_bytes([0; 32]))),
        ("subject", &|row| row.subject = None),
        ("epoch", &|row| row.epoch += 1),
        ("claims_version", &|row| row.claims_version += 1),
        ("upgrades", &|row| row.upgrades = 0),
        ("remembered", &|row| row.remembered = true),
        ("device", &|row| {
            row.device = Some(Box::new(Device {
                kind: KeyKind::Device,
                key: [1; 64],
                challenge: 2,
                proven_at: Timestamp::MAX,
                confirmed: false,
            }))
        }),
        ("key", &|row| row.key[0] ^= 1),
        ("sealed", &|row| row.sealed[40] ^= 1),
    ];
    for (column, change) in changes {
        let mut changed = good.clone();
        change(&mut changed);
        assert!(!keeper.verify(&id, &changed), "{column}");
    }
}

#[test]
fn edits_keep_what_they_do_not_mean() {
    let ring = KeyRing::generate().unwrap();
    let vault = Vault::new(&ring, ORIGIN);
    let id = StoredId::from_bytes([3; 32]);
    let private = Private { subject: Some("alice".into()), claims: "{}".into(), ..Private::default() };
    let mut edited = row(&vault, &id, &private);
    let now = Timestamp::from_seconds(100);
    assert!(vault.keeper(RowEdit::Claims(r#"{"a":1}"#)).edit(&id, &mut edited, now).unwrap());
    assert_eq!(
        vault.open_private(&id, &edited),
        Some(Private { claims: r#"{"a":1}"#.into(), ..private.clone() })
    );
    let context = ContextDigest { family: Some(5), ..ContextDigest::default() };
    let moved_to = Some(context);
    let idle = Duration::from_secs(94);
    for (remembered, idle, dormant) in
        [(false, idle, false), (true, idle + Duration::from_secs(1), false), (true, idle, true)]
    {
        let mut edited = Row { remembered, ..row(&vault, &id, &private) };
        assert!(
            vault
                .keeper(RowEdit::Renewal { moved_to, changed: true, idle })
                .edit(&id, &mut edited, now)
                .unwrap()
        );
        let expected = Private { context, context_changed: true, dormant, ..private.clone() };
        assert_eq!(vault.open_private(&id, &edited), Some(expected));
    }
    assert!(!vault.keeper(RowEdit::None).edit(&StoredId::from_bytes([9; 32]), &mut edited, now).unwrap());
}
