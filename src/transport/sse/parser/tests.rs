//! The parser against the standard's own examples, against streams on which published parsers went wrong, and against a
//! reader that sees the whole text at once.

mod naive;

use proptest::prelude::*;

use self::naive::naive;
use super::*;

const LIMIT: usize = 1 << 16;

/// Everything in a stream that comes in these pieces, and whether it was read to its end.
fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limit: usize) -> (Vec<Item>, bool) {
    let mut parser = Parser::new(limit);
    let mut items = Vec::new();
    for mut piece in pieces {
        loop {
            match parser.read(&mut piece) {
                Ok(Some(item)) => items.push(item),
                Ok(None) => break,
                Err(Oversize) => return (items, false),
            }
        }
        assert!(piece.is_empty());
    }
    (items, true)
}

/// What a stream holds, whole and byte by byte.
fn items(bytes: &[u8]) -> Vec<Item> {
    let whole = read([bytes], LIMIT);
    assert_eq!(read(bytes.chunks(1), LIMIT), whole, "byte by byte");
    assert!(whole.1);
    assert_eq!(whole.0, naive(bytes), "the standard's words");
    whole.0
}

fn block(event: &str, data: Option<&str>, id: Option<&str>) -> Item {
    Item::Block(Block {
        event: event.into(),
        data: data.unwrap_or_default().into(),
        id: id.map(Into::into),
        has_data: data.is_some(),
    })
}

fn message(data: &str) -> Item {
    block("", Some(data), None)
}

fn ms(ms: u64) -> Item {
    Item::Retry(Duration::from_millis(ms))
}

#[test]
fn the_standards_examples_read_as_it_says() {
    assert_eq!(
        items(b"data: YHOO\ndata: +2\ndata: 10\n\n"),
        [message("YHOO\n+2\n10")]
    );
    let stream = b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n";
    assert_eq!(
        items(stream),
        [
            block("", Some("first event"), Some("1")),
            block("", Some("second event"), Some("")),
            message(" third event"),
        ]
    );
    assert_eq!(
        items(b"data\n\ndata\ndata\n\ndata:"),
        [message(""), message("\n")],
        "the last block has no end"
    );
    assert_eq!(
        items(b"data:test\n\ndata: test\n\n"),
        [message("test"), message("test")]
    );
    assert_eq!(
        items(b"event: add\ndata: 73857293\n\nevent: remove\ndata: 2153\n\n"),
        [
            block("add", Some("73857293"), None),
            block("remove", Some("2153"), None)
        ]
    );
}

// From here on: the rows of the collected reports of event stream bugs, in their order.

#[test]
fn a_crlf_that_two_reads_split_ends_one_line() {
    let pieces = [&b"data: a\r"[..], b"\ndata: b\r\n\r\n"];
    assert_eq!(read(pieces, LIMIT).0, [message("a\nb")]);
    assert_eq!(items(&pieces.concat()), [message("a\nb")]);
}

#[test]
fn every_line_end_will_do_in_any_mix() {
    for stream in [
        &b"data: a\ndata: b\n\n"[..],
        b"data: a\rdata: b\r\r",
        b"data: a\r\ndata: b\r\n\r\n",
        b"data: a\rdata: b\n\r\n",
        b"data: a\ndata: b\r\n\r",
        b"data: a\r\ndata: b\r\n\n",
        b"data: a\ndata: b\n\r",
    ] {
        assert_eq!(items(stream), [message("a\nb")], "{stream:?}");
    }
    // LF CR is two ends, and so is CR CR LF.
    assert_eq!(
        items(b"data: a\n\rdata: b\r\r\n"),
        [message("a"), message("b")]
    );
}

#[test]
fn a_block_is_told_at_the_cr_without_waiting_for_more() {
    assert_eq!(read([&b"data: a\r\r"[..]], LIMIT).0, [message("a")]);
    assert_eq!(read([&b"data: a\r\n\r"[..]], LIMIT).0, [message("a")]);
}

#[test]
fn a_character_split_over_reads_stays_whole() {
    let bytes = "data:x€y\n\n".as_bytes();
    for at in 0..=bytes.len() {
        let (a, b) = bytes.split_at(at);
        assert_eq!(read([a, b], LIMIT).0, [message("x€y")], "split at {at}");
    }
    assert_eq!(
        items("event: é€😀\ndata:😀\nid: ü\n\n".as_bytes()),
        [block("é€😀", Some("😀"), Some("ü"))]
    );
}

