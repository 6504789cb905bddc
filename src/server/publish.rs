//! `POST /v1/publish`: reads one event or a batch, has it stored, answers its ids. What is stored, and when it counts
//! as stored, is the log's business.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::App;
use super::log::Refused;
use super::problem::Problem;

/// The most events of one batch.
const BATCH: usize = 10_000;
/// The longest Idempotency-Key, bytes.
const KEY: usize = 255;

/// How a body is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// One event.
    One,
    /// One event a line.
    Lines,
}

pub(super) async fn publish(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<Value>, Problem> {
    let body = body.map_err(|e| Problem::new(e.status(), e.body_text()))?;
    let kind = kind(&headers)?;
    let key = key(&headers)?;
    let data = match kind {
        Kind::One => {
            vec![event(&body).map_err(|e| Problem::bad_request(format!("not JSON: {e}")))?]
        }
        Kind::Lines => lines(&body)?,
    };
    let ids = app.log.append(data, key).await.map_err(|e| {
        let status = match e {
            Refused::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            Refused::Store(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Refused::Closed => StatusCode::SERVICE_UNAVAILABLE,
        };
        Problem::new(status, e.to_string())
    })?;
    let mut ids = ids.iter().map(|id| id.to_string());
    Ok(Json(match kind {
        Kind::One => json!({ "id": ids.next() }),
        Kind::Lines => json!({ "ids": ids.collect::<Vec<_>>() }),
    }))
}

/// A request that doesn't say what it holds is taken for JSON.
fn kind(headers: &HeaderMap) -> Result<Kind, Problem> {
    let Some(value) = headers.get(CONTENT_TYPE) else {
        return Ok(Kind::One);
    };
    let essence = value.to_str().unwrap_or("").split(';').next().unwrap_or("");
    match essence.trim().to_ascii_lowercase().as_str() {
        "application/json" => Ok(Kind::One),
        "application/x-ndjson" => Ok(Kind::Lines),
        _ => Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "send application/json, or application/x-ndjson for a batch",
        )),
    }
}

fn key(headers: &HeaderMap) -> Result<Option<Box<str>>, Problem> {
    let mut keys = headers.get_all("idempotency-key").iter();
    let Some(key) = keys.next() else {
        return Ok(None);
    };
    match key.to_str() {
        Ok(key) if (1..=KEY).contains(&key.len()) && keys.next().is_none() => Ok(Some(key.into())),
        _ => Err(Problem::bad_request(format!(
            "Idempotency-Key must be one value of 1 to {KEY} visible ASCII characters"
        ))),
    }
}

/// The JSON as it was sent, digit for digit, without the white space around it.
fn event(bytes: &[u8]) -> Result<Box<str>, serde_json::Error> {
    let raw: &RawValue = serde_json::from_slice(bytes)?;
    Ok(raw.get().into())
}

fn lines(body: &[u8]) -> Result<Vec<Box<str>>, Problem> {
    let lines = body.split(|&byte| byte == b'\n').zip(1..);
    let events = lines
        .filter(|(line, _)| !line.trim_ascii().is_empty())
        .map(|(line, n)| {
            event(line).map_err(|e| Problem::bad_request(format!("line {n} is not JSON: {e}")))
        })
        .take(BATCH + 1)
        .collect::<Result<Vec<_>, _>>()?;
    match events.len() {
        0 => Err(Problem::bad_request(
            "the batch is empty; send one event a line",
        )),
        n if n > BATCH => Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the batch has over {BATCH} events; send it in parts"),
        )),
        _ => Ok(events),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_kept_digit_for_digit() {
        for text in ["9007199254740993", r#"{"a":1.0e+2, "b":"\u00e9"}"#, "null"] {
            assert_eq!(&*event(format!(" {text}\n").as_bytes()).unwrap(), text);
        }
        for text in ["", "{", "1 2", "nul", "\u{feff}1"] {
            assert!(event(text.as_bytes()).is_err(), "{text:?}");
        }
        assert!(event(b"\"\xff\"").is_err());
    }

    #[test]
    fn a_batch_is_read_by_line_and_refused_by_line() {
        let read = lines(b"{\"a\":1}\r\n\n[2]").unwrap();
        assert_eq!(
            read.iter().map(|e| &**e).collect::<Vec<_>>(),
            [r#"{"a":1}"#, "[2]"]
        );
        assert!(format!("{:?}", lines(b"1\n\n{\n").unwrap_err()).contains("line 3"));
        assert!(lines(b"\n \n").is_err());
        assert!(lines("1\n".repeat(BATCH).as_bytes()).is_ok());
        assert!(lines("1\n".repeat(BATCH + 1).as_bytes()).is_err());
    }
}
