//! Tunnels over real loopback sockets: what goes through, and what befalls it.

use std::pin::pin;

use futures::poll;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::*;
use crate::transport::is_reset;

const ALL: Part = Part {
    clients: 4,
    share: 1.0,
};
const LIMIT: Duration = Duration::from_secs(5);
/// Nothing of these tests may take longer.
const PATIENCE: Duration = Duration::from_secs(10);

struct Rig {
    tunnels: Tunnels,
    target: TcpListener,
    url: Url,
}

impl Rig {
    async fn new() -> Self {
        let target = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}/", target.local_addr().unwrap());
        let network = Arc::new(Network::plain(LIMIT));
        Self {
            tunnels: Tunnels::open(network, Clock::start()).unwrap(),
            target,
            url: url.parse().unwrap(),
        }
    }

    async fn dial(&self, client: u32) -> Result<TcpStream, AttemptOutcome> {
        let reaching = self.tunnels.reach(ClientId(client), &self.url, None, LIMIT);
        reaching.await
    }

    /// A client's end and the server's.
    async fn both(&self, client: u32) -> (TcpStream, TcpStream) {
        let near = self.dial(client).await.unwrap();
        (near, self.target.accept().await.unwrap().0)
    }

    fn open(&self) -> usize {
        lock(&self.tunnels.state).open.len()
    }
}

/// Everything until the end, and how that was told.
async fn rest(stream: &mut TcpStream) -> (Vec<u8>, End) {
    let mut bytes = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut bytes));
    match read.await.expect("no end was told") {
        Ok(_) => (bytes, End::Fin),
        Err(e) if is_reset(&e) => (bytes, End::Rst),
        Err(e) => panic!("{e}"),
    }
}

async fn some(stream: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    let read = timeout(PATIENCE, stream.read_exact(&mut bytes));
    read.await.expect("nothing came").unwrap();
    bytes
}

async fn is_silent(stream: &mut TcpStream) -> bool {
    let mut byte = [0];
    let short = Duration::from_millis(300);
    timeout(short, stream.read(&mut byte)).await.is_err()
}