#[test]
fn one_space_behind_the_colon_goes_and_no_more() {
    assert_eq!(
        items(b"data:x\n\ndata: x\n\ndata:  x\n\ndata:\tx\n\ndata:x \n\n"),
        [
            message("x"),
            message("x"),
            message(" x"),
            message("\tx"),
            message("x ")
        ]
    );
    assert_eq!(
        items(b"data: a: b\n\ndata::\n\n"),
        [message("a: b"), message(":")]
    );
}

#[test]
fn a_line_without_a_colon_is_a_field_without_a_value() {
    assert_eq!(items(b"data\n\n"), [message("")]);
    assert_eq!(items(b"id\ndata: x\n\n"), [block("", Some("x"), Some(""))]);
    assert_eq!(items(b"event: e\nevent\ndata: x\n\n"), [message("x")]);
    assert_eq!(items(b"retry\n\n"), []);
}

#[test]
fn what_the_end_finds_unfinished_is_dropped_with_its_id() {
    assert_eq!(
        items(b"id: 1\ndata: x\n\nid: 2\ndata: half\n"),
        [block("", Some("x"), Some("1"))]
    );
    assert_eq!(
        items(b"id: 1\ndata: x\n\nid: 2"),
        [block("", Some("x"), Some("1"))]
    );
    assert_eq!(
        items(b"data: x\r\n\r"),
        [message("x")],
        "this one is finished"
    );
    // The next connection has a parser of its own: nothing of the half comes back.
    assert_eq!(items(b"data: x\n\n"), [message("x")]);
}

#[test]
fn an_id_with_a_nul_is_as_if_it_had_not_come() {
    assert_eq!(
        items(b"id: 1\nid: a\0b\ndata: x\n\n"),
        [block("", Some("x"), Some("1"))]
    );
    assert_eq!(items(b"id: a\0\ndata: x\n\n"), [message("x")]);
    assert_eq!(items(b"id: \0\n\n"), []);
    assert_eq!(
        items(b"data: a\0b\nevent: \0\n\n"),
        [block("\0", Some("a\0b"), None)]
    );
}

#[test]
fn an_event_without_an_id_says_nothing_of_it() {
    assert_eq!(
        items(b"id: 1\ndata: x\n\ndata: y\n\n"),
        [block("", Some("x"), Some("1")), message("y")]
    );
}

#[test]
fn an_empty_id_clears_and_is_not_the_same_as_none() {
    assert_eq!(items(b"id:\ndata: x\n\n"), [block("", Some("x"), Some(""))]);
    assert_eq!(
        items(b"id: \ndata: x\n\n"),
        [block("", Some("x"), Some(""))]
    );
    assert_eq!(
        items(b"id: 7\nid:\ndata: x\n\n"),
        [block("", Some("x"), Some(""))]
    );
    assert_eq!(
        items(b"id:  \ndata: x\n\n"),
        [block("", Some("x"), Some(" "))]
    );
}

#[test]
fn a_block_without_data_moves_the_id_and_is_no_event() {
    assert_eq!(
        items(b"id: 5\n\nevent: ping\nid: 6\n\nevent: ping\n\ndata: x\n\n"),
        [
            block("", None, Some("5")),
            block("ping", None, Some("6")),
            message("x")
        ],
        "the name of a block without data is forgotten with it"
    );
    // MCP's priming block: an id and empty data, which is an event.
    assert_eq!(
        items(b"id: s/0\ndata:\n\n"),
        [block("", Some(""), Some("s/0"))]
    );
}

#[test]
fn ids_are_opaque_byte_for_byte() {
    for id in [
        "1796033310:1",
        "urn:uuid:5e94c686-2c0b-4f9b-958c-92ccc3bbb4eb",
        r#"[{"topic":"eqiad.x","partition":0,"offset":-1}, {"x": "é"}]"#,
        "1/chat_42/y2023",
        "9007199254740993",
        "007",
        "a\tb",
    ] {
        let stream = format!("id: {id}\ndata: x\n\n");
        assert_eq!(items(stream.as_bytes()), [block("", Some("x"), Some(id))]);
    }
}

#[test]
fn comments_and_unknown_fields_say_nothing() {
    assert_eq!(
        items(b":\n\n: ping\n:data: no\nfoo: bar\nDATA: no\n data: no\ndata : no\nfoo\ndata: x\n\n:410: 410 Gone\n"),
        [message("x")]
    );
    assert_eq!(items(b"\n\n\r\r\n"), []);
}

