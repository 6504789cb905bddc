//! Every wrong command line, and what is said of it.

use super::refused;

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Each of them a rule of `scenario/resolve.rs`, or clap's own refusal; nothing is started.
#[test]
fn usage_errors_end_in_2_and_say_what_would_be_right() {
    let target = "--target=ws://h/";
    let cases: &[&[&str]] = &[
        &["run", "--wiat"],
        &["run", "--clients", "0"],
        &["run", "-c", "many"],
        &["run", "--shard", "3/2"],
        &["run", "-c", "2", "--shard", "1/3"],
        &["run", "--backoff", "ful-jitter"],
        &["run", "--profile", "socketoi"],
        &["run", "--delivery", "twice"],
        &["run", "--format", "pdf"],
        &["run", "--rate", "0/s"],
        &["run", "--rate", "20"],
        &["run", "--down", "1"],
        &["run", "--down=-1s"],
        &["run", "--max-peak", "0%/1s"],
        &["run", "--max-peak", "150%"],
        &["run", "--stop-signal", "HUP"],
        &["run", "--defect", "lose-livee"],
        &["run", "--source-ip", "localhost"],
        &["run", "-H", "nonsense"],
        &["run", "--id", "id"],
        &["run", "--server-cmd", ""],
        &["run", "--server-cmd=x", "--restart-cmd=y"],
        &["run", "--server-cmd=x", "--wait"],
        &["run", target, "--restart-cmd=y", "--wait"],
        &["run", "--wait"],
        &["run", "--restart-cmd=y"],
        &["run", target, "--observe", "--publish-url=http://h/"],
        &["run", target, "--observe", "--publish-cmd=x"],
        &["run", target, "--observe", "--publish-body={seq}"],
        &["run", target, "--publish-url=http://h/", "--publish-cmd=x"],
        &["run", "--publish-url=http://h/"],
        &["run", target, "--defect=lose-live"],
        &["run", target, "--down=1s"],
        &["run", target, "--stop-signal=TERM"],
        &["run", "--wait-limit=1m"],
        &["run", "--delivery=agreement"],
        &["run", "--target=ftp://h/"],
        &["run", "--target=h:80"],
        &["run", "--target=ws://h/{afer}"],
        &["run", "--target=ws://h:{port}/"],
        &["run", target, "--publish-url=ftp://h/"],
        &["run", "no/such.toml"],
        &["check"],
        &["report", "x.herd", "--format", "csv"],
        &["list", "colours"],
        &["proof"],
        &["serve", "--listen", "here"],
        &["serve", "--defect", "lose-live=0"],
    ];
    let said: Vec<String> = cases
        .iter()
        .map(|args| format!("{}\n    {}", args.join(" "), first_line(&refused(args))))
        .collect();
    insta::assert_snapshot!(said.join("\n"), @r#"
    run --wiat
        unexpected argument '--wiat' found
    run --clients 0
        --clients: 0 is out of range; use 1 to 10000000
    run -c many
        invalid value 'many' for '--clients <COUNT>': "many" is not a count; write a whole number such as 1000, "1k" or "10m"
    run --shard 3/2
        invalid value '3/2' for '--shard <i/N>': "3/2" is not a shard; write i/N with i from 1 to N, such as "1/4"
    run -c 2 --shard 1/3
        --shard: 2 clients can't fill 3 shards; use fewer shards or more clients
    run --backoff ful-jitter
        --backoff: unknown preset "ful-jitter"; did you mean full-jitter? herd list presets shows all
    run --profile socketoi
        invalid value 'socketoi' for '--profile <NAME>'
    run --delivery twice
        invalid value 'twice' for '--delivery <MODE>'
    run --format pdf
        invalid value 'pdf' for '--format <LIST>'
    run --rate 0/s
        invalid value '0/s' for '--rate <RATE>': "0/s" is not a rate; write events a second, from 0.001 to a million, such as "20/s"
    run --rate 20
        invalid value '20' for '--rate <RATE>': "20" is not a rate; write events a second, from 0.001 to a million, such as "20/s"
    run --down 1
        invalid value '1' for '--down <DURATION>': "1" is not a duration; write a duration with its unit, such as "500ms", "5s" or "10m"
    run --down=-1s
        invalid value '-1s' for '--down <DURATION>': "-1s" is not a duration; write a duration with its unit, such as "500ms", "5s" or "10m"
    run --max-peak 0%/1s
        invalid value '0%/1s' for '--max-peak <SHARE/WINDOW>': "0%/1s": no attempt at all could pass; write a share above 0 and its window, such as "75%/1s"
    run --max-peak 150%
        invalid value '150%' for '--max-peak <SHARE/WINDOW>': "150%": not a share; write a share above 0 and its window, such as "75%/1s"
    run --stop-signal HUP
        invalid value 'HUP' for '--stop-signal <SIGNAL>'
    run --defect lose-livee
        --defect: unknown defect "lose-livee"; did you mean lose-live? herd list defects shows all
    run --source-ip localhost
        invalid value 'localhost' for '--source-ip <IP>': "localhost" is not an IP address; write for example "127.0.0.2"
    run -H nonsense
        --header: not a header; write "Name: value"
    run --id id
        --id: not a JSON Pointer (RFC 6901); write for example "/id" or "/data/id"
    run --server-cmd 
        --server-cmd: the command is empty; write one that sh -c can run
    run --server-cmd=x --restart-cmd=y
        --restart-cmd: contradicts --server-cmd: herd restarts the server that it starts; leave one out
    run --server-cmd=x --wait
        --wait: contradicts --server-cmd: herd restarts the server that it starts; leave one out
    run --target=ws://h/ --restart-cmd=y --wait
        --restart-cmd: contradicts --wait: one restart has one cause; leave one out
    run --wait
        --wait: herd restarts its own server itself; this is for somebody else's, so name it with --target
    run --restart-cmd=y
        --restart-cmd: herd restarts its own server itself; this is for somebody else's, so name it with --target
    run --target=ws://h/ --observe --publish-url=http://h/
        --observe: contradicts --publish-url: herd either publishes or observes; leave one out
    run --target=ws://h/ --observe --publish-cmd=x
        --observe: contradicts --publish-cmd: herd either publishes or observes; leave one out
    run --target=ws://h/ --observe --publish-body={seq}
        --publish-body: herd publishes nothing here, it observes what others publish; leave it out
    run --target=ws://h/ --publish-url=http://h/ --publish-cmd=x
        --publish-url: contradicts --publish-cmd: events go one way; leave one out
    run --publish-url=http://h/
        --publish-url: herd publishes to its own server itself; this is for somebody else's, so name it with --target or --server-cmd
    run --target=ws://h/ --defect=lose-live
        --defect: contradicts --target: only herd's own server takes it; leave one out
    run --target=ws://h/ --down=1s
        --down: herd doesn't stop this server, it isn't herd's child; leave it out
    run --target=ws://h/ --stop-signal=TERM
        --stop-signal: herd doesn't stop this server, it isn't herd's child; leave it out
    run --wait-limit=1m
        --wait-limit: herd doesn't wait for somebody else's restart here; leave it out
    run --delivery=agreement
        --delivery: agreement is for events that others publish (--observe), and herd publishes here; use exactly-once
    run --target=ftp://h/
        --target: not an address; write ws://host:port/path
    run --target=h:80
        --target: not an address; write ws://host:port/path
    run --target=ws://h/{afer}
        --target: {afer} is no placeholder here; herd knows {after}, {cursor}, {client}, {n}, {port}, {env:NAME}, {file:PATH}, {col:NAME}
    run --target=ws://h:{port}/
        --target: {port} is the port that herd picks for --server-cmd, and there is none; write the port itself
    run --target=ws://h/ --publish-url=ftp://h/
        --publish-url: not an address; write http://host:port/path
    run no/such.toml
        can't read the scenario no/such.toml: No such file or directory (os error 2); herd init writes one to start from
    check
        the following required arguments were not provided:
    report x.herd --format csv
        only --format json goes to stdout; say with -o DIR where the files go
    list colours
        invalid value 'colours' for '<WHAT>'
    proof
        unrecognized subcommand 'proof'
    serve --listen here
        invalid value 'here' for '--listen <ADDR>': invalid socket address syntax
    serve --defect lose-live=0
        invalid value 'lose-live=0' for '--defect <NAME[=ARG]>': lose-live="0" is not a whole number from 1; give one in so many (subscriber, event) pairs, such as 100
    "#);
}

/// Whichever command reads histories: a file of an older or a newer herd, and one that only begins like a history.
#[test]
fn a_history_of_another_format_is_refused_with_both_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("old.herd");
    let name = file.to_str().unwrap();
    for number in ["1", "2", "3", "5", "12"] {
        std::fs::write(&file, format!("herd-history/{number}\nand what it wrote")).unwrap();
        let said = [
            refused(&["check", name]),
            refused(&["report", name, "--format", "json"]),
        ];
        let wanted = format!(
            "{name}: a history of format {number}, and this herd reads format 4; judge it with the herd that wrote it"
        );
        assert_eq!(
            said.map(|said| first_line(&said).to_owned()),
            [&*wanted, &*wanted]
        );
    }
    for strange in [
        "herd-history/\n",
        "herd-history/4",
        "herd-history/4x\n",
        "herd-history/999999999999\n",
    ] {
        std::fs::write(&file, strange).unwrap();
        let said = refused(&["check", name]);
        assert!(said.contains("not a herd history"), "{strange:?}: {said}");
    }
}
