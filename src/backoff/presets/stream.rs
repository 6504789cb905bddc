//! Clients of event streams.
//!
//! Numbers and their places only. None of them tells a refused connect from another network error.

use super::{Preset, fixed, growing, millis, secs, websocket};
use crate::backoff::{Backoff, Hints, Jitter, Reset, Rule, Then, When};
use std::time::Duration;

pub(super) const PRESETS: &[Preset] = &[
    Preset {
        name: "eventsource-chromium",
        aliases: &[
            "eventsource",
            "eventsource-webkit",
            "eventsource-safari",
            "eventsource-chrome",
        ],
        library: "EventSource of Chromium and WebKit",
        version: "2022 and 2023",
        source: "event_source.cc; Source/WebCore/page/EventSource.cpp",
        policy: || native(secs(3), Duration::ZERO),
        ..STREAM
    },
    Preset {
        name: "eventsource-firefox",
        library: "EventSource of Firefox",
        version: "gecko-dev",
        source: "dom/base/EventSource.cpp",
        policy: || native(secs(5), millis(500)),
        ..STREAM
    },
    Preset {
        name: "eventsource-npm",
        library: "eventsource",
        version: "3.0.7 to 5.1.5",
        source: "src/EventSource.ts",
        policy: || native(secs(3), Duration::ZERO),
        ..STREAM
    },
    Preset {
        name: "eventsource-npm-2",
        library: "eventsource",
        version: "2.0.2",
        source: "lib/eventsource.js",
        policy: || Backoff {
            rules: only_gateways(),
            ..obeying(fixed(secs(1)), Duration::ZERO)
        },
        ..STREAM
    },
    Preset {
        name: "fetch-event-source",
        aliases: &["@microsoft/fetch-event-source"],
        library: "@microsoft/fetch-event-source",
        version: "2.0.1",
        source: "lib/esm/fetch.js",
        policy: || Backoff {
            // It resolves.
            rules: vec![Rule::stop(When::Eof)],
            ..obeying(fixed(secs(1)), Duration::ZERO)
        },
        ..STREAM
    },
    Preset {
        name: "graphql-sse",
        library: "graphql-sse",
        version: "2.6.1",
        source: "lib/client.mjs",
        resume: "none",
        policy: websocket::graphql,
        ..STREAM
    },
    Preset {
        name: "launchdarkly",
        aliases: &["launchdarkly-eventsource"],
        library: "launchdarkly-eventsource, the options of its README",
        version: "2.2.0",
        source: "lib/eventsource.js, lib/retry-delay.js",
        policy: || Backoff {
            rules: only_gateways(),
            reset: Reset::AfterQuiet(secs(60)),
            ..obeying(
                growing(secs(1), 2.0, secs(30), Jitter::Less(0.5)),
                Duration::ZERO,
            )
        },
        ..STREAM
    },
    Preset {
        name: "eventsource-client-rs",
        aliases: &["eventsource-client"],
        library: "eventsource-client",
        version: "0.18.0",
        source: "src/retry.rs, src/client.rs",
        policy: || Backoff {
            reset: Reset::AfterUptime(secs(60)),
            ..obeying(growing(secs(1), 2.0, secs(60), Jitter::Equal), millis(1))
        },
        ..STREAM
    },
    Preset {
        name: "reqwest-eventsource",
        library: "reqwest-eventsource",
        version: "0.6.0",
        source: "src/retry.rs, src/event_source.rs",
        policy: || Backoff {
            rules: vec![Rule::stop(When::Status(100, 599))],
            ..obeying(
                growing(millis(300), 2.0, secs(5), Jitter::None),
                Duration::ZERO,
            )
        },
        ..STREAM
    },
];

const STREAM: Preset = Preset {
    name: "",
    aliases: &[],
    library: "",
    version: "",
    source: "",
    resume: "Last-Event-ID",
    follow_up: "",
    policy: || fixed(secs(3)),
};

/// The delay of a browser, which any answer but a stream ends for good (WHATWG HTML, 9.2.3).
fn native(delay: Duration, floor: Duration) -> Backoff {
    Backoff {
        rules: vec![Rule::stop(When::Status(100, 599))],
        ..obeying(fixed(delay), floor)
    }
}

/// `retry:` is obeyed, from `floor` up.
fn obeying(policy: Backoff, floor: Duration) -> Backoff {
    Backoff {
        hints: Hints {
            retry: Some(floor),
            ..policy.hints
        },
        ..policy
    }
}

/// Of all statuses, only those of an overloaded gateway are tried again.
fn only_gateways() -> Vec<Rule> {
    vec![
        Rule::new(When::status(500), Then::Retry),
        Rule::new(When::Status(502, 504), Then::Retry),
        Rule::stop(When::Status(100, 599)),
    ]
}
