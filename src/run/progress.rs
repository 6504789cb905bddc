//! What a person sees while a run goes on: a bar on a terminal, a line every few seconds otherwise, nothing with `-q`.
//!
//! It is told where the run stands and knows nothing of why.

use std::io::Write;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::history::Elapsed;

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    /// A bar on stderr, which is a terminal.
    Bars,
    /// A line every [`LINE_EVERY`].
    Lines,
    /// Nothing.
    Nothing,
}

/// How often a line is written where there is no terminal.
pub const LINE_EVERY: Duration = Duration::from_secs(3);

/// A stretch of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Connecting,
    Priming,
    Steady,
    Waiting,
    Down,
    Reconnecting,
    CatchingUp,
    Settling,
}

impl Phase {
    fn name(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Priming => "priming",
            Self::Steady => "steady",
            Self::Waiting => "waiting for a restart",
            Self::Down => "down",
            Self::Reconnecting => "reconnecting",
            Self::CatchingUp => "catching up",
            Self::Settling => "settling",
        }
    }
}

/// The display.
pub(super) struct Progress {
    show: Show,
    talk: Box<dyn Write + Send>,
    bar: ProgressBar,
    phase: Option<Phase>,
    next_line: Elapsed,
}

impl Progress {
    pub(super) fn new(show: Show, talk: Box<dyn Write + Send>) -> Self {
        let bar = match show {
            Show::Bars => ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr()),
            Show::Lines | Show::Nothing => ProgressBar::hidden(),
        };
        let style = ProgressStyle::with_template("{prefix:>22} [{bar:30}] {pos}/{len} {msg}");
        bar.set_style(
            style
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .progress_chars("=> "),
        );
        Self {
            show,
            talk,
            bar,
            phase: None,
            next_line: Elapsed::ZERO,
        }
    }

    /// Where the run stands: `done` of `total` clients in this phase, and what else there is to say.
    pub(super) fn update(
        &mut self,
        now: Elapsed,
        phase: Phase,
        done: usize,
        total: usize,
        note: &str,
    ) {
        let new = self.phase != Some(phase);
        self.phase = Some(phase);
        match self.show {
            Show::Nothing => {}
            Show::Bars => {
                self.bar.set_prefix(phase.name());
                self.bar.set_length(total as u64);
                self.bar.set_position(done as u64);
                self.bar.set_message(note.to_owned());
            }
            Show::Lines if new || now >= self.next_line => {
                self.next_line = now + LINE_EVERY;
                let seconds = now.duration().as_secs_f64();
                self.say(&format!(
                    "{seconds:7.1} s  {:<21} {done}/{total} {note}",
                    phase.name()
                ));
            }
            Show::Lines => {}
        }
    }

    /// One sentence, whatever is shown besides; silent with `-q`.
    pub(super) fn say(&mut self, sentence: &str) {
        let talk = &mut self.talk;
        if self.show != Show::Nothing {
            // Nobody is left to be told when stderr is gone.
            self.bar
                .suspend(|| writeln!(talk, "{}", sentence.trim_end()))
                .unwrap_or_default();
        }
    }

    /// Takes the bar off the screen.
    pub(super) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
