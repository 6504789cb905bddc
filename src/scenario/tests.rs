//! What a file comes to, and what is refused: each row is a rule.

mod outages;
mod profiles;

use std::collections::BTreeSet;
use std::path::Path;

use super::*;

fn load(toml: &str) -> Result<Scenario, String> {
    let draft = Draft::parse(Path::new("deploy.toml"), toml).map_err(|e| e.to_string())?;
    draft.resolve(7).map_err(|e| e.to_string())
}

fn loaded(toml: &str) -> Scenario {
    load(toml).unwrap()
}

fn refused(toml: &str) -> String {
    load(toml).unwrap_err()
}

/// Lays flags over a file's text.
fn with(toml: &str, flags: fn(&mut Draft)) -> Result<Scenario, String> {
    let mut draft = Draft::parse(Path::new("deploy.toml"), toml).map_err(|e| e.to_string())?;
    flags(&mut draft);
    draft.resolve(7).map_err(|e| e.to_string())
}

fn again(scenario: &Scenario) -> Scenario {
    Scenario {
        implied: Vec::new(),
        ..loaded(&scenario.to_toml())
    }
}

#[test]
fn the_defaults_are_those_of_the_contract() {
    let scenario = Draft::default().resolve(7).unwrap();
    insta::assert_snapshot!(scenario.to_toml(), @r#"
    name = "default"
    clients = 1000
    seed = 7
    shard = "1/1"

    [target]
    defects = []
    ready-limit = "30s"
    stop-signal = "KILL"
    grace = "10s"

    [connect]
    profile = "after"
    ids = "integer"
    contiguous = false
    headers = []
    subprotocols = []
    proxy = "env"
    source-ips = []
    ramp = "2s"
    max-message = 1048576

    [client.backoff]
    preset = "full-jitter"

    [outage]
    trigger = "child"
    outages = 1
    down = "1s"
    steady = "3s"
    quiet-period = "10s"

    [publish]
    headers = []
    rate = "20/s"
    body = "{payload}"
    answer-id = "/id"
    idempotent = true

    [checks]
    min-spread = "5s"
    max-peak = "0.75/1s"
    delivery = "exactly-once"
    max-resets = 0
    settle = "30s"

    [output]
    formats = ["json", "csv", "hdr"]
    "#);
    assert_eq!(
        scenario.target.url,
        "ws://127.0.0.1:{port}/v1/live?after={after}&client={client}"
    );
    let Via::Http { url, .. } = &scenario.publish.via else {
        panic!("herd publishes to its own server");
    };
    assert_eq!(url, "http://127.0.0.1:{port}/v1/publish");
    assert!(scenario.implied.is_empty());
}

#[test]
fn the_file_that_init_writes_loads_to_the_defaults() {
    let defaults = Draft::default().resolve(7).unwrap();
    let init = Scenario {
        name: "default".into(),
        ..loaded(INIT)
    };
    assert_eq!(init, defaults);
}

/// Keys as serde knows them: what an unknown key's refusal lists.
#[test]
fn the_file_that_init_writes_has_every_key() {
    let tables = [
        "",
        "target",
        "connect",
        "client.backoff",
        "outage",
        "publish",
        "checks",
        "output",
    ];
    for table in tables {
        let header = if table.is_empty() {
            String::new()
        } else {
            format!("[{table}]\n")
        };
        let said = refused(&format!("{header}no-such-key = 1"));
        let (_, expected) = said.split_once("expected ").unwrap();
        let known: BTreeSet<&str> = expected.split('`').skip(1).step_by(2).collect();
        assert!(known.len() > 1, "{said}");
        let start = format!("[{table}]");
        let part = INIT
            .lines()
            .skip_while(|line| !table.is_empty() && !line.starts_with(&start));
        let skipped = usize::from(!table.is_empty());
        let written: BTreeSet<&str> = part
            .skip(skipped)
            .take_while(|line| !line.starts_with('['))
            .filter_map(|line| line.trim_start_matches("# ").split_once(" = "))
            .map(|(key, _)| key)
            .collect();
        let missing: Vec<_> = known
            .iter()
            .filter(|key| {
                !tables.contains(*key)
                    && !written.contains(*key)
                    && !["profile", "client"].contains(*key)
            })
            .collect();
        assert!(missing.is_empty(), "[{table}] lacks {missing:?}");
    }
}

#[test]
fn a_resolved_scenario_renders_to_toml_that_loads_to_the_same() {
    let files = [
        "",
        "clients = \"10k\"\nseed = \"18446744073709551615\"\nshard = \"2/4\"\nname = \"a b\"\n[target]\nurl = \"ws://h\"",
        "[target]\ndefects = [\"lose-live=3\", \"lose-on-resume\"]\nkeep = 100\nready = \"http://127.0.0.1:{port}/healthz\"",
        "[target]\nurl = \"ws://h/live?token={env:T}\"",
        "[target]\nserver-cmd = '''./server \"{port}\" '\\n' '''\n[publish]\ncmd = \"kcat\"\nrate = \"0.3/s\"",
        "[target]\nserver-cmd = \"x\"\nstop-signal = \"KILL\"\n[publish]\nurl = \"http://h/\"\nheaders = [\"A: b\"]\nbody = \"\"\"{\n\"n\":{seq}}\"\"\"\nidempotent = true\nanswer-position = \"/at\"",
        "[target]\nurl = \"ws://h\"\n[outage]\ncommand = \"restart\"\ncommand-limit = \"3s\"\noutages = 5\n[client.backoff]\nreset = \"5s\"",
        "[target]\nurl = \"ws://h\"\n[outage]\nwait-limit = \"1h\"\nquiet-period = \"1500ms\"\n[checks]\ndelivery = \"agreement\"\nmax-recovery = \"1s\"\nreconnect-limit = \"90s\"\nmax-peak = \"33.3%/250ms\"",
        "[client.backoff]\npreset = \"exponential-25\"\nmax-attempts = \"unlimited\"\njitter = 0.1",
        "[client.backoff]\npreset = \"exponential\"\nbase = \"500ms\"\nfactor = 1.5\ncap = \"20s\"\nmax-attempts = 3",
        "[client.backoff]\npreset = \"fixed\"\ndelay = \"2s\"\njitter = \"10%\"",
        "[client.backoff]\npreset = \"immediate\"",
        "[client.backoff]\npreset = \"Socket.IO\"",
        "[client.backoff]\npreset = \"phoenix\"\nfirst = [\"0s\", \"1s..2s\"]\njitter = \"+300ms..3s\"\nreset = \"quiet 1m\"",
        "[client.backoff]\npreset = \"anycable\"\njitter = \"full\"\nslow = \"30s after 2m\"\nmax-elapsed = \"1h\"",
        "[client.backoff]\npreset = \"actioncable\"\nevery = \"3s..4s\"\nrules = []",
        "[client.backoff]\nkind = \"exponential\"\nbase = \"1s..5s\"\nfactor = 1.3\ncap = \"10s\"\nreset = \"ack\"",
        "[client.backoff]\nkind = \"fixed\"\ndelay = \"2s\"\ncounted = \"from-start\"\nrequests = 3\nretry = \"0s\"",
        "[client.backoff]\nkind = \"table\"\nfirst = [\"10ms\"]\nretry-after = true\nfallback-within = \"2s\"",
        "[client.backoff]\nkind = \"logarithmic\"\nrules = [\"close 4000: at once\", \"status 500-599: stop\"]",
        "[client.backoff]\nkind = \"poll\"\nconnect-timeout = \"1s x 1.2 up to 30s\"",
        "[client.backoff]\nmix = { phoenix = 0.7, \"socket.io\" = \"30%\" }",
        "[connect]\nheaders = [\"X: 1\"]\nbearer = \"{env:T}\"\nsubprotocols = [\"a\"]\ncacert = \"c\"\ncert = \"d\"\nproxy = \"none\"\nsource-ips = [\"127.0.0.2\", \"::1\"]\nseq = \"/n\"\nids = \"integer\"\ncontiguous = true\nmax-message = \"1k\"\n[output]\ndir = \"out\"\nformats = []",
    ];
    for file in files {
        let scenario = loaded(file);
        let said = Scenario {
            implied: Vec::new(),
            ..scenario.clone()
        };
        assert_eq!(again(&scenario), said, "{file}\n{}", scenario.to_toml());
    }
}

#[test]
fn what_is_stored_holds_no_literal_secret_and_still_loads() {
    let scenario = loaded(
        "[target]\nurl = \"ws://u:hush@h/?token=hush&k={env:K}&a={after}\"\nready = \"http://h/?hush\"\n\
         [connect]\nheaders = [\"Cookie: hush\"]\nuser = \"hush:{env:P}\"\nproxy = \"http://u:hush@p:1\"\n\
         [publish]\nurl = \"http://hush@h/\"\nheaders = [\"Authorization: Bearer hush\"]",
    );
    assert!(scenario.to_toml().contains("hush"));
    let stored = scenario.masked().to_toml();
    assert!(!stored.contains("hush"), "{stored}");
    assert!(stored.contains("{env:K}") && stored.contains("{after}"));
    assert!(load(&stored).is_ok(), "{:?}", load(&stored));
}

#[test]
fn shards_of_one_run_have_the_scenario_in_common() {
    let shard = |index| {
        loaded(&format!(
            "seed = 1\nshard = \"{index}/2\"\n[target]\nurl = \"ws://h\"\n[output]\ndir = \"o{index}\""
        ))
    };
    assert_ne!(shard(1), shard(2));
    assert_eq!(shard(1).common(), shard(2).common());
}

#[test]
fn a_target_of_the_users_has_other_defaults() {
    let theirs = loaded("[target]\nserver-cmd = \"./server {port}\"");
    assert_eq!(theirs.target.url, "ws://127.0.0.1:{port}/?after={after}");
    assert_eq!(theirs.connect.ids, IdKind::Opaque);
    assert_eq!(theirs.policy.source, PolicySource::Assumed);
    assert!(!theirs.publish.idempotent);
    assert_eq!(
        theirs.outage(1).trigger,
        Trigger::Child {
            signal: StopSignal::Term,
            grace: Duration::from_secs(10)
        }
    );
    let named = loaded("[target]\nserver-cmd = \"x\"\n[client.backoff]\npreset = \"full-jitter\"");
    assert_eq!(named.policy.source, PolicySource::Named);
}

#[test]
fn what_is_implied_is_said() {
    insta::assert_snapshot!(loaded("[target]\nurl = \"ws://h/live?key=hush\"").implied.join("\n"), @r#"
    target.url (deploy.toml:2) says nothing of {after}: clients resume with after=<cursor> in its query
    no --restart-cmd: herd waits for somebody to restart the server (--wait)
    no --publish-url and no --publish-cmd: herd observes what others publish (--observe)
    "#);
    insta::assert_snapshot!(loaded("[target]\nserver-cmd = \"./server\"").implied.join("\n"), @r#"
    no --target: clients connect to ws://127.0.0.1:{port}/?after={after} of the server that herd starts
    no --publish-url and no --publish-cmd: herd observes what others publish (--observe)
    "#);
    let said = "[target]\nurl = \"ws://h/{after}\"\n[outage]\ntrigger = \"wait\"\n[publish]\nobserve = true";
    assert_eq!(loaded(said).implied, Vec::<String>::new());
}

#[test]
fn every_refusal_names_line_and_key_and_what_would_be_right() {
    let files = [
        "clients = \n",
        "\nclients = 0",
        "clients = \"ten\"",
        "clients = 5000000000",
        "shard = \"5/4\"",
        "clients = 3\nshard = \"1/4\"",
        "seed = 1\nshard = \"1/2\"",
        "name = \"../x\"",
        "cliens = 5",
        "[targt]\nurl = \"ws://h\"",
        "[target]\nurl = 5",
        "[target]\nurl = \"\"",
        "[target]\nurl = \"wss://h\"\n[connect]\nprofile = \"sse\"",
        "[target]\nurl = \"http://h\"\n[connect]\nprofile = \"after\"",
        "[target]\nurl = \"ftp://h\"",
        "[target]\nurl = \"ws://h/?after={afer}\"",
        "[target]\nurl = \"ws://h:{port}/\"",
        "[target]\nurl = \"ws://h:99999/\"",
        "[target]\nurl = \"ws://h/#x\"",
        "[target]\nserver-cmd = \" \"",
        "[target]\nready = \"wss://h/\"",
        "[target]\nstop-signal = \"HUP\"",
        "[target]\ngrace = 10",
        "[target]\ndefects = [\"lose-lives\"]",
        "[target]\nurl = \"ws://h\"\nkeep = 5",
        "[target]\nkeep = 0",
        "[connect]\nid = \"id\"",
        "[connect]\nheaders = [\"Cookie\"]",
        "[connect]\ninsecure = true\ncacert = \"ca.pem\"",
        "[connect]\nkey = \"k.pem\"",
        "[connect]\nuser = \"hush:hush\"\nbearer = \"hush\"",
        "[connect]\nbearer = \"\"",
        "[connect]\nsubprotocols = [\"a,b\"]",
        "[connect]\nproxy = \"socks5://u:hush@h:1\"",
        "[connect]\nsource-ips = [\"localhost\"]",
        "[connect]\nids = \"opaque\"\ncontiguous = true",
        "[connect]\ntimeout = \"0s\"",
        "[connect]\nmax-message = 0",
        "[client.backoff]\npreset = \"ful-jitter\"",
        "[client.backoff]\npreset = \"zigzag\"",
        "[client.backoff]\npreset = \"fixed\"\nbase = \"1s\"",
        "[client.backoff]\npreset = \"exponential\"\njitter = 1.5",
        "[client.backoff]\nfactor = 0.5",
        "[client.backoff]\nfactor = nan",
        "[client.backoff]\nbase = \"2m\"",
        "[client.backoff]\nmax-attempts = 0",
        "[client.backoff]\nreset = \"close\"",
        "[client.backoff]\npreset = \"fixed\"\nkind = \"fixed\"",
        "[client.backoff]\nmix = { phoenix = 0.7, socketio = 0.2 }",
        "[client.backoff]\nmix = { phoenix = 0, socketio = 1.0 }",
        "[client.backoff]\nmix = {}",
        "[client.backoff]\nmix = { phoenix = 0.7, socketi = 0.3 }",
        "[client.backoff]\nmix = { socketio = 0.7, \"socket.io\" = 0.3 }",
        "[client.backoff]\nmix = { phoenix = 1.0 }\nbase = \"1s\"",
        "[client.backoff]\njitter = \"150%\"",
        "[client.backoff]\nrules = [\"close 4000: perhaps\"]",
        "[client.backoff]\nfirst = [\"5s..1s\"]",
        "[client.backoff]\nkind = \"poll\"\nfirst = [\"1s\"]",
        "[client.backoff]\nkind = \"poll\"\nbeat = \"100s\"\nbase = \"5s\"",
        "[client.backoff]\nslow = \"0s after 0s\"",
        "[client.backoff]\nrules = [\"status 700: stop\"]",
        "[client]\nbackoff = \"phoenix\"",
        "[client.backoff]\nkind = \"zigzag\"",
        "[client.backoff]\npreset = \"immediate\"\ndelay = \"0s\"",
        "[outage]\ntrigger = \"quake\"",
        "[outage]\ntrigger = \"wait\"",
        "[outage]\ncommand = \"restart\"",
        "[outage]\noutages = 0",
        "[outage]\ndown = \"-1s\"",
        "[target]\nserver-cmd = \"x\"\n[outage]\ncommand = \"restart\"",
        "[target]\nserver-cmd = \"x\"\n[outage]\ntrigger = \"wait\"",
        "[target]\nurl = \"ws://h\"\n[outage]\ntrigger = \"wait\"\ncommand = \"restart\"",
        "[target]\nurl = \"ws://h\"\n[outage]\ntrigger = \"child\"",
        "[target]\nurl = \"ws://h\"\n[outage]\ntrigger = \"command\"",
        "[target]\nurl = \"ws://h\"\n[outage]\ncommand = \"\"",
        "[publish]\nurl = \"http://h\"",
        "[target]\nurl = \"ws://h\"\n[publish]\nurl = \"http://h\"\ncmd = \"kcat\"",
        "[target]\nurl = \"ws://h\"\n[publish]\nurl = \"http://h\"\nobserve = true",
        "[target]\nurl = \"ws://h\"\n[publish]\nobserve = false",
        "[target]\nurl = \"ws://h\"\n[publish]\nurl = \"http://h/{after}\"",
        "[publish]\nrate = 20",
        "[publish]\nrate = \"0/s\"",
        "[publish]\nbody = \"hello\"",
        "[checks]\nmin-spread = \"5\"",
        "[checks]\nmax-peak = \"110%/1s\"",
        "[checks]\nmax-peak = \"0%\"",
        "[checks]\nmax-resets = -1",
        "[checks]\ndelivery = \"twice\"",
        "[checks]\ndelivery = \"agreement\"",
        "[checks]\nsettle = \"0s\"",
        "[output]\nformats = [\"pdf\"]",
    ];
    let said: Vec<String> = files.iter().map(|file| refused(file)).collect();
    insta::assert_snapshot!(said.join("\n"), @r#"
    deploy.toml:1: string values must be quoted, expected literal string
    deploy.toml:2: clients: 0 is out of range; use 1 to 10000000
    deploy.toml:1: clients: "ten" is not a count; write a whole number such as 1000, "1k" or "10m"
    deploy.toml:1: clients: 5000000000 is out of range; use 1 to 10000000
    deploy.toml:1: shard: "5/4" is not a shard; write i/N with i from 1 to N, such as "1/4"
    deploy.toml:2: shard: 3 clients can't fill 4 shards; use fewer shards or more clients
    deploy.toml:2: shard: each shard would start a server of its own; start one yourself and give all of them its --target
    deploy.toml:1: name: it becomes part of a directory's name; use letters, digits, '-', '_' and '.'
    deploy.toml:1: cliens: unknown field `cliens`, expected one of `name`, `clients`, `seed`, `shard`, `target`, `connect`, `profile`, `client`, `outage`, `publish`, `checks`, `output`
    deploy.toml:1: targt: unknown field `targt`, expected one of `name`, `clients`, `seed`, `shard`, `target`, `connect`, `profile`, `client`, `outage`, `publish`, `checks`, `output`
    deploy.toml:2: target.url: invalid type: integer `5`, expected a string
    deploy.toml:2: target.url: not an address; write ws://host:port/path
    deploy.toml:2: target.url: the profile sse speaks over an event stream; give the target's http:// address, or another profile (herd list profiles)
    deploy.toml:2: target.url: the profile after speaks over a WebSocket; give the target's ws:// address, or another profile (herd list profiles)
    deploy.toml:2: target.url: not an address; write ws://host:port/path
    deploy.toml:2: target.url: {afer} is no placeholder here; herd knows {after}, {cursor}, {client}, {n}, {port}, {env:NAME}, {file:PATH}, {col:NAME}
    deploy.toml:2: target.url: {port} is the port that herd picks for --server-cmd, and there is none; write the port itself
    deploy.toml:2: target.url: not an address (invalid port number); write scheme://host:port/path
    deploy.toml:2: target.url: a #fragment is never sent; leave it out
    deploy.toml:2: target.server-cmd: the command is empty; write one that sh -c can run
    deploy.toml:2: target.ready: not an address; write http://host:port/path
    deploy.toml:2: target.stop-signal: unknown variant `HUP`, expected `TERM` or `KILL`
    deploy.toml:2: target.grace: 10 has no unit; write a duration with its unit, such as "500ms", "5s" or "10m"
    deploy.toml:2: target.defects: unknown defect "lose-lives"; did you mean lose-live? herd list defects shows all
    deploy.toml:3: target.keep: contradicts target.url (deploy.toml:2): only herd's own server takes it; leave one out
    deploy.toml:2: target.keep: 0 would keep nothing to replay; use 1 or more
    deploy.toml:2: connect.id: not a JSON Pointer (RFC 6901); write for example "/id" or "/data/id"
    deploy.toml:2: connect.headers: not a header; write "Name: value"
    deploy.toml:2: connect.insecure: contradicts connect.cacert (deploy.toml:3): whoever believes everybody needs no authority; leave one out
    deploy.toml:2: connect.key: a key is no use without its certificate; add connect.cert (--cert)
    deploy.toml:2: connect.user: contradicts connect.bearer (deploy.toml:3): a client says once who it is; leave one out
    deploy.toml:2: connect.bearer: nothing that a header can hold; write the text itself, {env:NAME} or {file:PATH}
    deploy.toml:2: connect.subprotocols: not a subprotocol's name; write it without spaces and commas, one by one
    deploy.toml:2: connect.proxy: not a proxy; write http://HOST:PORT, "env" for the environment's or "none"
    deploy.toml:2: connect.source-ips: "localhost" is not an IP address; write for example "127.0.0.2"
    deploy.toml:3: connect.contiguous: only integers can be without holes; say ids = "integer", or leave it out
    deploy.toml:2: connect.timeout: no time at all is left; use more than 0s
    deploy.toml:2: connect.max-message: 0 is out of range; use 1 to 1073741824
    deploy.toml:2: client.backoff.preset: unknown preset "ful-jitter"; did you mean full-jitter? herd list presets shows all
    deploy.toml:2: client.backoff.preset: unknown preset "zigzag"; herd list presets shows all
    deploy.toml:3: client.backoff.base: the preset fixed has no such number; leave it out
    deploy.toml:3: client.backoff.jitter: "1.5" is no jitter; write none, full, equal, decorrelated, a share up to 100 % such as "25%" (+-), "-50%" or "+15%", a time such as "+-500ms" or "+300ms..3s", or "comb 50%", "compounding 20%", "doubled 50%" or "climbing 100ms"
    deploy.toml:2: client.backoff.factor: 0.5 would not back off; use 1 or more
    deploy.toml:2: client.backoff.factor: NaN would not back off; use 1 or more
    deploy.toml:2: client.backoff.base: the base, 2m, is longer than the cap, 1m; raise the cap
    deploy.toml:2: client.backoff.max-attempts: 0 is not a number of attempts; write 1 or more, or "unlimited"
    deploy.toml:2: client.backoff.reset: "close": write "open", "ack", a minimum uptime such as "5s", or "quiet 1m"
    deploy.toml:2: client.backoff.preset: a preset has its own form; leave kind out
    deploy.toml:2: client.backoff.mix: the shares add up to 0.9000; make them add up to 1
    deploy.toml:2: client.backoff.mix: phoenix has no share; leave it out or give it one above 0
    deploy.toml:2: client.backoff.mix: names no preset; write such as { phoenix = 0.7, socketio = 0.3 }
    deploy.toml:2: client.backoff.mix: unknown preset "socketi"; did you mean socketio or socket.io? herd list presets shows all
    deploy.toml:2: client.backoff.mix: socketio is named twice; add its shares up
    deploy.toml:2: client.backoff.mix: a mix is made of presets as they are; leave the other keys out
    deploy.toml:2: client.backoff.jitter: "150%" is no jitter; write none, full, equal, decorrelated, a share up to 100 % such as "25%" (+-), "-50%" or "+15%", a time such as "+-500ms" or "+300ms..3s", or "comb 50%", "compounding 20%", "doubled 50%" or "climbing 100ms"
    deploy.toml:2: client.backoff.rules: "perhaps" follows from nothing; write stop, retry, at once or "after 1s"
    deploy.toml:2: client.backoff.first: "5s..1s" ends before it begins; write the shorter time first
    deploy.toml:3: client.backoff.first: this kind has no such number; leave it out
    deploy.toml:3: client.backoff.beat: at least 100ms lie between two polls, and a beat is no longer than stale
    deploy.toml:2: client.backoff.slow: without a delay it would not be slow; write such as "30s after 2m"
    deploy.toml:2: client.backoff.rules: "status 700" is no end; write "no connection", "end of stream", "last word", "status 500-599", "close 4000", "close with reason 3500-3999" or "close says reconnect false"
    deploy.toml:2: client.backoff: invalid type: string "phoenix", expected the table client.backoff, such as preset = "phoenix" in it
    deploy.toml:2: client.backoff.kind: unknown variant `zigzag`, expected one of `exponential`, `fixed`, `table`, `logarithmic`, `poll`
    deploy.toml:3: client.backoff.delay: a delay behind the first ones is 1 ms to a year; for none at all use the preset immediate
    deploy.toml:2: outage.trigger: unknown variant `quake`, expected one of `child`, `command`, `wait`, `cut`, `rolling`
    deploy.toml:2: outage.trigger: herd restarts its own server itself; this is for somebody else's, so name it with --target
    deploy.toml:2: outage.command: herd restarts its own server itself; this is for somebody else's, so name it with --target
    deploy.toml:2: outage.outages: 0 is out of range; use 1 to 10000
    deploy.toml:2: outage.down: "-1s" is not a duration; write a duration with its unit, such as "500ms", "5s" or "10m"
    deploy.toml:4: outage.command: contradicts target.server-cmd (deploy.toml:2): herd restarts the server that it starts; leave one out
    deploy.toml:4: outage.trigger: contradicts target.server-cmd (deploy.toml:2): herd restarts the server that it starts; leave one out
    deploy.toml:5: outage.command: contradicts outage.trigger (deploy.toml:4): one restart has one cause; leave one out
    deploy.toml:4: outage.trigger: herd can only restart a server that it started; use --server-cmd, or "command" or "wait"
    deploy.toml:4: outage.trigger: no command is given; set outage.command (--restart-cmd)
    deploy.toml:4: outage.command: the command is empty; write one that sh -c can run
    deploy.toml:2: publish.url: herd publishes to its own server itself; this is for somebody else's, so name it with --target or --server-cmd
    deploy.toml:4: publish.url: contradicts publish.cmd (deploy.toml:5): events go one way; leave one out
    deploy.toml:5: publish.observe: contradicts publish.url (deploy.toml:4): herd either publishes or observes; leave one out
    deploy.toml:4: publish.observe: nothing else says how herd shall publish; add publish.url or publish.cmd
    deploy.toml:4: publish.url: {after} is no placeholder here; herd knows {port}, {env:NAME}, {file:PATH}
    deploy.toml:2: publish.rate: 20 is not a rate; write events a second, from 0.001 to a million, such as "20/s"
    deploy.toml:2: publish.rate: "0/s" is not a rate; write events a second, from 0.001 to a million, such as "20/s"
    deploy.toml:2: publish.body: without {seq}, or {payload} outside quotes, no event could be told from another; put one in
    deploy.toml:2: checks.min-spread: "5" is not a duration; write a duration with its unit, such as "500ms", "5s" or "10m"
    deploy.toml:2: checks.max-peak: "110%/1s": not a share; write a share above 0 and its window, such as "75%/1s"
    deploy.toml:2: checks.max-peak: "0%": no attempt at all could pass; write a share above 0 and its window, such as "75%/1s"
    deploy.toml:2: checks.max-resets: -1 is not a count; write a whole number such as 1000, "1k" or "10m"
    deploy.toml:2: checks.delivery: unknown variant `twice`, expected one of `exactly-once`, `at-least-once`, `at-most-once`, `agreement`
    deploy.toml:2: checks.delivery: agreement is for events that others publish (--observe), and herd publishes here; use exactly-once
    deploy.toml:2: checks.settle: no time at all is left; use more than 0s
    deploy.toml:2: output.formats: unknown variant `pdf`, expected one of `json`, `csv`, `hdr`
    "#);
}

#[test]
fn a_flag_is_named_where_it_contradicts() {
    let wait = |draft: &mut Draft| {
        lay(
            &mut draft.outage.all[0].trigger,
            "--wait",
            Some(crate::history::TriggerKind::Wait),
        );
    };
    let observe = |draft: &mut Draft| lay(&mut draft.publish.observe, "--observe", Some(true));
    let command = |draft: &mut Draft| {
        lay(
            &mut draft.outage.all[0].command,
            "--restart-cmd",
            Some("r".to_owned()),
        );
    };
    let said = [
        with("", wait),
        with("[target]\nserver-cmd = \"x\"", wait),
        with(
            "[target]\nurl = \"ws://h\"\n[outage]\ncommand = \"r\"",
            wait,
        ),
        with("[target]\nserver-cmd = \"x\"", command),
        with(
            "[target]\nurl = \"ws://h\"\n[publish]\nurl = \"http://h\"",
            observe,
        ),
    ]
    .map(|result| result.unwrap_err());
    insta::assert_snapshot!(said.join("\n"), @r#"
    --wait: herd restarts its own server itself; this is for somebody else's, so name it with --target
    --wait: contradicts target.server-cmd (deploy.toml:2): herd restarts the server that it starts; leave one out
    deploy.toml:4: outage.command: contradicts --wait: one restart has one cause; leave one out
    --restart-cmd: contradicts target.server-cmd (deploy.toml:2): herd restarts the server that it starts; leave one out
    --observe: contradicts publish.url (deploy.toml:4): herd either publishes or observes; leave one out
    "#);
}

#[test]
fn a_flag_without_effect_is_refused_and_a_key_is_not() {
    let down = |draft: &mut Draft| {
        lay(
            &mut draft.outage.all[0].down,
            "--down",
            Some(Time(Duration::from_secs(2))),
        );
    };
    let remote = "[target]\nurl = \"ws://h\"\n";
    let said = with(remote, down).unwrap_err();
    assert_eq!(
        said,
        "--down: herd doesn't stop this server, it isn't herd's child; leave it out"
    );
    assert_eq!(
        with("", down).unwrap().outage(1).down,
        Duration::from_secs(2)
    );
    assert!(load(&format!("{remote}grace = \"3s\"\n[outage]\ndown = \"2s\"")).is_ok());

    // Flags lie over every outage: one that has a use for them is enough.
    const THREE: Option<Time> = Some(Time(Duration::from_secs(3)));
    let pause = |draft: &mut Draft| draft.outage.lay("--pause", THREE, |o| &mut o.pause);
    let up = |draft: &mut Draft| draft.outage.lay("--up", THREE, |o| &mut o.up);
    let limit = |draft: &mut Draft| {
        draft
            .outage
            .lay("--wait-limit", THREE, |o| &mut o.wait_limit)
    };
    let grace = |draft: &mut Draft| lay(&mut draft.target.grace, "--grace", THREE);
    let pick = |draft: &mut Draft| lay(&mut draft.target.pick, "--pick", Some(Pick::Sticky));
    let stop = "stop-signal = \"TERM\"\n";
    let said = [
        with("", pause),
        with("", up),
        with("", limit),
        with("[outage]\ncut = \"rst\"", grace),
        with("", pick),
    ];
    insta::assert_snapshot!(said.map(Result::unwrap_err).join("\n"), @"
    --pause: nothing is restarted one after another here (--rolling does); leave it out
    --up: nothing falls more than once here (--falls); leave it out
    --wait-limit: herd doesn't wait for somebody else's restart here; leave it out
    --grace: herd doesn't stop this server, it isn't herd's child; leave it out
    --pick: there is only one target to go to; leave it out
    ");
    let two = format!("[target]\nservers = 2\n{stop}[[outage]]\ncut = \"rst\"\n[[outage]]\n");
    for (rest, flags) in [
        ("trigger = \"rolling\"", pause as fn(&mut Draft)),
        ("falls = 2", up),
        ("", grace),
        ("", pick),
    ] {
        with(&format!("{two}{rest}"), flags).unwrap();
    }
}
