//! The reading of frames by the built-in profiles: no bytes make it panic, and the same frame always means the same.
#![no_main]

use std::sync::LazyLock;

use herd::profile::{Carried, Pointers, Profile, ProfileName, Spec};
use herd::transport::{Frame, Kind};
use libfuzzer_sys::fuzz_target;

static PROFILES: LazyLock<Vec<Profile>> = LazyLock::new(|| {
    ProfileName::ALL
        .iter()
        .map(|name| {
            let compiled = Profile::compile(&Spec::builtin(*name), &Pointers::default());
            compiled.expect("a built-in profile compiles")
        })
        .collect()
});

// The last byte says which profile reads, whether its session resumes, and whether the block of an event stream has data.
fuzz_target!(|input: &[u8]| {
    let Some((&how, bytes)) = input.split_last() else {
        return;
    };
    let which = usize::from(how) % PROFILES.len();
    let kind = match (ProfileName::ALL[which], std::str::from_utf8(bytes)) {
        (ProfileName::Sse, Ok(text)) => Kind::Event {
            name: text.split('\n').next().unwrap_or_default(),
            id: text.split('\n').nth(1),
            has_data: how & 32 == 0,
        },
        (_, Ok(_)) => Kind::Text,
        (_, Err(_)) => Kind::Binary,
    };
    let carried = match how & 128 {
        0 => Carried::Nothing,
        _ => Carried::Cursor,
    };
    let frame = Frame { bytes, kind };
    let read = PROFILES[which].decode(frame, carried);
    assert_eq!(read, PROFILES[which].decode(frame, carried));
});
