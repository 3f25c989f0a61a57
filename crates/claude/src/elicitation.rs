//! What servers of tools want to know from the person.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::lenient;

/// A form that a server of tools wants filled in, or a page that it wants opened.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ElicitationRequest {
    /// The server.
    #[serde(rename = "mcp_server_name")]
    pub server_name: String,
    /// What the person is asked.
    pub message: String,
    /// `form` or `url`; a form unless given.
    pub mode: Option<String>,
    /// The fields of the form, as JSON Schema; `null` if there is none.
    pub requested_schema: Value,
    /// The page to open.
    pub url: Option<String>,
    /// By what name the server will say that the person is done with the page.
    pub elicitation_id: Option<String>,
    /// One line to show above.
    pub title: Option<String>,
    /// What people call the server, or its tool.
    pub display_name: Option<String>,
    /// A line to show below.
    pub description: Option<String>,
}

impl ElicitationRequest {
    /// Reads a request; `None` if it is none at all.
    pub(crate) fn parse(request: &Value) -> Option<Self> {
        lenient::from_value(request)
    }
}

/// What the person said.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ElicitationResult {
    /// The form is filled in, or the page was opened.
    Accept {
        /// The fields of the form; `null` for a page.
        content: Value,
    },
    /// The person does not want to.
    Decline,
    /// The person did not say.
    Cancel,
}

impl ElicitationResult {
    /// Returns a form that is filled in.
    pub fn accept(content: Value) -> Self {
        Self::Accept { content }
    }

    /// Returns the answer as the CLI reads it.
    pub(crate) fn into_json(self) -> Value {
        match self {
            Self::Accept { content: Value::Null } => json!({ "action": "accept" }),
            Self::Accept { content } => json!({ "action": "accept", "content": content }),
            Self::Decline => json!({ "action": "decline" }),
            Self::Cancel => json!({ "action": "cancel" }),
        }
    }
}

type Answer = Pin<Box<dyn Future<Output = ElicitationResult> + Send>>;

/// A function that answers what servers of tools want to know.
#[derive(Clone)]
pub struct ElicitationCallback(Arc<dyn Fn(ElicitationRequest) -> Answer + Send + Sync>);

impl ElicitationCallback {
    pub(crate) fn new<F, A>(answer: F) -> Self
    where
        F: Fn(ElicitationRequest) -> A + Send + Sync + 'static,
        A: Future<Output = ElicitationResult> + Send + 'static,
    {
        Self(Arc::new(move |request| Box::pin(answer(request))))
    }

    pub(crate) fn answer(&self, request: ElicitationRequest) -> Answer {
        (self.0)(request)
    }
}

impl fmt::Debug for ElicitationCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ElicitationCallback")
    }
}
