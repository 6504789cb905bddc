//! Whether everybody came back, and how long until they were caught up (rules 6 and 21 of judgement).

use std::time::Duration;

use super::measure::{self, reconnect};
use super::relapse::relapsed;
use super::{Case, facts};
use crate::backoff::forecast;
use crate::check::timeline::{self, OutageSpan, WaveSpan};
use crate::check::words::{names, text};
use crate::check::{Check, Finding, Outcome, Return};
use crate::history::{AttemptOutcome, ClientId, Elapsed, End, Quit};

/// How sure the derived limit is that an honest herd is back.
const QUANTILE: f64 = 0.9999;
/// What it adds for everything that isn't the policy.
const SLACK: Duration = Duration::from_secs(10);

/// What became of the absences of one outage.
#[derive(Debug, Default)]
struct Fates {
    back: u32,
    slowest: Duration,
    late: Vec<ClientId>,
    gave_up: Vec<ClientId>,
    fatal: Vec<ClientId>,
    absent: Vec<ClientId>,
    /// Late, and it may have been herd's own doing.
    delayed: Vec<ClientId>,
    /// Not back, and herd's own side could not make a dial of it.
    undialled: Vec<ClientId>,
    /// Away when the record ends, within the limit.
    pending: Vec<ClientId>,
}

/// Judges `all-reconnected` of one outage.
pub(super) fn all_reconnected(case: &Case<'_>, outage: &OutageSpan) -> Finding {
    let mut fates = Fates::default();
    let mut most = None;
    for wave in &outage.waves {
        let limit = limit(case, outage, wave);
        most = most.max(limit);
        for row in case.timeline.of_wave(outage.outage, wave.wave) {
            fates.add(case, row, limit);
        }
    }
    let (outcome, why) = fates.ruling(most);
    let (outcome, why) = match case.partial(outage) {
        Some(partial) if outcome == Outcome::Pass => (Outcome::Unknown, partial),
        _ => (outcome, why),
    };
    let dropped = facts::count_clients(case.timeline.of_outage(outage.outage).iter());
    let mut measured = format!("{} back of {}", fates.back, fates.total());
    if fates.total() != dropped {
        measured.push_str(&format!(" drops of {dropped} clients"));
    }
    if fates.back > 0 {
        measured.push_str(&format!(", the last after {}", text(fates.slowest)));
    }
    Finding {
        check: Check::AllReconnected,
        outage: Some(outage.outage),
        outcome,
        measured,
        limit: match most {
            Some(limit) => format!("all within {}", text(limit)),
            None => "all".into(),
        },
        why,
    }
}

impl Fates {
    fn add(&mut self, case: &Case<'_>, row: &Return, limit: Option<Duration>) {
        let over = |at: Elapsed| limit.is_some_and(|limit| at.since(row.dropped) > limit);
        if let Some(attempt) = reconnect(case.history, row) {
            self.back += 1;
            self.slowest = self.slowest.max(attempt.ended.since(row.dropped));
            if over(attempt.ended) {
                // Rule 7: herd's own lateness is no fault of the server's.
                let list = match case.late_herd() && !over(attempt.due) {
                    true => &mut self.delayed,
                    false => &mut self.late,
                };
                list.push(row.client);
            }
            return;
        }
        let local = timeline::client(case.history, row.client).is_some_and(|(_, client)| {
            let dials = timeline::dials(client, row);
            dials
                .iter()
                .any(|a| matches!(a.outcome, AttemptOutcome::Local(_)))
        });
        let complete = case.history.end() == Some(&End::Complete);
        let list = match case.quit(row) {
            _ if local => &mut self.undialled,
            Some(Quit::GaveUp) => &mut self.gave_up,
            Some(Quit::Fatal(_)) => &mut self.fatal,
            None if complete || over(case.history.horizon) => &mut self.absent,
            None => &mut self.pending,
        };
        list.push(row.client);
    }

    fn total(&self) -> u32 {
        let away = [
            &self.gave_up,
            &self.fatal,
            &self.absent,
            &self.undialled,
            &self.pending,
        ];
        self.back + away.iter().map(|l| l.len() as u32).sum::<u32>()
    }

