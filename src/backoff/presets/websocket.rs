//! Clients over WebSocket, and those protocols that bring their own.
//!
//! Numbers and their places only.

use super::{Preset, between, fixed, growing, millis, secs, steps};
use crate::backoff::{
    Backoff, ConnectTimeout, Counted, Fallback, First, Grows, Growth, Jitter, Limits, Poll, Reset,
    Rule, Slow, Then, When, Window,
};

pub(super) const PRESETS: &[Preset] = &[
    Preset {
        name: "socketio",
        aliases: &["socket.io", "socket.io-client"],
        library: "socket.io-client",
        version: "4.8.4",
        source: "build/esm/contrib/backo2.js, build/esm/manager.js",
        resume: "pid and offset in CONNECT, where the server has connection state recovery",
        follow_up: "",
        policy: || Backoff {
            connect: Some(ConnectTimeout::fixed(secs(20))),
            rules: vec![Rule::stop(When::Declined)],
            // A handshake by polling, the POST of its CONNECT, then an upgrade.
            requests: 3,
            ..comb(1_000, 5_000)
        },
    },
    Preset {
        name: "engineio",
        aliases: &["engine.io", "engine.io-client"],
        library: "engine.io-client",
        version: "6.6.8",
        source: "build/esm/socket.js",
        resume: NONE,
        follow_up: "",
        // It has no reconnection of its own.
        policy: || limited(fixed(secs(1)), 0),
    },
    Preset {
        name: "reconnecting-websocket",
        aliases: &[],
        library: "reconnecting-websocket",
        version: "4.4.0",
        source: "reconnecting-websocket.ts",
        resume: NONE,
        follow_up: "",
        policy: || {
            let then = Growth {
                base: between(1_000, 5_000),
                ..Growth::new(secs(1), 1.3, secs(10), Jitter::None)
            };
            Backoff {
                connect: Some(ConnectTimeout::fixed(secs(4))),
                reset: Reset::AfterUptime(secs(5)),
                ..Backoff::new(Vec::new(), then)
            }
        },
    },
    Preset {
        name: "partysocket",
        aliases: &[],
        library: "partysocket",
        version: "1.3.0",
        source: "dist/ws.js",
        resume: NONE,
        follow_up: "",
        policy: || Backoff {
            connect: Some(ConnectTimeout::fixed(secs(4))),
            reset: Reset::AfterUptime(secs(5)),
            ..growing(secs(3), 1.3, secs(10), Jitter::None)
        },
    },
    Preset {
        name: "phoenix",
        aliases: &["phoenix.js", "phoenix-channels"],
        library: "phoenix",
        version: "1.8.16",
        source: "assets/js/phoenix/socket.js, assets/js/phoenix/timer.js",
        resume: NONE,
        follow_up: "all channels rejoin at once; a refused join again after 1, 2, 5, then 10 s",
        policy: phoenix,
    },
    Preset {
        name: "phoenix-liveview",
        aliases: &["phoenix_live_view", "liveview"],
        library: "phoenix_live_view",
        version: "1.2.12",
        source: "assets/js/phoenix/socket.js, phoenix/installer/templates/phx_assets/app.js",
        resume: NONE,
        follow_up: "a refused join reloads the page after 5 to 10 s",
        policy: || Backoff {
            fallback: Some(Fallback {
                within: millis(2_500),
                // With a token that is refused, then the poll.
                requests: 2,
            }),
            ..phoenix()
        },
    },
    Preset {
        name: "actioncable",
        aliases: &["@rails/actioncable", "action-cable"],
        library: "@rails/actioncable",
        version: "8.1.400 (since 7.0)",
        source: "src/connection_monitor.js, src/subscription_guarantor.js",
        resume: NONE,
        follow_up: "every subscription at once, and again each 500 ms until it is confirmed",
        policy: || {
            let then = Growth::new(
                secs(6),
                1.15,
                secs(6).mul_f64(1.15f64.powi(10)),
                Jitter::More(0.15),
            );
            cable(between(6_000, 12_000), then)
        },
    },
    Preset {
        name: "actioncable-6",
        aliases: &["action-cable-6"],
        library: "@rails/actioncable",
        version: "6.0 to 6.1",
        source: "src/connection_monitor.js",
        resume: NONE,
        follow_up: "every subscription at once",
        policy: || {
            let then = Growth {
                grows: Grows::Log,
                ..Growth::new(secs(5), 1.0, secs(30), Jitter::None)
            };
            cable(Window::exactly(secs(3)), then)
        },
    },
    Preset {
        name: "anycable",
        aliases: &["@anycable/core", "@anycable/web"],
        library: "@anycable/core",
        version: "1.1.7",
        source: "monitor/index.js, create-cable/index.js",
        resume: "sid, and epoch and offset of each stream",
        follow_up: "every subscription at once",
        policy: || Backoff {
            reset: Reset::OnAck,
            rules: vec![Rule::stop(When::Declined)],
            ..Backoff::new(
                Vec::new(),
                Growth {
                    cap: None,
                    ..Growth::new(secs(3), 2.0, secs(3), Jitter::Doubled(0.5))
                },
            )
        },
    },
    Preset {
        name: "signalr",
        aliases: &["@microsoft/signalr"],
        library: "@microsoft/signalr, withAutomaticReconnect()",
        version: "10.0.11",
        source: "dist/esm/DefaultReconnectPolicy.js, dist/esm/HubConnection.js",
        resume: NONE,
        follow_up: "",
        policy: || signalr(&[0, 2_000, 10_000, 30_000]),
    },
    Preset {
        name: "signalr-stateful",
        aliases: &[],
        library: "@microsoft/signalr, withStatefulReconnect()",
        version: "10.0.11",
        source: "dist/esm/HttpConnection.js, dist/esm/MessageBuffer.js",
        resume: "the same connection token; sequence numbers and acknowledgements",
        follow_up: "",
        policy: || signalr(&[0, 0, 2_000, 10_000, 30_000]),
    },
    Preset {
        name: "graphql-ws",
        aliases: &[],
        library: "graphql-ws",
        version: "6.4.2",
        source: "dist/client.js",
        resume: NONE,
        follow_up: "every subscription at once",
        policy: || {
            let mut rules = vec![
                Rule::stop(When::Unconnected),
                Rule::stop(When::Status(100, 599)),
            ];
            rules.extend(graphql_closes());
            Backoff { rules, ..graphql() }
        },
    },
    Preset {
        name: "graphql-ws-retry-all",
        aliases: &[],
        library: "graphql-ws, shouldRetry: () => true",
        version: "6.4.2",
        source: "dist/client.js",
        resume: NONE,
        follow_up: "every subscription at once",
        policy: || Backoff {
            rules: graphql_closes(),
            ..graphql()
        },
    },
    Preset {
        name: "subscriptions-transport-ws",
        aliases: &[],
        library: "subscriptions-transport-ws, reconnect: true",
        version: "0.11.0",
        source: "dist/client.js; backo2 1.0.2, index.js",
        resume: NONE,
        follow_up: "every subscription at once",
        policy: || Backoff {
            connect: Some(ConnectTimeout {
                base: secs(1),
                factor: 1.2,
                cap: secs(30),
            }),
            reset: Reset::OnAck,
            ..comb(100, 10_000)
        },
    },
    Preset {
        name: "centrifuge",
        aliases: &["centrifuge-js", "centrifugo"],
        library: "centrifuge",
        version: "5.8.0",
        source: "build/index.js",
        resume: "recover, offset and epoch of each subscription",
        follow_up: "each refused subscription again, by the same backoff",
        policy: || {
            let then = Growth {
                plus: millis(500),
                ceiling: Some(secs(20)),
                ..Growth::new(millis(500), 2.0, secs(20), Jitter::Full)
            };
            Backoff {
                connect: Some(ConnectTimeout::fixed(secs(5))),
                reset: Reset::OnAck,
                rules: vec![
                    Rule::new(When::CloseSays(true), Then::Retry),
                    Rule::stop(When::CloseSays(false)),
                    Rule::stop(When::CloseWithReason(3_500, 3_999)),
                    Rule::stop(When::CloseWithReason(4_500, 4_999)),
                    Rule::stop(When::close(1_009)),
                    Rule::stop(When::Declined),
                ],
                ..Backoff::new(Vec::new(), then)
            }
        },
    },
    Preset {
        name: "pusher",
        aliases: &["pusher-js"],
        library: "pusher-js, WebSocket only",
        version: "8.6.0",
        source: "src/core/connection/connection_manager.ts, src/core/strategies",
        resume: NONE,
        follow_up: "every channel at once",
        policy: || Backoff {
            counted: Counted::FromStart,
            reset: Reset::OnAck,
            connect: Some(ConnectTimeout {
                base: secs(15),
                factor: 2.0,
                cap: secs(60),
            }),
            rules: vec![
                Rule::new(When::close(4_000), Then::After(secs(0))),
                Rule::stop(When::Close(4_001, 4_099)),
                Rule::new(When::Close(4_200, 4_299), Then::After(secs(0))),
                Rule::stop(When::Close(4_300, 4_999)),
            ],
            // The transport that worked last is tried first, once; then the list.
            ..steps(&[1_000, 0, 15_000, 30_000], secs(60))
        },
    },
    Preset {
        name: "ably",
        aliases: &["ably-js"],
        library: "ably",
        version: "2.28.0",
        source: "src/common/lib/transport/connectionmanager.ts, src/common/lib/util/utils.ts",
        resume: "resume=<connectionKey>, and channelSerial of each channel",
        follow_up: "every channel at once",
        policy: || {
            let first = vec![
                Window::exactly(secs(0)),
                between(16_000, 20_000),
                between(20_000, 25_000),
            ];
            let then = Growth::new(secs(30), 1.0, secs(30), Jitter::Less(0.2));
            Backoff {
                connect: Some(ConnectTimeout::fixed(secs(10))),
                reset: Reset::OnAck,
                limits: Limits {
                    slow: Some(Slow {
                        after: secs(120),
                        delay: secs(30),
                    }),
                    ..Limits::default()
                },
                ..Backoff::new(first, then)
            }
        },
    },
    Preset {
        name: "supabase",
        aliases: &["@supabase/realtime-js", "@supabase/supabase-js"],
        library: "@supabase/realtime-js",
        version: "2.119.0",
        source: "src/RealtimeClient.ts; @supabase/phoenix 0.4.5",
        resume: NONE,
        follow_up: "all channels rejoin at once; a refused join again after 1, 2, 5, then 10 s",
        policy: || steps(&[1_000, 2_000, 5_000], secs(10)),
    },
];

