//! Sentences on what happened to a run, for its reports. They know the words and nothing of how the facts were found.

use std::time::Duration;

use crate::profile::guess;

/// A stop that never ends by itself is a fact about the server: some close their port and wait for their streams for ever.
pub(super) fn killed(grace: Duration, open: usize) -> String {
    let seconds = (grace.as_secs_f64() * 10.0).round() / 10.0;
    let connections = match open {
        1 => "1 connection".to_owned(),
        open => format!("{open} connections"),
    };
    format!(
        "the server did not exit within {seconds} s of SIGTERM with {connections} open; it was killed"
    )
}

/// What a server seems to speak that this profile can't read, going by these frames.
pub(super) fn misread(profile: &str, frames: &[&str]) -> Option<String> {
    let hint = guess::from_frames(frames, profile)?;
    Some(format!(
        "the profile {profile} can't read what comes: {hint}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_had_to_be_killed_is_told_with_its_open_connections() {
        let told = |ms, open| killed(Duration::from_millis(ms), open);
        let many = "the server did not exit within 10 s of SIGTERM with 200 connections open; it was killed";
        assert_eq!(told(10_003, 200), many);
        assert!(told(480, 1).contains("within 0.5 s of SIGTERM with 1 connection open"));
    }
}