#[test]
fn one_byte_order_mark_at_the_very_beginning_is_none_of_the_text() {
    assert_eq!(items(b"\xef\xbb\xbfdata: x\n\n"), [message("x")]);
    assert_eq!(items(b"\xef\xbb\xbf\n\ndata: x\n\n"), [message("x")]);
    assert_eq!(
        items(b"\xef\xbb\xbf\xef\xbb\xbfdata: x\n\n"),
        [],
        "the second is a part of the name"
    );
    assert_eq!(items(b"\n\xef\xbb\xbfdata: x\n\n"), []);
    assert_eq!(items(b"\xef\xbbdata: x\n\n"), []);
    assert_eq!(items(b"data: \xef\xbb\xbfx\n\n"), [message("\u{feff}x")]);
}

#[test]
fn retry_is_digits_alone() {
    assert_eq!(items(b"retry: 1500\n"), [ms(1500)], "at once");
    assert_eq!(
        items(b"data: x\nretry:0\nretry: 007\nretry: 2147483647\n\n"),
        [ms(0), ms(7), ms(2_147_483_647), message("x")]
    );
    assert_eq!(items(b"retry: 99999999999999999999\n"), [ms(u64::MAX)]);
    for wrong in ["", "-1", "+1", "1.5", "1 ", "  1", "1s", "0x10", "\u{661}"] {
        assert_eq!(
            items(format!("retry: {wrong}\n\n").as_bytes()),
            [],
            "{wrong:?}"
        );
    }
}

#[test]
fn what_is_no_utf_8_is_replaced_as_the_standards_decoder_does() {
    for (bytes, text) in [
        (&b"a\xffb"[..], "a\u{fffd}b"),
        (b"\xe2\x82", "\u{fffd}"),
        (b"\xe2\x82x", "\u{fffd}x"),
        (b"\xc0\x80", "\u{fffd}\u{fffd}"),
        (b"\xf0\x9f\x98", "\u{fffd}"),
        (b"\xed\xa0\x80", "\u{fffd}\u{fffd}\u{fffd}"),
    ] {
        let stream = [b"data: ", bytes, b"\n\n"].concat();
        assert_eq!(items(&stream), [message(text)], "{bytes:?}");
    }
}

#[test]
fn captured_streams_read_as_their_servers_meant_them() {
    let sse_starlette =
        b"id: 2\r\nevent: tick\r\ndata: line2\r\ndata: second\r\nretry: 1500\r\n\r\n\
        : ping - 2026-11-30 10:21:42.810902+00:00\r\n\r\n";
    assert_eq!(
        items(sse_starlette),
        [ms(1500), block("tick", Some("line2\nsecond"), Some("2"))]
    );
    let nestjs = b"\nevent: tick\nid: 2\nretry: 900\ndata: {\"v\":\"b\"}\n\n";
    assert_eq!(
        items(nestjs),
        [ms(900), block("tick", Some("{\"v\":\"b\"}"), Some("2"))]
    );
}

#[test]
fn lines_and_blocks_have_a_limit() {
    assert_eq!(
        read([&b"data: 67890\n\n"[..]], 11),
        (vec![message("67890")], true)
    );
    for (stream, limit) in [
        (&b"data: ok\n\ndata: 67890\n\n"[..], 10),
        (b"data: ok\n\n:90123456789012345", 10),
        (b"data: ok\n\ndata:12345\ndata:67890\n\n", 10),
        (b"data: ok\n\nid:123456\nevent:6789\ndata:0\n\n", 10),
        (b"data: ok\n\ndata:\xff\xff\xff\xff\n\n", 10),
    ] {
        for size in 1..=stream.len() {
            let told = read(stream.chunks(size), limit);
            assert_eq!(told, (vec![message("ok")], false), "{stream:?} by {size}");
        }
    }
}

/// Bytes as they come in event streams, often enough in places where they hurt.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        6 => prop::sample::select(vec![
            "\n", "\r", "\r\n", "\n\n", "\r\n\r\n", ":", " ", "data:", "data: ", "data", "id:", "id: ", "id", "event:",
            "event", "retry:", "retry: 10", "0", "x", "é", "€", "😀", "\u{feff}", "\0", ":c",
        ]).prop_map(|text| text.as_bytes().to_vec()),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ];
    prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn however_it_is_cut_it_reads_the_same(
        bytes in stream(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        limit in prop_oneof![Just(LIMIT), 1usize..60],
    ) {
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        let pieces = places.windows(2).map(|at| &bytes[at[0]..at[1]]);
        let whole = read([&bytes[..]], limit);
        prop_assert_eq!(&read(pieces, limit), &whole);
        prop_assert_eq!(&read(bytes.chunks(1), limit), &whole);
        if whole.1 {
            prop_assert_eq!(whole.0, naive(&bytes));
        }
    }
}