    fn ruling(&self, limit: Option<Duration>) -> (Outcome, String) {
        let said = |clients: &[ClientId], what: &str| {
            (!clients.is_empty()).then(|| format!("{} {what}: {}", clients.len(), names(clients)))
        };
        let within = limit.map_or(String::new(), |l| format!(" within {}", text(l)));
        let wrong = [
            said(&self.absent, "never came back"),
            said(&self.gave_up, "gave up as the policy says"),
            said(&self.fatal, "met an end that the policy never retries"),
            said(&self.late, &format!("came back, but not{within}")),
        ];
        let unsure = [
            said(&self.delayed, "were delayed by herd itself"),
            said(
                &self.undialled,
                "could not be dialled for want of descriptors or ports",
            ),
            said(&self.pending, "were still away when the record ends"),
        ];
        let join = |list: &[Option<String>]| {
            let said: Vec<_> = list.iter().flatten().map(String::as_str).collect();
            said.join("; ")
        };
        let (wrong, unsure) = (join(&wrong), join(&unsure));
        match (wrong.is_empty(), unsure.is_empty()) {
            (false, _) => (Outcome::Fail, wrong),
            (true, false) => (Outcome::Unknown, unsure),
            (true, true) => (Outcome::Pass, String::new()),
        }
    }
}

/// Rule 6: what the user said, or else when the last of an honest herd is back, and then some. None where the server was
/// never seen to be back, or the policy can't be read.
fn limit(case: &Case<'_>, outage: &OutageSpan, wave: &WaveSpan) -> Option<Duration> {
    if let Some(limit) = case.history.header.terms.reconnect_limit {
        return Some(limit);
    }
    let rows = case.timeline.of_wave(outage.outage, wave.wave);
    let back = rows.iter().filter_map(|r| reconnect(case.history, r));
    let mut up = wave.ready.or_else(|| back.map(|a| a.dialled).min())?;
    if relapsed(case, outage) {
        // Who was still away when the server fell over again waits for that too; `relapse` has the blame.
        let refused = measure::dials(case.history, case.timeline.of_outage(outage.outage));
        let refused = refused
            .filter(|a| matches!(a.outcome, AttemptOutcome::Refused | AttemptOutcome::Timeout));
        up = up.max(refused.map(|a| a.dialled).max().unwrap_or(up));
    }
    let policy = case.policy.as_ref()?;
    let down = up.since(wave.first_drop);
    forecast::last_return(policy, wave.dropped, down, QUANTILE).map(|last| last + SLACK)
}

/// Judges `recovery` of one outage: reported, and a limit only where the user set one.
pub(super) fn recovery(case: &Case<'_>, outage: &OutageSpan) -> Finding {
    let rows = case.timeline.of_outage(outage.outage);
    let limit = case.history.header.terms.max_recovery;
    let caught = rows.iter().filter_map(|r| case.recovery(r).map(|d| (r, d)));
    let caught: Vec<_> = caught.collect();
    let never: Vec<ClientId> = rows
        .iter()
        .filter(|r| r.session.is_some() && case.recovery(r).is_none())
        .map(|r| r.client)
        .collect();
    let p99 = |of: &dyn Fn(&Return, Duration) -> Duration| {
        // Who is never caught up takes for ever, as far as a limit is concerned.
        let mut all: Vec<Duration> = caught.iter().map(|(r, d)| of(r, *d)).collect();
        all.extend(never.iter().map(|_| Duration::MAX));
        all.sort_unstable();
        let rank = ((all.len() as f64 * 0.99).ceil() as usize).max(1) - 1;
        all.get(rank).copied()
    };
    let reported = facts::percentiles(caught.iter().map(|(_, d)| *d).collect());
    let as_measured = |_: &Return, d: Duration| d;
    let as_due = |r: &Return, d: Duration| {
        let lag = reconnect(case.history, r).map_or(Duration::ZERO, |a| a.dialled.since(a.due));
        d.saturating_sub(lag)
    };
    let over = |p: Option<Duration>| limit.is_some_and(|limit| p.is_some_and(|p| p > limit));
    let named = match never.len() {
        0 => String::new(),
        n => format!("{n} came back and were never caught up: {}", names(&never)),
    };
    let (outcome, why) = match () {
        () if caught.is_empty()
            && (limit.is_none() || case.history.truncated() || never.is_empty()) =>
        {
            (Outcome::Unknown, "no client was seen caught up".into())
        }
        () if over(p99(&as_measured)) && case.history.truncated() && !never.is_empty() => {
            (Outcome::Unknown, named)
        }
        () if over(p99(&as_measured)) && case.late_herd() && !over(p99(&as_due)) => (
            Outcome::Unknown,
            "over the limit only by herd's own lag; see generator".into(),
        ),
        () if over(p99(&as_measured)) => (Outcome::Fail, named),
        () => match case.partial(outage) {
            Some(partial) => (Outcome::Unknown, partial),
            None => (Outcome::Pass, named),
        },
    };
    Finding {
        check: Check::Recovery,
        outage: Some(outage.outage),
        outcome,
        measured: reported.map_or("nobody caught up".into(), |p| {
            format!("p99 {}", text(Duration::from_micros((p.p99 * 1e3) as u64)))
        }),
        limit: limit.map_or("reported".into(), |l| format!("p99 within {}", text(l))),
        why,
    }
}
