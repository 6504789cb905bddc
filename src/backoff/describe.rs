//! A policy in words, for lists and reports, made from its data so that they can't drift apart.

use std::time::Duration;

use humantime::format_duration;

use super::rules::RetryAfter;
use super::{Backoff, Counted, First, Grows, Growth, Jitter, Reset, Then, Window};

/// How long it waits before retry n = 0, 1, ...
#[must_use]
pub fn delays(policy: &Backoff) -> String {
    let then = growth(&policy.then);
    let mut text = match &policy.first {
        First::Steps(steps) if steps.is_empty() => then,
        First::Steps(steps) => format!("{}, then {then}", all(steps)),
        First::Poll(poll) => format!(
            "a free-running poll each {} that finds the last message over {} old, then {then}",
            poll.every,
            time(poll.stale)
        ),
    };
    if let Some(fallback) = policy.fallback {
        text += &format!(
            "; if the first fails, or isn't open within {}, at once by another transport, and again from the beginning",
            time(fallback.within)
        );
    }
    if let Some(slow) = policy.limits.slow {
        text += &format!("; {} once away for {}", time(slow.delay), time(slow.after));
    }
    if policy.counted == Counted::FromStart {
        text += "; from the start of the attempt before";
    }
    text
}

/// What sets its count back.
#[must_use]
pub fn resets(policy: &Backoff) -> String {
    match policy.reset {
        Reset::OnOpen => "an open connection".into(),
        Reset::OnAck => "the application's acknowledgement".into(),
        Reset::AfterUptime(least) => format!("{} of uptime", time(least)),
        Reset::AfterQuiet(least) => format!("a last event {} before the end", time(least)),
    }
}

/// When it gives up, and its limit of a connect.
#[must_use]
pub fn limits(policy: &Backoff) -> String {
    let mut all = Vec::new();
    match policy.limits.attempts {
        Some(0) => all.push("never comes back".to_owned()),
        Some(most) => all.push(format!("{most} attempts")),
        None => {}
    }
    if let Some(most) = policy.limits.elapsed {
        all.push(format!("{} away", time(most)));
    }
    if all.is_empty() {
        all.push("never gives up".into());
    }
    match policy.connect {
        Some(limit) => all.push(format!("connect within {limit}")),
        None => all.push("no connect timeout".into()),
    }
    all.join(", ")
}

/// After what it never comes back; empty = it always does.
#[must_use]
pub fn fatal(policy: &Backoff) -> String {
    let stops = policy.rules.iter().filter(|rule| rule.then == Then::Stop);
    let retried = policy.rules.iter().filter(|rule| rule.then == Then::Retry);
    let join = |texts: Vec<String>| texts.join(", ");
    let stops = join(stops.map(|rule| rule.when.to_string()).collect());
    match join(retried.map(|rule| rule.when.to_string()).collect()) {
        _ if stops.is_empty() => String::new(),
        retried if retried.is_empty() => stops,
        retried => format!("{stops}; but not {retried}"),
    }
}

/// What it obeys of what a server says; empty = nothing.
#[must_use]
pub fn hints(policy: &Backoff) -> String {
    let mut all = Vec::new();
    match policy.hints.retry {
        Some(floor) if floor.is_zero() => all.push("retry:".to_owned()),
        Some(floor) => all.push(format!("retry: (from {} up)", time(floor))),
        None => {}
    }
    if policy.hints.retry_after == RetryAfter::Added {
        all.push("Retry-After".into());
    }
    for rule in &policy.rules {
        if let Then::After(delay) = rule.then {
            let when = if delay.is_zero() {
                "at once".into()
            } else {
                format!("after {}", time(delay))
            };
            all.push(format!("{}: {when}", rule.when));
        }
    }
    all.join(", ")
}

/// Steps one after the other; a long list of them is cut in the middle by nobody: it is the policy.
fn all(steps: &[Window]) -> String {
    let texts = steps.iter().map(|step| match (step.least, step.most) {
        (_, Duration::ZERO) => "at once".to_owned(),
        (least, most) if least == most => time(least),
        (least, most) => format!("uniform({}, {})", time(least), time(most)),
    });
    texts.collect::<Vec<_>>().join(", ")
}

