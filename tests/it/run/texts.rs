//! Scenarios of these tests: [`QUICK`] with other clients and other outages. It knows where its lines stand, and no more.

use super::QUICK;

/// The outage of [`QUICK`].
const OUTAGE: &str = "[outage]\ndown = \"300ms\"\nsteady = \"300ms\"\nquiet-period = \"500ms\"\ncommand-limit = \"1s\"\n";

/// A scenario's text.
#[derive(Debug, Clone)]
pub(super) struct Scenario(String);

/// [`QUICK`] itself.
pub(super) fn quick() -> Scenario {
    Scenario(QUICK.into())
}

impl Scenario {
    pub(super) fn clients(self, clients: u32) -> Self {
        self.replace("clients = 24", &format!("clients = {clients}"))
    }

    /// With these lines under `[client]`.
    pub(super) fn client(self, lines: &str) -> Self {
        let with = format!("[client]\n{lines}\n[client.backoff]\n");
        self.replace("[client.backoff]\n", &with)
    }

    /// With these lines for its outage beside those that it has.
    pub(super) fn outage(self, lines: &str) -> Self {
        self.replace("[outage]\n", &format!("[outage]\n{lines}\n"))
    }

    /// With these outages instead of its own.
    pub(super) fn outages(self, all: &[&str]) -> Self {
        let each = |lines: &&str| format!("[[outage]]\n{lines}\nsteady = \"300ms\"\n");
        self.replace(OUTAGE, &all.iter().map(each).collect::<String>())
    }

    pub(super) fn text(self) -> String {
        self.0
    }

    #[track_caller]
    fn replace(self, from: &str, to: &str) -> Self {
        assert!(self.0.contains(from), "{from:?} isn't in\n{}", self.0);
        Self(self.0.replace(from, to))
    }
}
