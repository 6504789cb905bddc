//! One candidate tried as a client would use it: connect, receive one event, leave, miss one, come back.
//!
//! It shows every frame as it was read, escaped and cut. Which profile is the right one is not decided here.

use std::future::poll_fn;
use std::time::Duration;

use super::advice::{Candidate, Live, Proof};
use super::{Look, pointers};
use crate::client::dial::{Dialler, Due, Stamps, Way};
use crate::client::hide;
use crate::error::Error;
use crate::history::{AttemptOutcome, ClientId, Elapsed, Publication};
use crate::plan::Plan;
use crate::profile::{Carried, Decoded, Moves, Talk};
use crate::template::Values;
use crate::transport::{Connection, Frame, safe};

/// What a server says by itself comes within this.
const GREETING: Duration = Duration::from_millis(700);
/// How long an event may take.
const EVENT: Duration = Duration::from_secs(3);
/// How long somebody else's event is waited for.
const OTHERS: Duration = Duration::from_secs(10);
/// How much of a frame is shown (bytes), and how many of a session.
const SHOWN: (usize, usize) = (160, 12);

const CLIENT: ClientId = ClientId(1);

/// Headers of an answer that tell something.
const TELLING: [&str; 5] = [
    "server",
    "content-type",
    "sec-websocket-protocol",
    "retry-after",
    "location",
];

pub(super) struct Trial<'a, 'b> {
    look: &'a mut Look<'b>,
    shown: String,
    plan: Plan,
    dialler: Dialler,
    talk: Talk,
    cursor: Option<Box<str>>,
    /// Frames of the current session, as text.
    texts: Vec<String>,
    /// Numbers of herd's that the current session brought.
    numbers: Vec<u64>,
    events: usize,
    unread: Option<String>,
    reset: bool,
    refused: Option<String>,
}

/// An open session.
struct Meeting {
    connection: Connection,
    carried: Carried,
    cursor: Option<Box<str>>,
    shown: usize,
}

impl<'a, 'b> Trial<'a, 'b> {
    /// Tries a candidate; what was found to stand elsewhere is noted in it.
    pub(super) async fn run(
        look: &'a mut Look<'b>,
        candidate: &mut Candidate,
    ) -> Result<Proof, Error> {
        let scenario = candidate.scenario(&look.probe.scenario);
        let plan = Plan::new(&scenario, look.port.as_slice())?;
        look.paper.secrets = hide::secrets(look.network.secrets(), &plan, CLIENT);
        let trial = Self {
            dialler: Dialler::new(&scenario, look.network.clone(), look.clock),
            shown: match look.port {
                Some(port) => scenario
                    .masked()
                    .target
                    .url
                    .replace("{port}", &port.to_string()),
                None => scenario.masked().target.url,
            },
            talk: Talk::new(plan.profile()),
            look,
            plan,
            cursor: None,
            texts: Vec::new(),
            numbers: Vec::new(),
            events: 0,
            unread: None,
            reset: false,
            refused: None,
        };
        trial.try_out(candidate).await
    }

    async fn try_out(mut self, candidate: &mut Candidate) -> Result<Proof, Error> {
        let mut first = match self.meet().await? {
            Ok(meeting) => meeting,
            Err(why) => return Ok(Proof::NotOpened(why)),
        };
        self.listen(&mut first, GREETING, None).await?;
        let published = self.publish().await?;
        let limit = if self.look.events.are_herds() {
            EVENT
        } else {
            OTHERS
        };
        let seq = published.as_ref().map(|p| p.seq.0);
        self.listen(&mut first, limit, Some(seq)).await?;
        drop(first);
        if let Some(published) = published
            .as_ref()
            .filter(|p| !self.numbers.contains(&p.seq.0))
        {
            self.look_elsewhere(published, candidate)?;
        }
        let has_event = seq.map_or(self.events > 0, |seq| self.numbers.contains(&seq));
        Ok(match (has_event, &self.cursor) {
            (false, _) => Proof::NoEvent {
                unread: self.unread,
            },
            (true, None) => Proof::NoCursor,
            (true, Some(_)) if !self.look.events.are_herds() => Proof::Readable,
            (true, Some(_)) => self.come_back().await?,
        })
    }

