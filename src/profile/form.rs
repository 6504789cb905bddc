//! How single values of a profile are written: a list that may be one value, a duration with its unit. It knows no key.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::{SeqAccessDeserializer, StrDeserializer};
use serde::de::{Deserializer, SeqAccess, Visitor};

/// Whether a value needn't be written.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A list, which may be written as its only text.
pub(super) fn one_or_many<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct List<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
        type Value = Vec<T>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text or a list of texts")
        }
        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Vec<T>, E> {
            Ok(vec![T::deserialize(StrDeserializer::new(text))?])
        }
        fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Vec<T>, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(list))
        }
    }
    deserializer.deserialize_any(List(PhantomData))
}

/// A duration as text with its unit.
pub(super) mod time {
    use std::time::Duration;

    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(
        time: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => serializer.serialize_str(&humantime::format_duration(*time).to_string()),
            None => serializer.serialize_none(),
        }
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        let text = String::deserialize(deserializer)?;
        match humantime::parse_duration(&text) {
            Ok(time) => Ok(Some(time)),
            Err(_) => Err(D::Error::custom(
                "not a duration; write it with its unit, such as \"500ms\" or \"10s\"",
            )),
        }
    }
}
