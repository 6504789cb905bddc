//! Whether the clients came back spread out: the timing checks, one answer for each outage.
//!
//! It judges waves; who was away when is `check/timeline.rs`'s knowledge, and what luck could have done
//! `check/chance.rs`'s. Of delivery it takes only when a session was caught up.

mod facts;
mod measure;
mod relapse;
mod returned;
mod seen;
mod several;

use std::cmp::Reverse;
use std::time::Duration;

use super::chance::{self, Herd, Ruling};
use super::delivery;
use super::timeline::{self, OutageSpan, Timeline};
use super::words::{no_restart, percent, text, unprimed};
use super::{Check, Finding, OutageFacts, Outcome, Return};
use crate::backoff::Mix;
use crate::history::{self, End, History, PolicySource, Quit, TriggerKind};
pub(super) use facts::percentiles;
pub(super) use measure::busiest;
use measure::{Measured, Part};

/// From how many clients of a wave on its peak is judged.
const LEAST_PEAK: u32 = 20;
/// The share of the clients that an outage must have hit (rule 5 of judgement).
const LEAST_DROPPED: f64 = 0.95;

/// The timing checks' answers.
#[derive(Debug, Clone)]
pub struct Assessment {
    /// Every outage of the timeline in numbers.
    pub outages: Vec<OutageFacts>,
    /// `reconnect-spread`, `peak`, `all-reconnected` and `recovery` of each outage, and `relapse` of the run.
    pub findings: Vec<Finding>,
    /// Why an outage hit too few clients to prove anything, if one did (rule 5 of judgement).
    pub partial: Option<String>,
}

/// Judges how the clients came back; `generator` is the answer on herd itself (rule 7 of judgement).
#[must_use]
pub fn assess(
    history: &History,
    timeline: &Timeline,
    delivery: &delivery::Assessment,
    generator: Outcome,
) -> Assessment {
    let case = Case {
        history,
        timeline,
        delivery,
        generator,
        policy: serde_json::from_str(&history.header.terms.policy)
            .ok()
            .filter(Mix::is_sound),
    };
    let mut assessment = Assessment {
        outages: Vec::new(),
        findings: vec![relapse::relapse(&case)],
        partial: timeline.outages.iter().find_map(|o| case.partial(o)),
    };
    for (place, outage) in timeline.outages.iter().enumerate() {
        let window = history.header.terms.peak_window;
        let measure = |wave| Measured::new(history, timeline, outage, wave, window);
        let waves: Vec<Measured> = outage.waves.iter().map(measure).collect();
        let facts = facts::facts(&case, place, outage, &waves);
        assessment.outages.push(facts);
        assessment.findings.extend(case.outage(outage, &waves));
    }
    let seen = |k: &u32| timeline.outages.iter().any(|o| o.outage == *k);
    let unseen = (1..=history.header.terms.outages.len() as u32).filter(|k| !seen(k));
    assessment
        .findings
        .extend(unseen.flat_map(|k| case.unseen_outage(k)));
    for finding in &mut assessment.findings {
        case.assume(finding);
    }
    assessment
}

/// What every timing check looks at.
struct Case<'a> {
    history: &'a History,
    timeline: &'a Timeline,
    delivery: &'a delivery::Assessment,
    generator: Outcome,
    policy: Option<Mix>,
}