    async fn come_back(&mut self) -> Result<Proof, Error> {
        self.look.paper.write("  left, to miss one event\n")?;
        let before = std::mem::take(&mut self.numbers);
        let missed = self.publish().await?.map_or(0, |p| p.seq.0);
        let mut second = match self.meet().await? {
            Ok(meeting) => meeting,
            Err(why) => return Ok(Proof::NotOpened(format!("when it came back: {why}"))),
        };
        self.listen(&mut second, EVENT, Some(Some(missed))).await?;
        let came = self.numbers.contains(&missed);
        let next = self.publish().await?.map_or(0, |p| p.seq.0);
        self.listen(&mut second, EVENT, Some(Some(next))).await?;
        let live = if self.numbers.contains(&next) {
            Live::Yes
        } else {
            Live::No
        };
        let again = |seq: &&u64| before.contains(seq) || (**seq == missed);
        let times = self.numbers.iter().filter(again).count() - usize::from(came);
        Ok(match (came, times) {
            (false, _) if self.reset => Proof::Reset,
            (false, _) if self.heard_of(missed).is_some() => Proof::NotRead {
                frame: self.heard_of(missed).unwrap_or_default(),
            },
            (false, _) => Proof::Missed {
                live,
                refused: self.refused.clone(),
            },
            (true, 0) => Proof::Resumed { live },
            (true, times) => Proof::Repeated { times },
        })
    }

    /// A frame that holds a number of herd's, however it is to be read.
    fn heard_of(&self, seq: u64) -> Option<String> {
        let seq = seq.to_string();
        let frame = self.texts.iter().find(|text| text.contains(&seq))?;
        Some(safe(frame.as_bytes(), SHOWN.0).into())
    }

    /// The profile found no event with herd's number: perhaps the number or the id stands elsewhere.
    fn look_elsewhere(
        &mut self,
        published: &Publication,
        candidate: &mut Candidate,
    ) -> Result<(), Error> {
        let found = self.texts.iter().map(|text| {
            let json = text
                .find(['{', '['])
                .map_or(text.as_str(), |at| &text[at..]);
            pointers::find(json, published.seq.0, published.id.as_deref())
        });
        let Some(found) = found.rev().find(|found| found.seq.is_some()) else {
            return Ok(());
        };
        candidate.found = found;
        let scenario = candidate.scenario(&self.look.probe.scenario);
        self.plan = Plan::new(&scenario, self.look.port.as_slice())?;
        self.cursor = None;
        for text in std::mem::take(&mut self.texts) {
            self.read(Frame::text(&text), Carried::Nothing);
        }
        Ok(())
    }

    async fn publish(&mut self) -> Result<Option<Publication>, Error> {
        let published = self.look.events.one().await?;
        if let Some(published) = &published {
            let answer = match (published.answered, &published.id) {
                (Some(_), Some(id)) => format!("accepted, id {}", safe(id.as_bytes(), SHOWN.0)),
                (Some(_), None) => {
                    format!("{:?}, no id in the answer", published.fate).to_lowercase()
                }
                (None, _) => self
                    .look
                    .events
                    .trouble()
                    .unwrap_or_else(|| "no answer".into()),
            };
            self.look.paper.write(&format!(
                "  published an event with number {}: {answer}\n",
                published.seq.0
            ))?;
        }
        Ok(published)
    }