const NONE: &str = "none";

/// backo2, as socket.io and subscriptions-transport-ws use it; numbers in ms.
fn comb(base: u64, most: u64) -> Backoff {
    let then = Growth {
        cap: None,
        ceiling: Some(millis(most)),
        ..Growth::new(millis(base), 2.0, millis(most), Jitter::Comb(0.5))
    };
    Backoff::new(Vec::new(), then)
}

fn limited(policy: Backoff, attempts: u32) -> Backoff {
    Backoff {
        limits: Limits {
            attempts: Some(attempts),
            ..policy.limits
        },
        ..policy
    }
}

fn phoenix() -> Backoff {
    steps(&[10, 50, 100, 150, 200, 250, 500, 1_000, 2_000], secs(5))
}

fn cable(every: Window, then: Growth) -> Backoff {
    Backoff {
        first: First::Poll(Poll {
            every,
            stale: secs(6),
            beat: secs(3),
        }),
        counted: Counted::FromStart,
        reset: Reset::OnAck,
        rules: vec![Rule::stop(When::Declined)],
        ..Backoff::new(Vec::new(), then)
    }
}

fn signalr(delays: &[u64]) -> Backoff {
    Backoff {
        // The negotiation's.
        connect: Some(ConnectTimeout::fixed(secs(100))),
        reset: Reset::OnAck,
        rules: vec![Rule::stop(When::Declined)],
        requests: 2,
        ..limited(steps(delays, secs(30)), delays.len() as u32)
    }
}

/// Also graphql-sse's delays.
pub(super) fn graphql() -> Backoff {
    let by = between(300, 3_000);
    let then = Growth::new(secs(1), 2.0, secs(16), Jitter::Plus(by));
    Backoff {
        reset: Reset::OnAck,
        ..limited(Backoff::new(Vec::new(), then), 5)
    }
}

/// Which closes end a subscription, and the one that is answered at once.
fn graphql_closes() -> Vec<Rule> {
    let mut rules = vec![Rule::new(When::close(1_000), Then::After(secs(0)))];
    let retried = [(1_001, 1_001), (1_005, 1_006), (1_012, 1_014)];
    rules.extend(retried.map(|(from, to)| Rule::new(When::Close(from, to), Then::Retry)));
    rules.push(Rule::stop(When::Close(1_000, 1_999)));
    let fatal = [4_500, 4_005, 4_400, 4_004, 4_401, 4_406, 4_409, 4_429];
    rules.extend(fatal.map(|code| Rule::stop(When::close(code))));
    rules
}
