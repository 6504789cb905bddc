//! The policy as the `[client.backoff]` table: a preset or a form by its name, and what differs from it.

use toml::Value;

use super::Page;
use crate::backoff::rules::RetryAfter;
use crate::backoff::{Backoff, Counted, First, Grows, Reset, presets};
use crate::history::PolicySource;
use crate::scenario::Policy;
use crate::scenario::draft::Kind;
use crate::scenario::resolve::raw;

pub(super) fn table(page: &mut Page, policy: &Policy) {
    if policy.source == PolicySource::Assumed {
        return;
    }
    page.table("client.backoff");
    match policy.mix.parts() {
        [one] => one_policy(page, &one.name, &one.backoff),
        several => {
            let shares = several
                .iter()
                .map(|part| (part.name.clone(), Value::Float(part.share)));
            page.put("mix", Value::Table(shares.collect()));
        }
    }
}

/// A preset by its name, or the form of the user's own, and what differs from it.
fn one_policy(page: &mut Page, name: &str, policy: &Backoff) {
    let known = match presets::find(name) {
        Some(preset) => {
            page.put("preset", name);
            (preset.policy)()
        }
        None => {
            let (word, kind) = kind(policy);
            page.put("kind", word);
            raw(kind)
        }
    };
    growth(page, policy, &known);
    if policy.counted != known.counted {
        page.put("counted", counted(policy.counted));
    }
    match policy.limits.attempts {
        most if most == known.limits.attempts => {}
        Some(most) => page.put("max-attempts", i64::from(most)),
        None => page.put("max-attempts", "unlimited"),
    }
    if let Some(most) = policy.limits.elapsed {
        page.time("max-elapsed", most);
    }
    page.unlike("slow", policy.limits.slow, known.limits.slow);
    if policy.reset != known.reset {
        page.put("reset", reset(policy.reset));
    }
    page.unlike("connect-timeout", policy.connect, known.connect);
    if policy.rules != known.rules {
        page.list("rules", policy.rules.iter().map(ToString::to_string));
    }
    page.time_unlike("retry", policy.hints.retry, known.hints.retry);
    if policy.hints.retry_after != known.hints.retry_after {
        page.put("retry-after", policy.hints.retry_after == RetryAfter::Added);
    }
    let within = |policy: &Backoff| policy.fallback.map(|fallback| fallback.within);
    page.time_unlike("fallback-within", within(policy), within(&known));
    if policy.requests != known.requests {
        page.put("requests", i64::from(policy.requests));
    }
}

/// The form that a policy of the user's own has, with its word.
fn kind(policy: &Backoff) -> (&'static str, Kind) {
    match (&policy.first, policy.then.grows) {
        (First::Poll(_), _) => ("poll", Kind::Poll),
        (_, Grows::Log) => ("logarithmic", Kind::Logarithmic),
        _ => ("exponential", Kind::Exponential),
    }
}

fn counted(counted: Counted) -> &'static str {
    match counted {
        Counted::FromEnd => "from-end",
        Counted::FromStart => "from-start",
    }
}

fn reset(reset: Reset) -> String {
    match reset {
        Reset::OnOpen => "open".into(),
        Reset::OnAck => "ack".into(),
        Reset::AfterUptime(uptime) => humantime::format_duration(uptime).to_string(),
        Reset::AfterQuiet(quiet) => format!("quiet {}", humantime::format_duration(quiet)),
    }
}

fn growth(page: &mut Page, policy: &Backoff, known: &Backoff) {
    match &policy.first {
        first if *first == known.first => {}
        First::Steps(steps) => page.list("first", steps.iter().map(ToString::to_string)),
        First::Poll(poll) => {
            page.put("every", poll.every.to_string());
            page.time("stale", poll.stale);
            page.time("beat", poll.beat);
        }
    }
    let (then, known) = (&policy.then, &known.then);
    if (then.base, then.grows, then.cap) != (known.base, known.grows, known.cap) {
        match (then.grows, known.grows) {
            (Grows::Times(1.0), Grows::Times(1.0)) => page.time("delay", then.base.least),
            _ => {
                page.put("base", then.base.to_string());
                if let Grows::Times(factor) = then.grows {
                    page.put("factor", factor);
                }
                page.time_unlike("cap", then.cap, None);
            }
        }
    }
    if then.jitter != known.jitter {
        page.put("jitter", then.jitter.to_string());
    }
    page.time_unlike("plus", Some(then.plus), Some(known.plus));
    page.time_unlike("ceiling", then.ceiling, known.ceiling);
}
