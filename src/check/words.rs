//! Durations, shares and lists of clients as people read them in findings. It knows nothing of what they mean.

use std::time::Duration;

use super::opening;
use crate::history::{ClientId, History, Mark, TriggerKind};

/// How many clients a finding names.
const NAMED: usize = 5;

/// A duration, cut rather than rounded, so that 4.996 s never reads as the 5 s that it missed.
pub(super) fn text(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        format!("{} ms", duration.as_millis())
    } else {
        let hundredths = duration.as_millis() / 10;
        format!("{}.{:02} s", hundredths / 100, hundredths % 100)
    }
}

/// A share of 1.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if (percent - percent.round()).abs() < 0.05 {
        format!("{} %", percent.round())
    } else {
        format!("{percent:.1} %")
    }
}

/// Who was primed, where not everybody was. All may have received something and yet have no event in common.
pub(super) fn unprimed(history: &History, primed: u32) -> String {
    let clients = history.header.clients;
    if opening::never(history) {
        "no client finished the opening that the profile describes".into()
    } else if primed == clients {
        format!(
            "each of {clients} clients received a priming event, but not all of them one and the same"
        )
    } else {
        format!("only {primed} of {clients} clients received a priming event")
    }
}

/// "client 3", "clients 3, 7, 9, 12, 15 and 4 more".
pub(super) fn names(clients: &[ClientId]) -> String {
    let shown: Vec<_> = clients
        .iter()
        .take(NAMED)
        .map(|c| c.0.to_string())
        .collect();
    let noun = if clients.len() == 1 {
        "client"
    } else {
        "clients"
    };
    match clients.len().saturating_sub(NAMED) {
        0 => format!("{noun} {}", shown.join(", ")),
        more => format!("{noun} {} and {more} more", shown.join(", ")),
    }
}

/// Why a run ended in whose last outage nothing was seen of a restart.
pub(crate) fn no_restart(history: &History) -> &'static str {
    let pulled = history.marks.iter().filter_map(|(_, mark)| match mark {
        Mark::Trigger { outage } => Some(*outage),
        _ => None,
    });
    let last = pulled.max().unwrap_or(1);
    match history.header.terms.outage(last).trigger {
        TriggerKind::Command => {
            "the restart command did nothing that was seen: no client lost its connection, and the target never stopped answering; does it restart the server that the target names?"
        }
        TriggerKind::Rolling => {
            "the rollout ended early: the restart command did nothing that was seen of one target, which never stopped answering; does it restart the one that {target} names?"
        }
        _ => "nobody restarted the server within the limit",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missed_limit_never_reads_as_reached() {
        assert_eq!(text(Duration::from_micros(4_999_999)), "4.99 s");
        assert_eq!(text(Duration::from_millis(1_520)), "1.52 s");
        assert_eq!(text(Duration::from_micros(999_999)), "999 ms");
    }

    #[test]
    fn only_the_first_few_clients_are_named() {
        let ids: Vec<_> = (1..=7).map(ClientId).collect();
        assert_eq!(names(&ids[..1]), "client 1");
        assert_eq!(names(&ids), "clients 1, 2, 3, 4, 5 and 2 more");
    }
}
