//! Which URL goes through which proxy, and proxies that answer well and badly.

use tokio::net::TcpListener;

use super::*;

fn env<'a>(pairs: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
    |name| {
        let found = pairs.iter().find(|(n, _)| *n == name);
        found.map(|(_, value)| (*value).to_owned())
    }
}

fn of(pairs: &[(&str, &str)], url: &str) -> Option<String> {
    let proxies = Proxies::from_env(env(pairs)).unwrap();
    let url = Url::parse(url).unwrap();
    proxies.of(&url).map(Proxy::shown)
}

#[test]
fn the_variable_is_chosen_by_scheme_and_case() {
    let both = [("HTTPS_PROXY", "http://up:1"), ("https_proxy", "low:2")];
    assert_eq!(of(&both, "wss://h/").unwrap(), "low:2");
    assert_eq!(of(&both[..1], "https://h/").unwrap(), "up:1");
    assert_eq!(of(&both, "ws://h/"), None);
    let plain = [("HTTP_PROXY", "http://cgi:1")];
    assert_eq!(of(&plain, "http://h/"), None, "a request could have set it");
    let plain = [("http_proxy", "http://plain")];
    assert_eq!(of(&plain, "ws://h/").unwrap(), "plain:80");
    assert_eq!(of(&plain, "wss://h/"), None);
    let all = [("ALL_PROXY", "http://all:3"), ("https_proxy", "")];
    assert_eq!(of(&all, "wss://h/").unwrap(), "all:3");
    assert_eq!(of(&all, "ws://h/").unwrap(), "all:3");
}

#[test]
fn loopback_goes_through_none() {
    let all = [("all_proxy", "p:1")];
    for url in [
        "ws://127.0.0.1:1/",
        "ws://127.9.9.9/",
        "wss://[::1]/",
        "ws://[::ffff:127.0.0.1]/",
        "https://localhost/",
        "https://a.localhost./",
    ] {
        assert_eq!(of(&all, url), None, "{url}");
    }
    let through = Proxies::through("p:1", env(&[])).unwrap();
    assert!(
        through
            .of(&Url::parse("ws://localhost/").unwrap())
            .is_none()
    );
    assert!(through.of(&Url::parse("ws://10.0.0.1/").unwrap()).is_some());
}

#[test]
fn exceptions_are_names_suffixes_addresses_nets_and_all() {
    let direct = |list: &str, url: &str| {
        let pairs = [("all_proxy", "p:1"), ("no_proxy", list)];
        of(&pairs, url).is_none()
    };
    for (list, url) in [
        ("*", "ws://any/"),
        ("a.example, b.example", "ws://b.example/"),
        ("example.com", "ws://deep.in.EXAMPLE.com/"),
        (".example.com", "ws://example.com/"),
        ("*.example.com", "ws://a.example.com/"),
        ("example.com:8080", "ws://example.com:8080/"),
        ("example.com:443", "wss://example.com/"),
        ("10.1.2.3", "ws://10.1.2.3/"),
        ("10.0.0.0/8", "ws://10.255.0.1/"),
        ("[2001:db8::1]", "ws://[2001:db8::1]/"),
        ("2001:db8::/32", "ws://[2001:db8:1::]/"),
        ("0.0.0.0/0", "ws://8.8.8.8/"),
    ] {
        assert!(direct(list, url), "{list}: {url}");
    }
    for (list, url) in [
        ("", "ws://any/"),
        ("example.com", "ws://notexample.com/"),
        ("a.example.com", "ws://example.com/"),
        ("example.com:8080", "ws://example.com:81/"),
        ("10.0.0.0/8", "ws://11.0.0.1/"),
        ("10.0.0.0/8", "ws://[2001:db8::1]/"),
        ("10.0.0.0/33", "ws://10.0.0.1/"),
        (".", "ws://h/"),
    ] {
        assert!(!direct(list, url), "{list}: {url}");
    }
    let upper = [("all_proxy", "p:1"), ("NO_PROXY", "h")];
    assert_eq!(of(&upper, "ws://h/"), None);
}

#[test]
fn what_is_no_proxy_is_refused_without_its_password() {
    for value in [
        "socks5://u:hunter22@h:1",
        "https://u:hunter22@h",
        "http://u:hunter22@h:x",
    ] {
        let said = Proxies::from_env(env(&[("https_proxy", value)]))
            .unwrap_err()
            .to_string();
        assert!(
            said.contains("https_proxy") && said.contains("write http://"),
            "{said}"
        );
        assert!(!said.contains("hunter22"), "{said}");
    }
}

async fn tunnel(url: &str, answer: &'static str) -> (Result<TcpStream, AttemptOutcome>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let served = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_buf(&mut head).await.unwrap();
        }
        for byte in answer.as_bytes() {
            // A proxy that is refused hangs up.
            let _ = stream.write_all(&[*byte]).await;
        }
        String::from_utf8(head).unwrap()
    });
    let stream = TcpStream::connect(address).await.unwrap();
    let proxy = Proxy::parse("test", &format!("http://us%40er:p%3Aw@{address}")).unwrap();
    let tunnel = proxy.tunnel(stream, &Url::parse(url).unwrap()).await;
    (tunnel, served.await.unwrap())
}

#[tokio::test]
async fn a_tunnel_begins_right_behind_the_answer() {
    let answer = "HTTP/1.0 200 Connection established\r\nVia: x\r\n\r\nfirst";
    let (stream, asked) = tunnel("wss://[2001:db8::1]/secret?x", answer).await;
    let mut first = String::new();
    stream.unwrap().read_to_string(&mut first).await.unwrap();
    assert_eq!(first, "first");
    assert!(
        asked.starts_with("CONNECT [2001:db8::1]:443 HTTP/1.1\r\n"),
        "{asked}"
    );
    assert!(asked.contains("\r\nHost: [2001:db8::1]:443\r\n"), "{asked}");
    let login = basic("us@er:p:w");
    assert!(
        asked.contains(&format!("\r\nProxy-Authorization: {login}\r\n")),
        "{asked}"
    );
    assert!(!asked.contains("secret"), "{asked}");
}

#[tokio::test]
async fn a_refusal_names_the_proxy_and_its_status() {
    for (answer, word) in [
        (
            "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
            "407 to CONNECT; put a user",
        ),
        (
            "HTTP/1.1 502 Bad Gateway\r\n\r\n",
            "answered 502 Bad Gateway to CONNECT",
        ),
        ("SSH-2.0-x\r\n", "no HTTP proxy: SSH-2.0-x"),
        ("HTTP/1.1 200 x\r\n", "closed without an answer"),
        ("", "closed without an answer"),
    ] {
        let (refused, _) = tunnel("ws://h/", answer).await;
        match refused {
            Err(AttemptOutcome::Handshake { status: None, why }) => {
                assert!(why.starts_with("the proxy 127.0.0.1:"), "{why}");
                assert!(why.contains(word), "{answer:?}: {why}");
            }
            other => panic!("{other:?}"),
        }
    }
}
