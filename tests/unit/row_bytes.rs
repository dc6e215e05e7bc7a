use super::*;
use crate::dbsc::KeyKind;

fn row() -> Row {
    let at = Timestamp::from_millis;
    Row {
        rotation: Rotation { previous: 1, floor: 2, issued: 3, rotated_at: at(4) },
        created_at: at(5),
        renewed_at: at(6),
        authenticated_at: at(7),
        deadline: at(8),
        ends_at: at(9),
        superseded_at: Some(at(10)),
        predecessor: Some(StoredId::from_bytes([11; 32])),
        successor: Some(StoredId::from_bytes([12; 32])),
        subject: Some(SubjectKey::from_bytes([13; 16])),
        epoch: 14,
        claims_version: 15,
        upgrades: 16,
        remembered: true,
        device: Some(Box::new(Device {
            kind: KeyKind::Device,
            key: [20; 64],
            challenge: 21,
            proven_at: at(22),
            confirmed: true,
        })),
        key: [17; 4],
        sealed: vec![18; 40],
        mac: [19; 16],
    }
}

#[test]
fn a_row_comes_back_as_it_was() {
    let whole = row();
    let bare = Row {
        superseded_at: None,
        predecessor: None,
        successor: None,
        subject: None,
        remembered: false,
        device: None,
        ..row()
    };
    let some = Row { predecessor: None, subject: None, sealed: Vec::new(), ..row() };
    for row in [whole, bare, some] {
        assert!(decode(&encode(&row)) == Some(row));
    }
}

#[test]
fn what_is_no_row_is_none() {
    let bytes = encode(&Row { sealed: Vec::new(), ..row() });
    for length in 0..bytes.len() {
        assert!(decode(&bytes[..length]).is_none(), "{length}");
    }
    let mut other = bytes.clone();
    other[0] = 2;
    assert!(decode(&other).is_none(), "another version");
    let mut large = bytes;
    let upgrades = 2 + 4 + 16 + 12 * 8;
    large[upgrades] = 1;
    assert!(decode(&large).is_none(), "more upgrades than a row can hold");
}
