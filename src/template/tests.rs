//! Templates with each kind of hole.

use proptest::prelude::*;

use super::*;

fn expand(text: &str, after: &str, place: Place) -> String {
    let values = Values {
        cursor: Some(after),
        client: 7,
        port: Some(8080),
        named: &[Some("a\"b".into()), None],
        row: Row {
            names: &["token".into(), "room".into()],
            values: &[Some("t/1".into()), None],
        },
    };
    let env = |name: &str| (name == "TOKEN").then(|| "s3cret".to_owned());
    Template::parse_with(text, &["sid", "pid"], env)
        .unwrap()
        .expand(&values, place)
}

#[test]
fn the_known_holes_are_filled_and_other_braces_left_alone() {
    for (text, expected) in [
        (
            "ws://h:{port}/?c={client}&n={n}&a={after}",
            "ws://h:8080/?c=7&n=6&a=17",
        ),
        ("{env:TOKEN}{after}{", "s3cret17{"),
        ("{}{x}{after", "{}{x}{after"),
        ("{{after}}", "{17}"),
        ("{\"n\":{n}}", "{\"n\":6}"),
        ("", ""),
    ] {
        assert_eq!(expand(text, "17", Place::Url), expected, "{text}");
    }
    let none = Template::parse("ws://h:{port}").unwrap();
    assert_eq!(
        none.expand(&Values::default(), Place::Url),
        "ws://h:{port}",
        "a port that isn't known stays visible"
    );
}

#[test]
fn the_cursor_is_encoded_for_where_it_goes() {
    assert_eq!(
        expand("{after}", "a-b._~/+ &é%", Place::Url),
        "a-b._~%2F%2B%20%26%C3%A9%25"
    );
    assert_eq!(expand("{after}", "a/b é%", Place::Header), "a/b é%");
    assert_eq!(
        expand("{after}", "a\r\nX: y", Place::Header),
        "a%0D%0AX: y",
        "a server's id must not become a header of its own"
    );
}

#[test]
fn names_are_filled_in_as_they_ask_to_be() {
    for (text, expected) in [
        (
            "40{\"sid\":{sid|json},\"o\":{cursor}}",
            "40{\"sid\":\"a\\\"b\",\"o\":1/7}",
        ),
        ("{sid}{cursor|url}", "a\"b1%2F7"),
        ("{pid}{sid|xml}", "{sid|xml}"),
    ] {
        assert_eq!(expand(text, "1/7", Place::Text), expected, "{text}");
    }
    let whole = |text: &str, cursor| {
        let values = Values {
            cursor,
            ..Values::default()
        };
        Template::parse(text)
            .unwrap()
            .expand_whole(&values, Place::Text)
    };
    assert_eq!(whole("a{cursor}", None), None);
    assert_eq!(whole("a{cursor}", Some("")).as_deref(), Some("a"));
    assert_eq!(whole("a{client}", None).as_deref(), Some("a0"));
}

#[test]
fn a_clients_own_row_fills_its_columns() {
    for (text, expected) in [
        ("a={col:token}&b={col:room}", "a=t%2F1&b="),
        ("{col:token|json}", "\"t/1\""),
        ("{col:other}{col:}", "{col:other}{col:}"),
    ] {
        assert_eq!(expand(text, "", Place::Url), expected, "{text}");
    }
    let template = Template::parse("{col:room}").unwrap();
    let row = Row {
        names: &["room".into()],
        values: &[None],
    };
    let values = Values {
        row,
        ..Values::default()
    };
    assert_eq!(template.expand_whole(&values, Place::Header), None);
    assert_eq!(format!("{template:?} {row:?}"), "{col} [\"room\"]");
}

#[test]
fn what_is_missing_is_named() {
    let error = Template::parse_with("{env:NOT_SET}", &[], |_| None).unwrap_err();
    assert!(error.to_string().contains("NOT_SET"), "{error}");
    let error = Template::parse("{file:/nowhere/at all}").unwrap_err();
    assert!(error.to_string().contains("/nowhere/at all"), "{error}");
    assert!(matches!(error, Error::Usage(_)));
}

#[test]
fn a_file_is_read_without_its_last_line_break_and_never_shown() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    std::fs::write(&path, "s3cret\r\n").unwrap();
    let template = Template::parse(&format!("Bearer {{file:{}}}", path.display())).unwrap();
    assert_eq!(
        template.expand(&Values::default(), Place::Header),
        "Bearer s3cret"
    );
    assert_eq!(format!("{template:?}"), "..");
}

proptest! {
    #[test]
    fn any_text_compiles_and_holes_apart_comes_back(text in "[a-z{}:]{0,30}") {
        let env = |_: &str| Some(String::new());
        if let Ok(template) = Template::parse_with(&text, &[], env) {
            let expanded = template.expand(&Values::default(), Place::Url);
            if !["{after}", "{client}", "{n}", "{env:", "{file:"].iter().any(|h| text.contains(h)) {
                prop_assert_eq!(expanded, text);
            }
        }
    }

    #[test]
    fn an_encoded_cursor_decodes_to_itself(after in any::<String>()) {
        let text = expand("{after}", &after, Place::Url);
        prop_assert!(text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~%".contains(&b)));
        let decoded = percent_encoding::percent_decode_str(&text).decode_utf8().unwrap().into_owned();
        prop_assert_eq!(decoded, after);
    }
}