    /// Opens a session; the inner error says why there is none.
    async fn meet(&mut self) -> Result<Result<Meeting, String>, Error> {
        let call = self
            .plan
            .call(CLIENT, 0, self.cursor.as_deref(), self.talk.named());
        let cursor = self
            .cursor
            .as_ref()
            .map(|cursor| format!(", resuming from {}", safe(cursor.as_bytes(), SHOWN.0)));
        let line = format!("  {}{}\n", self.shown, cursor.unwrap_or_default());
        self.look.paper.write(&line)?;
        let (began, mut stamps) = (self.look.clock.now(), Stamps::default());
        let source = self.plan.source(CLIENT);
        let dialled = self
            .dialler
            .dial(Due::at(began), call, Way::straight(source), &mut stamps)
            .await;
        let opened = match dialled {
            Ok(opened) => opened,
            Err(outcome) => return Ok(Err(declined(&outcome))),
        };
        let status = match opened.connection {
            Connection::Ws(_) => "101",
            Connection::Sse(_) => "200",
        };
        let took = self.look.clock.now().since(began).as_secs_f64() * 1e3;
        let line = format!("    answered {status} after {took:.1} ms\n");
        self.look.paper.write(&line)?;
        for (name, value) in &opened.headers {
            if !TELLING.contains(&name.as_str()) {
                continue;
            }
            let value = safe(value.as_bytes(), SHOWN.0);
            self.look.paper.write(&format!("    {name}: {value}\n"))?;
        }
        let (texts, cursor) = (&mut self.texts, self.cursor.clone());
        texts.clear();
        let mut meeting = Meeting {
            connection: opened.connection,
            carried: if cursor.is_some() {
                Carried::Cursor
            } else {
                Carried::Nothing
            },
            cursor,
            shown: 0,
        };
        let header = |name: &str| {
            let value = opened.headers.get(name)?;
            value.to_str().ok().map(str::to_owned)
        };
        let profile = self.plan.profile().clone();
        let values = values(&self.plan, meeting.cursor.as_deref());
        let turn = self
            .talk
            .open(&profile, self.look.clock.now().duration(), &values, &header);
        self.say(&mut meeting, &turn.say)?;
        self.reset |= turn.reset;
        Ok(Ok(meeting))
    }

    fn say(&mut self, meeting: &mut Meeting, say: &[String]) -> Result<(), Error> {
        for text in say {
            meeting.connection.send(text);
            self.show(meeting, "->", &safe(text.as_bytes(), SHOWN.0))?;
        }
        Ok(())
    }

    fn show(&mut self, meeting: &mut Meeting, arrow: &str, text: &str) -> Result<(), Error> {
        meeting.shown += 1;
        match meeting.shown.cmp(&SHOWN.1) {
            std::cmp::Ordering::Less => self.look.paper.write(&format!("    {arrow} {text}\n")),
            std::cmp::Ordering::Equal => self.look.paper.write("    .. and so on\n"),
            std::cmp::Ordering::Greater => Ok(()),
        }
    }

    /// Reads for a while, or until the event came that is waited for: with this number, or (inner none) any.
    async fn listen(
        &mut self,
        meeting: &mut Meeting,
        limit: Duration,
        wanted: Option<Option<u64>>,
    ) -> Result<(), Error> {
        let until = self.look.clock.now() + limit;
        let profile = self.plan.profile().clone();
        loop {
            let events = self.events;
            match wanted {
                Some(Some(seq)) if self.numbers.contains(&seq) => return Ok(()),
                Some(None) if events > 0 => return Ok(()),
                _ => {}
            }
            let due = self
                .talk
                .due()
                .map_or(until, |due| Elapsed::from(due).min(until));
            let next = poll_fn(|cx| meeting.connection.poll_next(cx));
            let turn = match tokio::time::timeout_at(self.look.clock.instant(due), next).await {
                Ok(Ok(payload)) => {
                    let frame = payload.frame();
                    let meaning = self.read(frame, meeting.carried);
                    let text = safe(frame.bytes, SHOWN.0);
                    self.show(meeting, "<-", &format!("{text}   ({meaning})"))?;
                    let values = values(&self.plan, meeting.cursor.as_deref());
                    if self.talk.wants(&profile, frame) {
                        self.talk
                            .hear(&profile, self.look.clock.now().duration(), frame, &values)
                    } else {
                        continue;
                    }
                }
                Ok(Err(cause)) => {
                    self.look
                        .paper
                        .write(&format!("    ended: {}\n", cause.name()))?;
                    return Ok(());
                }
                Err(_) if self.look.clock.now() >= until => return Ok(()),
                Err(_) => {
                    let values = values(&self.plan, meeting.cursor.as_deref());
                    self.talk
                        .tick(&profile, self.look.clock.now().duration(), &values)
                }
            };
            self.say(meeting, &turn.say)?;
            self.reset |= turn.reset;
            if let Some(why) = turn.end {
                self.refused.get_or_insert_with(|| why.to_string());
                return self.look.paper.write(&format!("    ended: {why}\n"));
            }
        }
    }

