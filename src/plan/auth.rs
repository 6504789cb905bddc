//! Who a client says it is: a user and a password, or a token, as the one `Authorization` header of its words.

use url::Url;

use crate::error::Error;
use crate::scenario::{Connect, Credentials};
use crate::secrets::basic;
use crate::template::{Place, Template, Values};

/// The header's name.
pub(super) const AUTHORIZATION: &str = "Authorization";

/// A compiled credential.
#[derive(Debug, Clone)]
pub(super) enum Auth {
    /// `user:password`.
    Basic(Template),
    /// A token.
    Bearer(Template),
}

impl Auth {
    /// Compiles what the user gave; none where he gave none.
    ///
    /// # Errors
    /// [`Error::Usage`] for a variable or file that is missing.
    pub(super) fn new(connect: &Connect) -> Result<Option<Self>, Error> {
        Ok(match &connect.credentials {
            None => None,
            Some(Credentials::User(login)) => Some(Self::Basic(Template::parse(login)?)),
            Some(Credentials::Bearer(token)) => Some(Self::Bearer(Template::parse(token)?)),
        })
    }

    /// The header's value.
    pub(super) fn value(&self, values: &Values<'_>) -> String {
        match self {
            Self::Basic(login) => {
                let login = login.expand(values, Place::Text);
                let whole = if login.contains(':') {
                    login
                } else {
                    login + ":"
                };
                basic(&whole)
            }
            Self::Bearer(token) => format!("Bearer {}", token.expand(values, Place::Header)),
        }
    }
}

/// Takes user and password out of a URL, as the value of the header that they belong into; none where it has none.
pub(super) fn taken_from(url: &mut Url) -> Option<String> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let decode = |text| percent_encoding::percent_decode_str(text).decode_utf8_lossy();
    let login = format!(
        "{}:{}",
        decode(url.username()),
        decode(url.password().unwrap_or_default())
    );
    // It fails only for URLs without a host, which have no user either.
    let _ = url.set_username("").and_then(|()| url.set_password(None));
    Some(basic(&login))
}