impl Case<'_> {
    fn outage(&self, outage: &OutageSpan, waves: &[Measured]) -> Vec<Finding> {
        if outage.waves.is_empty() {
            let mut findings = self.unseen_outage(outage.outage);
            for finding in &mut findings {
                if outage.never_ready && finding.check == Check::AllReconnected {
                    finding.outcome = Outcome::Fail;
                    finding.why = returned::NEVER_READY.into();
                }
            }
            return findings;
        }
        let clients = self.history.clients.len();
        let judged: Vec<&Measured> = outage
            .waves
            .iter()
            .zip(waves)
            .filter_map(|(span, wave)| span.judged(clients).then_some(wave))
            .collect();
        let mut findings = Vec::new();
        // Stragglers before the first trigger are no outage whose shape could be judged.
        if outage.outage > 0 || !judged.is_empty() {
            let (history, timeline) = (self.history, self.timeline);
            let last = several::last(history, timeline, outage);
            let whole = several::whole(history, timeline, outage, waves);
            let spread: Vec<&Measured> = last.iter().chain(judged.iter().copied()).collect();
            let peak: Vec<&Measured> = whole.iter().chain(judged.iter().copied()).collect();
            findings.push(self.spread(outage, &spread));
            findings.push(self.peak(outage, &peak));
        }
        findings.push(returned::all_reconnected(self, outage));
        findings.push(returned::recovery(self, outage));
        findings
    }

    fn spread(&self, outage: &OutageSpan, waves: &[&Measured]) -> Finding {
        let limit = self.history.header.terms.min_spread;
        let ruled = waves.iter().map(|w| (*w, self.wave_spread(w, limit)));
        let worst = ruled.max_by_key(|(w, ruling)| (ruling.outcome, Reverse(w.narrowest())));
        let measured = |w: &Measured| match w.back {
            0 if w.anew.instead().is_some() => "nobody by policy".into(),
            0 => "nobody back".into(),
            _ => text(w.narrowest()),
        };
        let mut finding = self.timing(Check::ReconnectSpread, outage, worst, measured);
        finding.limit = format!("at least {}", text(limit));
        finding
    }

    fn wave_spread(&self, wave: &Measured, limit: Duration) -> Ruling {
        let unknown = |why: String| Ruling {
            outcome: Outcome::Unknown,
            why,
        };
        if wave.back == 0 {
            let nobody = || "nobody came back, so there is no spread".into();
            return unknown(wave.anew.instead().unwrap_or_else(nobody));
        }
        let measured = wave.narrowest();
        if measured >= limit {
            return pass();
        }
        let whole = self.history.end() == Some(&End::Complete);
        if wave.pending && !whole || shards_missing(self.history) {
            let why = "in what is missing from the record others may have come back later";
            return unknown(why.into());
        }
        let herd = self.herd(wave);
        let mut ruling = chance::span(&herd, limit, measured);
        if ruling.outcome == Outcome::Fail && self.late_herd() {
            let due = wave.span.due;
            if due >= limit || chance::span(&herd, limit, due).outcome != Outcome::Fail {
                ruling = unknown(HERD_WAS_LATE.into());
            }
        }
        ruling.why = format!(
            "{} reconnects dialled within {} and opened within {}; {}",
            wave.back,
            text(wave.span.dialled),
            text(wave.span.reached),
            ruling.why
        );
        ruling
    }

    fn peak(&self, outage: &OutageSpan, waves: &[&Measured]) -> Finding {
        let terms = &self.history.header.terms;
        let ruled = waves.iter().map(|w| (*w, self.wave_peak(w)));
        let worst = ruled.max_by(|(a, x), (b, y)| {
            // A part says more than the whole.
            (x.outcome, a.part != Part::Whole, a.share())
                .partial_cmp(&(y.outcome, b.part != Part::Whole, b.share()))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        let window = text(terms.peak_window);
        let measured = |w: &Measured| format!("{} in {window}", percent(w.share()));
        let mut finding = self.timing(Check::Peak, outage, worst, measured);
        finding.limit = format!("at most {} in {window}", percent(terms.max_peak));
        finding
    }

    fn wave_peak(&self, wave: &Measured) -> Ruling {
        let terms = &self.history.header.terms;
        let (window, limit) = (terms.peak_window, terms.max_peak);
        if wave.peak.dialled == 0 {
            let none = || "no attempt got past the TCP connect".into();
            return Ruling {
                outcome: Outcome::Unknown,
                why: wave.anew.instead().unwrap_or_else(none),
            };
        }
        if wave.clients < LEAST_PEAK {
            return Ruling {
                outcome: Outcome::Pass,
                why: format!("not judged: under {LEAST_PEAK} clients"),
            };
        }
        let share = wave.share();
        if share <= limit {
            return pass();
        }
        let at_once = f64::from(wave.at_once);
        if share / at_once <= limit {
            return Ruling {
                outcome: Outcome::Unknown,
                why: format!(
                    "{} falls lie within {}, so one client dials that often in it; more time between falls or a higher --max-peak would decide",
                    wave.at_once,
                    text(window)
                ),
            };
        }
        let herd = self.herd(wave);
        let mut ruling = chance::peak(&herd, window, limit, share / at_once);
        if ruling.outcome == Outcome::Fail && self.late_herd() {
            let due = wave.peak.due as f64 / f64::from(wave.clients) / at_once;
            if due <= limit || chance::peak(&herd, window, limit, due).outcome != Outcome::Fail {
                ruling = Ruling {
                    outcome: Outcome::Unknown,
                    why: HERD_WAS_LATE.into(),
                };
            }
        }
        ruling.why = format!(
            "{} attempts of {} clients got past the TCP connect within {}; {}",
            wave.peak.dialled.max(wave.peak.reached),
            wave.clients,
            text(window),
            ruling.why
        );
        ruling
    }

    /// The worst wave's ruling as the outage's answer, unless too few clients dropped for any (rule 5 of judgement).
    fn timing(
        &self,
        check: Check,
        outage: &OutageSpan,
        worst: Option<(&Measured, Ruling)>,
        measured: impl Fn(&Measured) -> String,
    ) -> Finding {
        let several = outage.waves.len() > 1;
        let mut finding = Finding {
            check,
            outage: Some(outage.outage),
            outcome: Outcome::Unknown,
            measured: worst.as_ref().map_or("nothing".into(), |(w, _)| {
                let of = format!(" ({})", w.part);
                measured(w) + if several { &of } else { "" }
            }),
            limit: String::new(),
            why: String::new(),
        };
        match (worst, self.partial(outage)) {
            (_, Some(partial)) => finding.why = partial,
            (None, None) => finding.why = "no wave was big enough to be judged".into(),
            (Some((wave, ruling)), None) => {
                finding.outcome = ruling.outcome;
                finding.why = if several && !ruling.why.is_empty() {
                    format!("{}: {}", wave.part, ruling.why)
                } else {
                    ruling.why
                };
            }
        }
        finding
    }

    fn herd(&self, wave: &Measured) -> Herd<'_> {
        Herd {
            name: &self.history.header.terms.policy_name,
            policy: self.policy.clone(),
            clients: wave.clients,
            back: wave.back,
            down: wave.down,
        }
    }

    /// Rule 5: why an outage that hit too few of the clients that it was for proves nothing.
    fn partial(&self, outage: &OutageSpan) -> Option<String> {
        let terms = self.history.header.terms.outage(outage.outage);
        let asked = |id| history::chosen(id, self.history.header.clients, terms.share);
        let all = self.history.clients.iter().filter(|c| asked(c.id)).count();
        let rows = self.timeline.of_outage(outage.outage).iter();
        let dropped = facts::count_clients(rows.filter(|row| asked(row.client)));
        let few = f64::from(dropped) < LEAST_DROPPED * all as f64;
        (few && outage.outage > 0).then(|| match terms.share < 1.0 {
            false => format!(
                "only {dropped} of {all} dropped in outage {}, so it was not one of all the clients",
                outage.outage
            ),
            true => format!(
                "only {dropped} of the {all} dropped that the cut of outage {} was for",
                outage.outage
            ),
        })
    }

    fn unseen_outage(&self, outage: u32) -> Vec<Finding> {
        let checks = [
            Check::ReconnectSpread,
            Check::Peak,
            Check::AllReconnected,
            Check::Recovery,
        ];
        let finding = |check| Finding {
            check,
            outage: Some(outage),
            outcome: Outcome::Unknown,
            measured: "nothing".into(),
            limit: String::new(),
            why: self.unseen(outage),
        };
        checks.map(finding).into()
    }

    /// Why an outage was not seen (rule 4 of the house: nothing observed is Unknown).
    fn unseen(&self, outage: u32) -> String {
        let clients = self.history.clients.len();
        match self.history.end() {
            Some(End::NotConnected { connected }) => format!(
                "only {connected} of {clients} clients could connect, so nothing was restarted"
            ),
            Some(End::NotPrimed { primed }) => {
                format!("{}, so nothing was restarted", unprimed(self.history, *primed))
            }
            Some(End::NoRestart) => no_restart(self.history),
            Some(End::Interrupted { .. }) => "interrupted before the outage".into(),
            Some(End::Broken { why }) => format!("the run broke off before the outage: {why}"),
            None => "the record ends before the outage".into(),
            Some(End::Complete) if self.history.clients.iter().all(|c| c.quit.is_some()) => {
                "no outage seen: every client had stopped for good before it".into()
            }
            Some(End::Complete) => match self.history.header.terms.outage(outage).trigger {
                TriggerKind::Child => {
                    "no outage seen: herd stopped the server and no client lost its connection; does server-cmd leave another process behind that serves them?".into()
                }
                TriggerKind::Command => {
                    "no outage seen: the command ran and no client lost its connection; does it restart the server that the target names?".into()
                }
                TriggerKind::Wait => "no outage seen while herd waited for one".into(),
                TriggerKind::Cut => {
                    "no outage seen: herd cut the network and no client lost its connection".into()
                }
                TriggerKind::Rolling => {
                    "no outage seen: the targets were restarted and no client lost its connection".into()
                }
            },
        }
    }

    /// Whether herd's own lag makes its timing doubtful (rule 7 of judgement).
    fn late_herd(&self) -> bool {
        self.generator != Outcome::Pass
    }

    /// Why the client of an absence stopped for good, where it did.
    fn quit(&self, row: &Return) -> Option<&Quit> {
        let (_, client) = timeline::client(self.history, row.client)?;
        client.quit.as_ref().map(|(_, why)| why)
    }

    /// From a client's own drop until it was caught up (rule 21 of judgement).
    fn recovery(&self, row: &Return) -> Option<Duration> {
        let (index, _) = timeline::client(self.history, row.client)?;
        let caught_up = self.delivery.caught_up.get(index)?.get(row.session?)?;
        caught_up.map(|at| at.since(row.dropped))
    }

    /// Rule 8: says what was assumed of the clients.
    fn assume(&self, finding: &mut Finding) {
        let terms = &self.history.header.terms;
        if terms.policy_source == PolicySource::Named || finding.check == Check::Relapse {
            return;
        }
        if !finding.why.is_empty() {
            finding.why.push_str(". ");
        }
        finding.why.push_str(&format!(
            "assumes {}; the policy of your real clients is not known, use --backoff",
            terms.policy_name
        ));
    }
}

const HERD_WAS_LATE: &str = "but herd itself was late (see generator), and by the instants at which it should have \
                             dialled this would not fail";

fn pass() -> Ruling {
    Ruling {
        outcome: Outcome::Pass,
        why: String::new(),
    }
}

fn shards_missing(history: &History) -> bool {
    history.shards.len() < history.header.shard.of as usize
}