fn growth(then: &Growth) -> String {
    let base = if then.base.least == then.base.most {
        time(then.base.least)
    } else {
        let (least, most) = (time(then.base.least), time(then.base.most));
        format!("uniform({least}, {most}), drawn once per client,")
    };
    let grown = match then.grows {
        Grows::Times(1.0) => base.clone(),
        Grows::Times(factor) => format!("{base} x {factor}^n"),
        Grows::Log => format!("{base} x ln(n + 1)"),
    };
    let v = match then.cap {
        Some(cap) if then.grows != Grows::Times(1.0) => format!("min({}, {grown})", time(cap)),
        _ => grown,
    };
    let percent = |share: f64| format!("{} %", (share * 1e4).round() / 1e2);
    let mut text = match then.jitter {
        Jitter::None => v,
        Jitter::Full => format!("uniform(0, {v})"),
        Jitter::Equal => format!("v/2 + uniform(0, v/2), v = {v}"),
        Jitter::Decorrelated => {
            let factor = match then.grows {
                Grows::Times(factor) => factor,
                Grows::Log => 1.0,
            };
            let cap = then
                .cap
                .map_or(String::new(), |cap| format!("min({}, ", time(cap)));
            let end = if cap.is_empty() { "" } else { ")" };
            format!("{cap}uniform({base}, {factor} x the delay before){end}")
        }
        Jitter::Ratio(share) => format!("{v} x (1 +- {})", percent(share)),
        Jitter::Compounding(share) => {
            format!(
                "{v} x (1 +- {}), each from the delay before",
                percent(share)
            )
        }
        Jitter::Less(share) => format!("{v} x (1 - uniform(0, {}))", percent(share)),
        Jitter::More(share) => format!("{v} x (1 + uniform(0, {}))", percent(share)),
        Jitter::PlusMinus(by) => format!("{v} +- {}", time(by)),
        Jitter::Plus(by) => format!("{v} + uniform({}, {})", time(by.least), time(by.most)),
        Jitter::Climbing(by) => format!("{v} + 0 to {}, leaning to the end", time(by)),
        Jitter::Doubled(share) => {
            format!("(v + uniform(0, v)) x (1 +- {}), v = {v}", percent(share))
        }
        Jitter::Comb(share) => format!("{v} +- a comb of up to {}", percent(share)),
    };
    if !then.plus.is_zero() {
        text = format!("{} + {text}", time(then.plus));
    }
    match then.ceiling {
        Some(most) => format!("min({}, {text})", time(most)),
        None => text,
    }
}

/// In seconds or milliseconds, as people write such delays.
fn time(time: Duration) -> String {
    let millis = time.as_secs_f64() * 1e3;
    if time.as_secs() >= 60 && time.subsec_nanos() == 0 {
        format_duration(time).to_string()
    } else if millis >= 1e3 {
        format!("{} s", (millis.round()) / 1e3)
    } else if time.is_zero() {
        "0".into()
    } else {
        format!("{} ms", millis.round())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backoff::presets;

    #[test]
    fn every_form_has_its_words() {
        let words = |name: &str| delays(&(presets::find(name).unwrap().policy)());
        let named = [
            "full-jitter",
            "exponential-25",
            "immediate",
            "socketio",
            "reconnecting-websocket",
            "phoenix-liveview",
            "actioncable",
            "centrifuge",
            "ably",
            "aws-decorrelated",
        ];
        let lines: Vec<_> = named
            .iter()
            .map(|name| format!("{name}: {}", words(name)))
            .collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn rules_and_hints_are_named() {
        let policy = |name: &str| (presets::find(name).unwrap().policy)();
        assert_eq!(fatal(&policy("full-jitter")), "");
        assert_eq!(
            fatal(&policy("launchdarkly")),
            "status 100-599; but not status 500, status 502-504"
        );
        assert_eq!(
            hints(&policy("eventsource-firefox")),
            "retry: (from 500 ms up)"
        );
        assert_eq!(hints(&policy("graphql-ws")), "close 1000: at once");
        assert_eq!(hints(&policy("retry-after")), "retry:, Retry-After");
        assert_eq!(
            limits(&policy("kafka")),
            "never gives up, connect within 10s x 2 up to 30s"
        );
        assert_eq!(
            limits(&policy("engineio")),
            "never comes back, no connect timeout"
        );
    }
}
