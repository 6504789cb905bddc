//! Texts that no record and no message may show, and the words that carry them in a header.
//!
//! A server may repeat a token in its refusal, a close reason or a frame. What it said is therefore searched for every
//! secret that herd knows before it is written down. It knows nothing of where secrets come from.

use std::borrow::Cow;
use std::fmt;

/// What a secret becomes.
const HIDDEN: &str = "***";
/// A shorter secret would hide half of every text, and protects nothing.
const SHORTEST: usize = 6;
/// How much of a secret's beginning is enough to hide it where a text was cut.
const SHORTEST_PART: usize = 4;
/// How a cut text ends.
const CUT: &str = "...";

/// Header names whose values say what is spoken and by whom, and are nobody's secret.
const PUBLIC: [&str; 8] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "content-type",
    "host",
    "origin",
    "user-agent",
];

/// A set of secret texts. It can't be shown.
#[derive(Clone, Default)]
pub struct Secrets {
    /// The longest first, so that a secret within another doesn't leave the rest of it.
    texts: Vec<Box<str>>,
}

impl Secrets {
    /// Knows none.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds a text, in each form in which a server may repeat it. One of fewer than 6 bytes is no secret.
    pub fn add(&mut self, text: &str) {
        let text = text.trim();
        self.add_form(text);
        self.add_form(text.trim_end_matches('='));
        self.add_form(&percent_encoding::percent_decode_str(text).decode_utf8_lossy());
        let json = serde_json::Value::from(text).to_string();
        self.add_form(&json[1..json.len() - 1]);
    }

    /// Adds a header's value: the whole, what stands behind the scheme of a credential, and each cookie's value.
    pub fn add_header(&mut self, name: &str, value: &str) {
        let name = name.trim().to_ascii_lowercase();
        if PUBLIC.contains(&name.as_str()) {
            return;
        }
        self.add(value);
        if let Some((_, credential)) = value.trim().split_once(' ') {
            self.add(credential);
        }
        if name == "cookie" {
            let values = value.split(';').filter_map(|pair| pair.split_once('='));
            values.for_each(|(_, value)| self.add(value));
        }
    }

    /// Adds `user:password`: the whole, the password, and how both travel in a header.
    pub fn add_login(&mut self, login: &str) {
        self.add(login);
        if let Some((user, password)) = login.split_once(':') {
            self.add(user);
            self.add(password);
        }
        self.add(&base64(login.as_bytes()));
    }

    /// Takes over what another set knows.
    pub fn merge(&mut self, other: &Self) {
        other.texts.iter().for_each(|text| self.add_form(text));
    }

    fn add_form(&mut self, text: &str) {
        if text.len() < SHORTEST || self.texts.iter().any(|known| **known == *text) {
            return;
        }
        let at = self
            .texts
            .partition_point(|known| known.len() >= text.len());
        self.texts.insert(at, text.into());
    }

    /// The text with every secret replaced by `***`. A secret's beginning at the text's end, or before the dots where a
    /// part of it was cut, counts too.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for secret in &self.texts {
            if text.contains(&**secret) {
                text = Cow::Owned(text.replace(&**secret, HIDDEN));
            }
        }
        if text.split(CUT).all(|kept| self.begun(kept).is_none()) {
            return text;
        }
        let kept = text.split(CUT).map(|kept| match self.begun(kept) {
            Some(at) => Cow::Owned(format!("{}{HIDDEN}", &kept[..at])),
            None => Cow::Borrowed(kept),
        });
        Cow::Owned(kept.collect::<Vec<_>>().join(CUT))
    }

    /// Where a secret begins of which the text's end holds only a part.
    fn begun(&self, text: &str) -> Option<usize> {
        let begun = |secret: &str| {
            let longest = secret.len().saturating_sub(1).min(text.len());
            (SHORTEST_PART..=longest)
                .rev()
                .filter(|length| secret.is_char_boundary(*length))
                .find(|length| text.ends_with(&secret[..*length]))
        };
        self.texts
            .iter()
            .filter_map(|secret| begun(secret))
            .max()
            .map(|length| text.len() - length)
    }
}

impl fmt::Debug for Secrets {
    /// Only how many there are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.texts.len())
    }
}

/// The value of an `Authorization` header for `user:password` (RFC 7617).
#[must_use]
pub fn basic(login: &str) -> String {
    format!("Basic {}", base64(login.as_bytes()))
}

/// Standard base64 with padding (RFC 4648).
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut three = [0; 3];
        three[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for place in 0..4 {
            text.push(if place <= chunk.len() {
                char::from(ALPHABET[(bits >> (18 - 6 * place)) as usize & 63])
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn knowing(texts: &[&str]) -> Secrets {
        let mut secrets = Secrets::none();
        texts.iter().for_each(|text| secrets.add(text));
        secrets
    }

    #[test]
    fn every_form_of_a_secret_is_hidden() {
        let secrets = knowing(&["hunter22", "a\"b/c d", "short"]);
        for (said, shown) in [
            ("token hunter22 is bad", "token *** is bad"),
            ("hunter22hunter22", "******"),
            (r#"{"t":"a\"b/c d"}"#, r#"{"t":"***"}"#),
            ("short stays", "short stays"),
            ("it was cut: hunte...", "it was cut: ***..."),
            ("it was cut: hunt", "it was cut: ***"),
            ("a hunt...", "a ***..."),
            (
                "said \"hunter2...\" and hunt... too",
                "said \"***...\" and ***... too",
            ),
            ("hunter is a name", "hunter is a name"),
        ] {
            assert_eq!(secrets.redact(said), shown, "{said}");
        }
        assert_eq!(knowing(&["p%40ssword"]).redact("no p@ssword"), "no ***");
        assert_eq!(knowing(&["abcdef", "abcdefgh"]).redact("abcdefgh"), "***");
    }

    #[test]
    fn headers_and_logins_are_known_by_their_parts() {
        let mut secrets = Secrets::none();
        secrets.add_header("Authorization", "Bearer t0ken-x");
        secrets.add_header("cookie", "a=1; sid=cookie-v");
        secrets.add_header("Origin", "https://example.com");
        secrets.add_login("alice1:pass-word");
        let said = "t0ken-x cookie-v https://example.com pass-word alice1 YWxpY2UxOnBhc3Mtd29yZA==";
        assert_eq!(
            secrets.redact(said),
            "*** *** https://example.com *** *** ***"
        );
        assert!(!format!("{secrets:?}").contains("pass"));
    }

    #[test]
    fn base64_is_the_rfcs() {
        // RFC 4648, section 10, and RFC 7617, section 2.
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(
            basic("Aladdin:open sesame"),
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="
        );
    }

    proptest! {
        #[test]
        fn no_secret_survives(secret in "[a-zA-Z0-9+/é]{6,20}", before in ".{0,20}", after in ".{0,20}") {
            let secrets = knowing(&[&secret]);
            let said = format!("{before}{secret}{after}");
            let shown = secrets.redact(&said);
            prop_assert!(!shown.contains(&secret));
        }
    }
}
