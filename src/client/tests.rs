//! A small scenario for unit tests, and what an idle client costs.

use std::time::Duration;

use super::*;
use crate::backoff::presets;
use crate::clock::Clock;
use crate::history::{DeliveryMode, IdKind, PolicySource, Shard};
use crate::plan::Plan;
use crate::profile::{ProfileName, Spec};
use crate::scenario::{
    Checks, Connect, Outage, Output, Policy, Publish, Scenario, Server, Target, Trigger, Via,
};
use crate::transport::network::Network;

/// Ten clients of somebody else's server.
pub(crate) fn scenario(url: &str) -> Scenario {
    Scenario {
        name: "test".into(),
        clients: 10,
        seed: 1,
        shard: Shard::WHOLE,
        target: Target {
            server: Server::Remote,
            url: url.into(),
            more_urls: vec![],
            servers: 1,
            pick: Default::default(),
            ready: None,
            ready_limit: Duration::from_secs(5),
            watch_pid: None,
        },
        connect: Connect {
            profile: Spec::builtin(ProfileName::After),
            id: None,
            seq: None,
            ids: IdKind::Opaque,
            contiguous: false,
            headers: vec![],
            clients_file: None,
            subprotocols: vec![],
            credentials: None,
            tls: Default::default(),
            proxy: Default::default(),
            source_ips: vec![],
            ramp: Duration::ZERO,
            timeout: Some(Duration::from_secs(5)),
            max_message: 1 << 20,
        },
        policy: Policy {
            mix: presets::find(presets::DEFAULT).unwrap().mix(),
            source: PolicySource::Named,
        },
        heartbeat: None,
        reload: None,
        outages: vec![Outage {
            trigger: Trigger::Wait {
                limit: Duration::from_secs(1),
            },
            count: 1,
            down: Duration::ZERO,
            falls: 1,
            up: Duration::ZERO,
            share: 1.0,
            refresh: None,
            steady: Duration::ZERO,
            quiet_period: Duration::ZERO,
        }],
        publish: Publish {
            via: Via::Observe,
            rate: 1.0,
            body: String::new(),
            answer_id: "/id".into(),
            answer_position: None,
            idempotent: false,
        },
        checks: Checks {
            min_spread: Duration::ZERO,
            max_peak: 1.0,
            peak_window: Duration::from_secs(1),
            delivery: DeliveryMode::ExactlyOnce,
            max_resets: 0,
            settle: Duration::from_secs(1),
            reconnect_limit: None,
            max_recovery: None,
            max_staleness: None,
            dedupe: vec![],
        },
        output: Output {
            dir: None,
            formats: vec![],
        },
        implied: vec![],
    }
}

pub(crate) fn crew(scenario: &Scenario) -> Arc<Crew> {
    let plan = Plan::new(scenario, &[]).unwrap();
    let own = OwnNumbers {
        base: 0,
        span: 1000,
    };
    let network = Arc::new(Network::plain(Connect::USUAL_TIMEOUT));
    Arc::new(Crew::new(scenario, plan, network, Clock::start(), own))
}

#[tokio::test(start_paused = true)]
async fn an_idle_client_is_small() {
    let crew = crew(&scenario("ws://127.0.0.1:9/"));
    let handle = crew.handles()[0].clone();
    let task = size_of_val(&live(crew.clone(), handle, Elapsed::ZERO));
    assert!(task < 1_600, "a client's task takes {task} bytes");
    let handle = size_of::<Handle>();
    assert!(handle < 400, "a client's handle takes {handle} bytes");
}

#[tokio::test(start_paused = true)]
async fn a_client_stopped_before_its_first_dial_has_no_record() {
    let mut s = scenario("ws://127.0.0.1:9/");
    s.connect.ramp = Duration::from_secs(1_000);
    let crew = crew(&s);
    // The first ten are due now and would meet a socket.
    let late = crew.handles()[5].clone();
    let client = tokio::spawn(live(crew.clone(), late.clone(), Elapsed::ZERO));
    tokio::task::yield_now().await;
    crew.stop();
    client.await.unwrap();
    assert!(late.take().is_empty());
    assert_eq!(crew.counts().connecting, 10);
}
