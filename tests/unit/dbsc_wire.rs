use super::*;

#[test]
fn raw_and_quoted_values_are_the_same() {
    for (field, value) in [
        ("abc", Some("abc")),
        ("\"abc\"", Some("abc")),
        ("eyJ.eyJ.x-_", Some("eyJ.eyJ.x-_")),
        ("", None),
        ("\"\"", None),
        ("\"abc", None),
        ("a\"bc", None),
        ("a b", None),
        ("a\\b", None),
        ("ä", None),
        ("a,b", None),
        ("a=", None),
    ] {
        assert_eq!(token(field.as_bytes()), value.map(str::as_bytes), "{field}");
    }
}

#[test]
fn what_was_skipped_is_read_for_each_session() {
    let read = |field: &'static str| -> Vec<(SkipReason, &str)> {
        skipped(field.as_bytes()).map(|(reason, id)| (reason, std::str::from_utf8(id).unwrap())).collect()
    };
    assert_eq!(
        read("quota_exceeded;session_identifier=\"a\", server_error;session_identifier=\"b\""),
        [(SkipReason::QuotaExceeded, "a"), (SkipReason::ServerError, "b")]
    );
    assert_eq!(read("unreachable; x=1; session_identifier=\"a\""), [(SkipReason::Unreachable, "a")]);
    for none in
        ["", "unreachable", "later;session_identifier=\"a\"", "unreachable;session_identifier=\"\"", ",,;"]
    {
        assert_eq!(read(none), [], "{none}");
    }
}

#[test]
fn our_fields_are_as_browsers_read_them() {
    assert_eq!(registration_field("/r", "c"), r#"(ES256);path="/r";challenge="c""#);
    assert_eq!(challenge_field("c", "i"), r#""c";id="i""#);
}