/// Waits until so many tunnels are open.
async fn until_open(rig: &Rig, count: usize) {
    let wait = async {
        while rig.open() != count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let over = timeout(PATIENCE, wait).await;
    assert!(over.is_ok(), "{} tunnels are open", rig.open());
}

#[tokio::test]
async fn in_fair_weather_bytes_and_ends_go_through_as_they_came() {
    let rig = Rig::new().await;
    let (mut near, mut server) = rig.both(1).await;
    assert!(near.nodelay().unwrap());
    let large: Vec<u8> = (0..3_000_000u32).map(|n| n as u8).collect();
    let write = async {
        near.write_all(&large).await.unwrap();
        near.shutdown().await.unwrap();
        rest(&mut near).await
    };
    let serve = async {
        let (up, end) = rest(&mut server).await;
        server.write_all(b"bye").await.unwrap();
        server.shutdown().await.unwrap();
        (up, end)
    };
    let (down, (up, end)) = tokio::join!(write, serve);
    assert!(up == large && end == End::Fin);
    assert_eq!(down, (b"bye".to_vec(), End::Fin));
    until_open(&rig, 0).await;
}

#[tokio::test]
async fn a_reset_comes_as_one_behind_what_was_sent_before_it() {
    let rig = Rig::new().await;
    let (mut near, mut server) = rig.both(1).await;
    server.write_all(b"last words").await.unwrap();
    server.set_zero_linger().unwrap();
    drop(server);
    assert_eq!(rest(&mut near).await, (b"last words".to_vec(), End::Rst));
    let (near, mut server) = rig.both(1).await;
    near.set_zero_linger().unwrap();
    drop(near);
    assert_eq!(rest(&mut server).await.1, End::Rst);
    until_open(&rig, 0).await;
}

/// A server that is being killed answers what the client still sends with a reset, while its last words are on their way.
#[tokio::test]
async fn a_failed_write_hides_nothing_that_the_other_side_sent_before() {
    let rig = Rig::new().await;
    let (mut near, mut server) = rig.both(1).await;
    let late = Blow::Weather(Weather::Late(Duration::from_millis(300)));
    rig.tunnels.befall(ALL, late, Dials::Through);
    // The client's bytes arrive where nobody is any more, before the server's do with the client.
    near.write_all(b"pong").await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    server.write_all(b"last words").await.unwrap();
    server.set_zero_linger().unwrap();
    drop(server);
    assert_eq!(rest(&mut near).await, (b"last words".to_vec(), End::Rst));
    until_open(&rig, 0).await;
}

#[tokio::test]
async fn who_does_not_read_makes_the_other_wait() {
    let rig = Rig::new().await;
    let (near, mut server) = rig.both(1).await;
    let block = vec![0; 1 << 20];
    let flood = async {
        loop {
            server.write_all(&block).await.unwrap();
        }
    };
    assert!(timeout(Duration::from_secs(1), flood).await.is_err());
    drop(near);
}

#[tokio::test]
async fn a_server_that_is_down_is_refused_and_one_that_is_no_client_of_herds_turned_away() {
    let rig = Rig::new().await;
    let mut stranger = TcpStream::connect(rig.tunnels.pairs.address())
        .await
        .unwrap();
    let (mut near, mut server) = rig.both(1).await;
    server.write_all(b"mine").await.unwrap();
    assert_eq!(some(&mut near, 4).await, b"mine");
    assert_eq!(rest(&mut stranger).await.0, b"");
    drop(rig.target);
    let reaching = rig.tunnels.reach(ClientId(1), &rig.url, None, LIMIT);
    assert_eq!(reaching.await.unwrap_err(), AttemptOutcome::Refused);
}

#[tokio::test]
async fn ends_are_told_to_both_sides_of_the_chosen_and_of_nobody_else() {
    let half = Part { share: 0.5, ..ALL };
    for end in [End::Fin, End::Rst] {
        let rig = Rig::new().await;
        assert!(!half.holds(ClientId(1)) && half.holds(ClientId(2)));
        let (mut spared, mut spared_server) = rig.both(1).await;
        let (mut near, mut server) = rig.both(2).await;
        rig.tunnels.befall(half, Blow::End(end), Dials::Refused);
        assert_eq!(rest(&mut near).await, (vec![], end));
        assert_eq!(rest(&mut server).await, (vec![], end));
        assert_eq!(rig.dial(2).await.unwrap_err(), AttemptOutcome::Refused);
        spared_server.write_all(b"x").await.unwrap();
        assert_eq!(some(&mut spared, 1).await, b"x");
        rig.both(1).await;
        let clear = Blow::Weather(Weather::Clear);
        rig.tunnels.befall(half, clear, Dials::Through);
        rig.both(2).await;
    }
}

#[tokio::test]
async fn in_a_hole_nothing_arrives_and_no_end_is_told() {
    let rig = Rig::new().await;
    let (mut near, mut server) = rig.both(1).await;
    rig.tunnels.befall(ALL, Blow::Vanish, Dials::Unanswered);
    near.write_all(b"ping").await.unwrap();
    server.write_all(b"event").await.unwrap();
    assert!(is_silent(&mut near).await && is_silent(&mut server).await);
    let clear = Blow::Weather(Weather::Clear);
    rig.tunnels.befall(ALL, clear, Dials::Through);
    assert!(is_silent(&mut near).await, "what vanished is gone for ever");
    drop(near);
    assert!(is_silent(&mut server).await, "the server isn't told");
    assert_eq!(rig.open(), 1);
    drop(server);
    until_open(&rig, 0).await;
}

#[tokio::test]
async fn a_dial_into_a_hole_has_no_answer_until_its_limit() {
    let rig = Rig::new().await;
    rig.tunnels.befall(ALL, Blow::Vanish, Dials::Unanswered);
    let limit = Duration::from_millis(200);
    let reaching = rig.tunnels.reach(ClientId(1), &rig.url, None, limit);
    assert_eq!(reaching.await.unwrap_err(), AttemptOutcome::Timeout);
    assert!(rig.tunnels.clock.now().duration() >= limit);
}

/// Real time, since systems ask again by it: after a second.
#[tokio::test]
async fn a_dial_into_a_hole_gets_through_once_it_asks_again() {
    let rig = Rig::new().await;
    rig.tunnels.befall(ALL, Blow::Vanish, Dials::Unanswered);
    let limit = Duration::from_secs(30);
    let reaching = rig.tunnels.reach(ClientId(1), &rig.url, None, limit);
    let back = async {
        let clear = Blow::Weather(Weather::Clear);
        rig.tunnels.befall(ALL, clear, Dials::Through);
    };
    let (reached, ()) = tokio::join!(reaching, back);
    assert!(reached.is_ok(), "{reached:?}");
    let took = rig.tunnels.clock.now().duration();
    assert!(took >= Duration::from_secs(1) && took < limit, "{took:?}");
}

/// A blow that fell after a dial began, and was over before it was done, has hit it.
#[tokio::test]
async fn a_blow_hits_dials_that_are_under_way() {
    let rig = Rig::new().await;
    let mut dial = pin!(rig.dial(1));
    assert!(poll!(&mut dial).is_pending(), "it was over at once");
    rig.tunnels.befall(ALL, Blow::End(End::Rst), Dials::Refused);
    let clear = Blow::Weather(Weather::Clear);
    rig.tunnels.befall(ALL, clear, Dials::Through);
    let dialled = dial.await;
    assert_eq!(dialled.unwrap_err(), AttemptOutcome::Refused);
    assert!(rig.dial(1).await.is_ok());
}

#[tokio::test]
async fn late_bytes_come_late_and_a_trickle_is_cut_in_the_middle() {
    let rig = Rig::new().await;
    let (mut near, mut server) = rig.both(1).await;
    let delay = Duration::from_millis(200);
    let late = Blow::Weather(Weather::Late(delay));
    rig.tunnels.befall(ALL, late, Dials::Through);
    // The relay has heard of it once it passes nothing on at once.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let sent = rig.tunnels.clock.now();
    server.write_all(b"one").await.unwrap();
    assert_eq!(some(&mut near, 3).await, b"one");
    assert!(rig.tunnels.clock.now().since(sent) >= delay);
    let slow = Blow::Weather(Weather::Slow(100));
    rig.tunnels.befall(ALL, slow, Dials::Through);
    server.write_all(&[b'x'; 1_000]).await.unwrap();
    some(&mut near, 10).await;
    rig.tunnels.befall(ALL, Blow::End(End::Rst), Dials::Through);
    let (more, end) = rest(&mut near).await;
    assert!(end == End::Rst && more.len() < 500, "{} bytes", more.len());
    // Who dials in slow weather gets it too.
    rig.tunnels.befall(ALL, late, Dials::Through);
    let (mut near, mut server) = rig.both(1).await;
    let sent = rig.tunnels.clock.now();
    near.write_all(b"hello").await.unwrap();
    assert_eq!(some(&mut server, 5).await, b"hello");
    assert!(rig.tunnels.clock.now().since(sent) >= delay);
}

/// A connect is a question and its answer, and each of them is late.
#[tokio::test]
async fn a_slow_network_delays_a_connect_by_its_round_trip() {
    let rig = Rig::new().await;
    let delay = Duration::from_millis(100);
    let half = Part { share: 0.5, ..ALL };
    let (hit, spared) = match half.holds(ClientId(1)) {
        true => (1, 2),
        false => (2, 1),
    };
    let late = Blow::Weather(Weather::Late(delay));
    rig.tunnels.befall(half, late, Dials::Through);
    let took = async |client| {
        let begun = rig.tunnels.clock.now();
        let reached = rig.dial(client).await;
        (reached, rig.tunnels.clock.now().since(begun))
    };
    let (reached, time) = took(hit).await;
    assert!(reached.is_ok() && time >= 2 * delay, "{time:?}");
    let (reached, time) = took(spared).await;
    assert!(reached.is_ok() && time < delay, "{time:?}");
    let short = Duration::from_millis(150);
    let reaching = rig.tunnels.reach(ClientId(hit), &rig.url, None, short);
    assert_eq!(reaching.await.unwrap_err(), AttemptOutcome::Timeout);
    // A refusal takes as long as any answer.
    let begun = rig.tunnels.clock.now();
    drop(rig.target);
    let reaching = rig.tunnels.reach(ClientId(hit), &rig.url, None, LIMIT);
    assert_eq!(reaching.await.unwrap_err(), AttemptOutcome::Refused);
    assert!(rig.tunnels.clock.now().since(begun) >= 2 * delay);
}
