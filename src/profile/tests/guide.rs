//! The guide's own example: what it teaches must work.

use super::super::sample::try_on;
use super::*;

/// The block behind a marker in the guide.
fn block_after<'a>(guide: &'a str, marker: &str) -> &'a str {
    let at = guide.find(marker).expect(marker);
    let block = guide[at..].split("```").nth(1).expect(marker);
    block.split_once('\n').map_or("", |(_, text)| text)
}

#[test]
fn the_guides_profile_reads_the_guides_frames() {
    let guide = include_str!("../../../GUIDE.md");
    let sample = block_after(guide, "has never seen, `ticker.txt`");
    let toml = block_after(guide, "notice that the other is dead?");
    let scenario: toml::Table = toml::from_str(toml).unwrap();
    let spec: Spec = scenario["profile"].clone().try_into().unwrap();
    let profile = Profile::compile(&spec, &Pointers::default()).unwrap();
    let trial = try_on(&profile, sample);
    assert_eq!(trial.unread, 0, "{}", trial.text);
    let shown = block_after(guide, "shows how each frame was read, and after");
    assert!(
        shown.len() > 100 && trial.text.contains(shown),
        "{}",
        trial.text
    );
    assert!(
        trial.text.contains("> {\"op\":\"beat-ok\"}"),
        "{}",
        trial.text
    );
    assert!(
        trial.text.contains("reset, cursor \"900\""),
        "{}",
        trial.text
    );
}

#[test]
fn the_guides_changed_profile_is_one() {
    let guide = include_str!("../../../GUIDE.md");
    let toml = block_after(guide, "lists are replaced as a whole:");
    let scenario: toml::Table = toml::from_str(toml).unwrap();
    let spec: Spec = scenario["profile"].clone().try_into().unwrap();
    Profile::compile(&spec.without_secrets(), &Pointers::default()).unwrap();
}
