//! herd restarts a realtime server under N simulated clients and proves, or disproves, that they came back spread out
//! instead of as a stampede, and that every client got every event exactly once.
//!
//! ```text
//!  what the user wrote      what will happen          what happened            what it means
//!  scenario.toml + flags ─► Scenario ─► Plan ─► run: clients, publisher, ─► History (file; shards merge)
//!                                     (+ seed,       trigger, target              │
//!                                       shard)                                    ▼
//!                                                      Checks ─► Verdict ─► Summary ─► reports
//!                                                                   └────────────────► exit code
//! ```
//!
//! Data moves only to the right. `herd run` does all of it; `herd check FILE...` starts at History.

pub mod backoff;
pub mod check;
pub mod cli;
pub mod client;
pub mod clock;
pub mod error;
pub mod history;
pub mod plan;
pub mod probe;
pub mod profile;
pub mod publish;
pub mod report;
pub mod run;
pub mod scenario;
pub mod secrets;
pub mod server;
pub mod simulate;
pub mod target;
pub mod template;
pub mod transport;
pub mod trigger;
