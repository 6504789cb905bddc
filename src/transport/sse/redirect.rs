//! Where a redirect leads and what may be said there. It dials nothing: who does decides how long the chain may take.

use url::Url;

/// How many redirects in a row are followed.
pub const MOST: usize = 5;

/// Headers that are meant for one origin: credentials, and the name that the user gave it.
const OF_THE_ORIGIN: [&str; 4] = ["authorization", "cookie", "proxy-authorization", "host"];

/// The address that a `Location` names, seen from the one that answered it.
///
/// # Errors
/// What is wrong with it, without its text, which may hold a secret.
pub fn target(from: &Url, location: &str) -> Result<Url, String> {
    let mut url = from
        .join(location)
        .map_err(|e| format!("redirects to what is no URL ({e})"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("redirects to {}://, not to http", url.scheme()));
    }
    // Neither fails for a URL with a host, which these schemes ask for.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_fragment(None);
    Ok(url)
}

/// Leaves out what must not be said to another origin; everything else, the cursor above all, goes along.
pub fn retain(headers: &mut Vec<(String, String)>, from: &Url, to: &Url) {
    if from.origin() != to.origin() {
        headers.retain(|(name, _)| {
            !OF_THE_ORIGIN
                .iter()
                .any(|own| name.eq_ignore_ascii_case(own))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn a_location_is_seen_from_where_it_was_answered() {
        let from = url("http://h:8080/v1/events?after=3");
        for (location, to) in [
            ("/v2", "http://h:8080/v2"),
            ("v2?x=1", "http://h:8080/v1/v2?x=1"),
            ("?y", "http://h:8080/v1/events?y"),
            ("//other/v2", "http://other/v2"),
            ("https://user:secret@other:9/v2#part", "https://other:9/v2"),
        ] {
            assert_eq!(target(&from, location), Ok(url(to)), "{location}");
        }
        for (location, word) in [
            ("ftp://h/x", "ftp://"),
            ("http://", "no URL"),
            ("http://h:x", "no URL"),
        ] {
            let said = target(&from, location).unwrap_err();
            assert!(said.contains(word), "{said}");
        }
    }

    #[test]
    fn credentials_stay_with_their_origin_and_the_cursor_goes_along() {
        let headers: Vec<(String, String)> =
            ["Authorization", "cookie", "Host", "Last-Event-ID", "X-Api"]
                .iter()
                .map(|name| ((*name).to_owned(), "x".to_owned()))
                .collect();
        let from = url("http://h/v1");
        for (to, kept) in [
            ("http://h/v2", 5),
            ("http://h:80/v2", 5),
            ("http://h:81/v2", 2),
            ("https://h/v2", 2),
            ("http://other/v1", 2),
        ] {
            let mut left = headers.clone();
            retain(&mut left, &from, &url(to));
            assert_eq!(left.len(), kept, "{to}");
            assert!(left.iter().any(|(name, _)| name == "Last-Event-ID"));
        }
    }
}
