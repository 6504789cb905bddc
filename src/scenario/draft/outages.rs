//! `[outage]` once or `[[outage]]` several times, as it was written.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{Slot, lay};
use crate::history::{CutKind, TriggerKind};
use crate::scenario::Then;
use crate::scenario::words::{Count, Share, Time};

/// The outages in order: `[outage]` once, or `[[outage]]` as often as there are.
#[derive(Debug, Clone)]
pub(crate) struct OutagesDraft {
    pub(crate) all: Vec<OutageDraft>,
}

impl Default for OutagesDraft {
    fn default() -> Self {
        Self {
            all: vec![OutageDraft::default()],
        }
    }
}

impl<'de> Deserialize<'de> for OutagesDraft {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMore;
        impl<'de> Visitor<'de> for OneOrMore {
            type Value = OutagesDraft;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the table [outage], or several [[outage]]")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<OutagesDraft, A::Error> {
                let one = OutageDraft::deserialize(MapAccessDeserializer::new(map))?;
                Ok(OutagesDraft { all: vec![one] })
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<OutagesDraft, A::Error> {
                let all = Vec::deserialize(SeqAccessDeserializer::new(seq))?;
                Ok(match all.is_empty() {
                    true => OutagesDraft::default(),
                    false => OutagesDraft { all },
                })
            }
        }
        deserializer.deserialize_any(OneOrMore)
    }
}

impl OutagesDraft {
    /// What a simulation reads of it: the first one's times.
    pub(super) fn simulated(self) -> Self {
        let first = self.all.into_iter().next().unwrap_or_default();
        Self {
            all: vec![OutageDraft {
                outages: first.outages,
                down: first.down,
                steady: first.steady,
                ..OutageDraft::default()
            }],
        }
    }

    /// Lays a flag over a key of every outage.
    pub(crate) fn lay<T: Clone>(
        &mut self,
        flag: &'static str,
        value: Option<T>,
        key: impl Fn(&mut OutageDraft) -> &mut Slot<T>,
    ) {
        for outage in &mut self.all {
            lay(key(outage), flag, value.clone());
        }
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(crate) struct OutageDraft {
    pub(crate) trigger: Slot<TriggerKind>,
    pub(crate) command: Slot<String>,
    pub(crate) command_limit: Slot<Time>,
    pub(crate) wait_limit: Slot<Time>,
    pub(crate) quiet_period: Slot<Time>,
    pub(crate) outages: Slot<Count>,
    pub(crate) down: Slot<Time>,
    pub(crate) falls: Slot<Count>,
    pub(crate) up: Slot<Time>,
    pub(crate) pause: Slot<Time>,
    pub(crate) cut: Slot<CutKind>,
    pub(crate) share: Slot<Share>,
    pub(crate) latency: Slot<Time>,
    pub(crate) bandwidth: Slot<Count>,
    pub(crate) then: Slot<Then>,
    pub(crate) refresh: Slot<Share>,
    pub(crate) persist: Slot<bool>,
    pub(crate) steady: Slot<Time>,
}
