//! Brokers, bots and the formulas of well-known texts.
//!
//! Numbers and their places only.

use super::{Preset, between, fixed, growing, millis, secs, steps};
use crate::backoff::{
    Backoff, ConnectTimeout, Counted, Growth, Jitter, Limits, Reset, Rule, Then, When, Window,
};

pub(super) const PRESETS: &[Preset] = &[
    Preset {
        name: "nats",
        aliases: &["nats.ws", "nats.js", "@nats-io/nats-core"],
        library: "nats.ws, @nats-io/nats-core",
        version: "1.30.3, 3.4.0",
        source: "lib/protocol.js, lib/options.js",
        policy: || {
            let then = Growth::new(secs(2), 1.0, secs(2), Jitter::Climbing(millis(100)));
            Backoff {
                counted: Counted::FromStart,
                connect: Some(ConnectTimeout::fixed(secs(20))),
                reset: Reset::OnAck,
                limits: attempts(10),
                ..Backoff::new(vec![AT_ONCE], then)
            }
        },
        ..OTHER
    },
    Preset {
        name: "mqttjs",
        aliases: &["mqtt.js", "mqtt"],
        library: "mqtt",
        version: "5.16.0",
        source: "build/lib/client.js, build/lib/handlers/connack.js",
        resume: "the session, with clean: false",
        policy: || Backoff {
            connect: Some(ConnectTimeout::fixed(secs(30))),
            rules: vec![Rule::stop(When::Declined)],
            ..fixed(secs(1))
        },
        ..OTHER
    },
    Preset {
        name: "paho",
        aliases: &["paho-mqtt"],
        library: "paho-mqtt",
        version: "2.2.0",
        source: "paho/mqtt/client.py",
        resume: "the session, with clean_session=False",
        policy: || Backoff {
            connect: Some(ConnectTimeout::fixed(secs(5))),
            reset: Reset::OnAck,
            ..growing(secs(1), 2.0, secs(120), Jitter::None)
        },
        ..OTHER
    },
    Preset {
        name: "python-websockets",
        aliases: &["websockets"],
        library: "websockets",
        version: "17.4",
        source: "websockets/client.py, websockets/asyncio/client.py",
        policy: || Backoff {
            connect: Some(ConnectTimeout::fixed(secs(10))),
            rules: vec![
                Rule::new(When::status(500), Then::Retry),
                Rule::new(When::Status(502, 504), Then::Retry),
                Rule::stop(When::Status(100, 599)),
            ],
            ..Backoff::new(
                vec![AT_ONCE, between(0, 5_000)],
                Growth::new(millis(3_100), 1.618, secs(90), Jitter::None),
            )
        },
        ..OTHER
    },
    Preset {
        name: "python-socketio",
        library: "python-socketio",
        version: "5.18.1",
        source: "socketio/client.py, socketio/async_client.py",
        policy: || Backoff {
            connect: Some(ConnectTimeout::fixed(secs(5))),
            rules: vec![Rule::stop(When::Declined)],
            requests: 3,
            ..growing(secs(1), 2.0, secs(5), Jitter::PlusMinus(millis(500)))
        },
        ..OTHER
    },
    Preset {
        name: "discordjs",
        aliases: &["discord.js", "@discordjs/ws"],
        library: "@discordjs/ws",
        version: "2.0.4",
        source: "dist/index.js",
        resume: "session_id and seq, on resume_gateway_url",
        policy: || Backoff {
            connect: Some(ConnectTimeout::fixed(secs(30))),
            rules: vec![
                Rule::stop(When::close(4_004)),
                Rule::stop(When::Close(4_010, 4_014)),
            ],
            ..fixed(millis(500))
        },
        ..OTHER
    },
    Preset {
        name: "slack",
        aliases: &["@slack/socket-mode"],
        library: "@slack/socket-mode",
        version: "3.1.0",
        source: "dist/src/SocketModeClient.js",
        policy: || {
            let then = Growth {
                cap: None,
                ..Growth::new(secs(1), 1.3, secs(1), Jitter::None)
            };
            Backoff {
                // The first is the client's own, the others those of its HTTP call.
                limits: attempts(101),
                requests: 2,
                ..Backoff::new(vec![Window::exactly(secs(5))], then)
            }
        },
        ..OTHER
    },
    Preset {
        name: "kafka",
        aliases: &["kafka-java", "kafka-clients"],
        library: "Kafka's Java client, reconnect.backoff",
        version: "trunk",
        source: "ClusterConnectionStates.java, ExponentialBackoff.java",
        resume: "offsets, by the application",
        policy: || {
            let then = Growth {
                ceiling: Some(secs(1)),
                ..Growth::new(millis(50), 2.0, secs(1), Jitter::Ratio(0.2))
            };
            Backoff {
                connect: Some(ConnectTimeout {
                    base: secs(10),
                    factor: 2.0,
                    cap: secs(30),
                }),
                reset: Reset::OnAck,
                ..Backoff::new(Vec::new(), then)
            }
        },
        ..OTHER
    },
    Preset {
        name: "kafkajs",
        library: "kafkajs",
        version: "2.2.4",
        source: "src/retry/index.js",
        resume: "offsets, by the application",
        policy: || Backoff {
            connect: Some(ConnectTimeout::fixed(secs(1))),
            limits: attempts(6),
            ..Backoff::new(
                vec![AT_ONCE],
                Growth::new(millis(300), 2.0, secs(30), Jitter::Compounding(0.2)),
            )
        },
        ..OTHER
    },
    Preset {
        name: "grpc",
        aliases: &["grpc-js", "@grpc/grpc-js"],
        library: "gRPC",
        version: "the document, and grpc-js 1.14.7",
        source: "doc/connection-backoff.md, backoff-timeout.ts",
        policy: || Backoff {
            counted: Counted::FromStart,
            connect: Some(ConnectTimeout::fixed(secs(20))),
            reset: Reset::OnAck,
            ..Backoff::new(
                vec![AT_ONCE, Window::exactly(secs(1))],
                Growth::new(millis(1_600), 1.6, secs(120), Jitter::Ratio(0.2)),
            )
        },
        ..OTHER
    },
    Preset {
        name: "aws-full",
        policy: || growing(secs(1), 2.0, secs(60), Jitter::Full),
        ..AWS
    },
    Preset {
        name: "aws-equal",
        policy: || growing(secs(1), 2.0, secs(60), Jitter::Equal),
        ..AWS
    },
    Preset {
        name: "aws-decorrelated",
        policy: || growing(secs(1), 3.0, secs(60), Jitter::Decorrelated),
        ..AWS
    },
];

const OTHER: Preset = Preset {
    name: "",
    aliases: &[],
    library: "",
    version: "",
    source: "",
    resume: "none",
    follow_up: "",
    policy: || steps(&[], secs(1)),
};

const AWS: Preset = Preset {
    library: "the AWS Architecture Blog, with 1 s and 60 s",
    version: "2015",
    source: "aws-samples/aws-arch-backoff-simulator",
    ..OTHER
};

const AT_ONCE: Window = Window::exactly(secs(0));

fn attempts(most: u32) -> Limits {
    Limits {
        attempts: Some(most),
        ..Limits::default()
    }
}