    /// Takes a frame as a client would, and says how it was read.
    fn read(&mut self, frame: Frame<'_>, carried: Carried) -> String {
        self.texts
            .push(String::from_utf8_lossy(frame.bytes).into_owned());
        let parts = self.plan.profile().decode(frame, carried);
        let meanings: Vec<String> = parts
            .into_iter()
            .map(|part| self.take(part, frame))
            .collect();
        meanings.join("; ")
    }

    fn take(&mut self, part: Decoded, frame: Frame<'_>) -> String {
        match part {
            Decoded::Event(reading) => {
                self.events += 1;
                self.numbers.extend(reading.seq);
                let shown = |text: &Option<Box<str>>| {
                    text.as_ref().map_or("no id".into(), |id| {
                        format!("id {}", safe(id.as_bytes(), SHOWN.0))
                    })
                };
                let text = match reading.seq {
                    Some(seq) => format!("event, {}, number {seq}", shown(&reading.id)),
                    None => format!("event, {}", shown(&reading.id)),
                };
                match reading.cursor {
                    Moves::ToId if reading.id.is_some() => self.cursor = reading.id,
                    Moves::To(cursor) => self.cursor = Some(cursor),
                    Moves::ToId | Moves::Nowhere => {}
                }
                text
            }
            Decoded::Cursor(cursor) => {
                self.cursor = cursor;
                "moves the cursor".into()
            }
            Decoded::Reset { id } => {
                self.cursor = id;
                self.reset = true;
                "reload".into()
            }
            Decoded::CaughtUp => "caught up".into(),
            Decoded::ResumeRefused(why) => {
                self.refused.get_or_insert_with(|| why.to_string());
                format!("refuses to resume: {why}")
            }
            Decoded::Fatal(why) => format!("ends the session: {why}"),
            Decoded::Ignored => "nothing to count".into(),
            Decoded::Unread(why) => {
                let text = safe(frame.bytes, SHOWN.0).to_string();
                self.unread.get_or_insert(text);
                format!("not read: {}", safe(why.as_bytes(), SHOWN.0))
            }
        }
    }
}

fn values<'a>(plan: &'a Plan, cursor: Option<&'a str>) -> Values<'a> {
    Values {
        cursor,
        ..plan.values(CLIENT, 0)
    }
}

fn declined(outcome: &AttemptOutcome) -> String {
    match outcome {
        AttemptOutcome::Refused => "the connection is refused; is the server running there?".into(),
        AttemptOutcome::Timeout => "no answer to a TCP connect; is the address right?".into(),
        AttemptOutcome::Handshake {
            status: Some(status),
            why,
        } => format!("answered {status} ({why})"),
        AttemptOutcome::Handshake { status: None, why } | AttemptOutcome::Local(why) => {
            why.to_string()
        }
        AttemptOutcome::Opened | AttemptOutcome::Aborted => "not opened".into(),
    }
}
