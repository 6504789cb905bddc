//! Where a profile's text comes from: herd's own, the user's, or the user's laid over herd's own. What it says is not
//! looked at.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::spec::{Rule, Step};
use super::{ProfileName, Refusal, Spec};

impl Spec {
    /// A built-in one.
    #[must_use]
    pub fn builtin(name: ProfileName) -> Self {
        // A test reads all of them.
        Self::parse(name.source()).unwrap_or_default()
    }

    /// Reads the text of a profile: the keys of a scenario's `[profile]`, without that line.
    ///
    /// # Errors
    /// What TOML says against it, with the key where it knows one.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        toml::from_str(text).map_err(|e: toml::de::Error| Refusal {
            key: String::new(),
            why: e.message().trim_end().to_owned(),
        })
    }
}

impl Spec {
    /// The same with every variable and file of its templates left out, so that it can be tried and shown without a
    /// secret.
    #[must_use]
    pub fn without_secrets(&self) -> Self {
        let mut spec = self.clone();
        let pairs = spec.query.values_mut().chain(spec.headers.values_mut());
        let said = spec
            .open
            .iter_mut()
            .flat_map(|step| [&mut step.send, &mut step.otherwise]);
        let replies = spec.frame.iter_mut().map(|rule| &mut rule.reply);
        let optional = said.chain(replies).chain([&mut spec.beat.send]).flatten();
        for text in pairs.chain(optional) {
            *text = hidden(text);
        }
        spec
    }
}

/// A template without what it takes from variables and files.
fn hidden(text: &str) -> String {
    let (mut kept, mut rest) = (String::new(), text);
    while let Some(open) = ["{env:", "{file:"]
        .iter()
        .filter_map(|hole| rest.find(hole))
        .min()
    {
        let Some(len) = rest[open..].find('}') else {
            break;
        };
        kept.push_str(&rest[..open]);
        kept.push_str("***");
        rest = &rest[open + len + 1..];
    }
    kept + rest
}

/// `base` is replaced by what it names, so that it is no field.
impl<'de> Deserialize<'de> for Spec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut given = toml::Table::deserialize(deserializer)?;
        let table = match given.remove("base") {
            None => given,
            Some(base) => {
                let base = ProfileName::deserialize(base)
                    .map_err(|e| D::Error::custom(format!("base: {}", e.message())))?;
                let mut table: toml::Table =
                    toml::from_str(base.source()).map_err(D::Error::custom)?;
                lay(&mut table, given);
                table
            }
        };
        let read = Self::deserialize(table.clone());
        read.map_err(|e| {
            D::Error::custom(format!("{}{}", within(&table), e.to_string().trim_end()))
        })
    }
}

/// The first rule or step that can't be read, as `frame[2]: `; TOML's own errors name the word, and not which of many
/// rules holds it. Nothing where the mistake is elsewhere.
fn within(table: &toml::Table) -> String {
    fn first<T: serde::de::DeserializeOwned>(table: &toml::Table, key: &str) -> Option<String> {
        let list = table.get(key)?.as_array()?;
        let wrong = |item: &toml::Value| T::deserialize(item.clone()).is_err();
        Some(format!("{key}[{}]: ", list.iter().position(wrong)? + 1))
    }
    let rule = first::<Rule>(table, "frame");
    rule.or_else(|| first::<Step>(table, "open"))
        .unwrap_or_default()
}

impl Serialize for Spec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

/// Lays a table over another.
fn lay(under: &mut toml::Table, over: toml::Table) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(toml::Value::Table(under)), toml::Value::Table(over)) => lay(under, over),
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
}
