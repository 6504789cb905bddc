//! Errors as RFC 9457 problems. Which one is right is the endpoints' knowledge.

use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, UPGRADE};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// An error as the server answers it.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    detail: String,
    header: Option<(HeaderName, HeaderValue)>,
}

impl Problem {
    /// A problem with nothing but its status and what went wrong.
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            status,
            detail: detail.into(),
            header: None,
        }
    }

    /// The request was wrong.
    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// The server can't serve it now.
    pub(crate) fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    }

    /// The server can't serve it yet; it may come again after so many seconds.
    pub(crate) fn starting(seconds: u64) -> Self {
        Self {
            header: Some((RETRY_AFTER, HeaderValue::from(seconds))),
            ..Self::unavailable("the server is starting; come back later")
        }
    }

    /// There is nothing at this path.
    pub(crate) fn not_found() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "nothing is here; there are /v1/live, /v1/events, /v1/resume, /v1/publish, /v1/state and /healthz",
        )
    }

    /// The path has other methods; which ones the `allow` header says.
    pub(crate) fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "this path has other methods; see the allow header",
        )
    }

    /// The path speaks WebSocket only.
    pub(crate) fn upgrade_required(detail: impl Into<String>) -> Self {
        Self {
            header: Some((UPGRADE, HeaderValue::from_static("websocket"))),
            ..Self::new(StatusCode::UPGRADE_REQUIRED, detail)
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = json!({
            "type": "about:blank",
            "title": self.status.canonical_reason().unwrap_or("Error"),
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        let kind = HeaderValue::from_static("application/problem+json");
        let mut response = (self.status, [(CONTENT_TYPE, kind)], body.to_string()).into_response();
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(name, value);
        }
        response
    }
}
