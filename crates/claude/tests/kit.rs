//! What the tests share.

use std::sync::LazyLock;

use rethread_claude::{
    ClaudeAgentOptions, ClaudeAgentOptionsBuilder, ClaudeClient, Message, ResponseStream, ResultMessage,
    SystemMessage,
};
use rethread_testkit::Home;

/// Returns a home that tests share: each session in it is its own. `None` where the CLI cannot be had.
pub(crate) fn home() -> Option<&'static Home> {
    static HOME: LazyLock<Option<Home>> = LazyLock::new(Home::new);
    if HOME.is_none() {
        rethread_testkit::cannot("Claude Code cannot be installed");
    }
    HOME.as_ref()
}

/// Returns a home of the test's own.
pub(crate) fn own_home() -> Option<Home> {
    home().and_then(|_| Home::new())
}

/// Begins options that run the real CLI in a home, offline.
pub(crate) fn options(home: &Home) -> ClaudeAgentOptionsBuilder {
    let program = &home.program().path;
    let options = ClaudeAgentOptions::builder().cli_path(program).cwd(home.project());
    options.clear_environment(true).envs(home.environment())
}

/// Returns a client that is connected.
pub(crate) async fn connect(options: ClaudeAgentOptionsBuilder) -> ClaudeClient {
    let mut client = ClaudeClient::new(options.build()).unwrap();
    client.connect().await.unwrap();
    client
}

/// Returns a client whose servers of tools have answered, or failed to: the CLI does not wait for them.
pub(crate) async fn connect_with_servers(options: ClaudeAgentOptionsBuilder) -> ClaudeClient {
    let client = connect(options).await;
    for _ in 0..6000 {
        if !client.mcp_status().await.unwrap().to_string().contains(r#""status":"pending""#) {
            return client;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("a server neither answers nor fails");
}

/// What was said in answer to a prompt.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) messages: Vec<Message>,
}

impl Heard {
    /// Reads an answer to its end.
    pub(crate) async fn all(mut stream: ResponseStream) -> Self {
        let mut messages = Vec::new();
        while let Some(message) = stream.next_message().await {
            messages.push(message.unwrap());
        }
        Self { messages }
    }

    /// Returns the result it ended with.
    pub(crate) fn result(&self) -> &ResultMessage {
        match self.messages.last() {
            Some(Message::Result(result)) => result,
            other => panic!("it ended with {other:?}"),
        }
    }

    /// Returns the last text, of a turn that went well.
    pub(crate) fn text(&self) -> &str {
        match self.result() {
            ResultMessage::Success { result, is_error: false, .. } => result,
            other => panic!("it ended with {other:?}"),
        }
    }

    /// Returns the session's id.
    pub(crate) fn session(&self) -> &str {
        let found = self.messages.iter().find_map(|message| match message {
            Message::System(SystemMessage::Init { session_id, .. }) => Some(session_id.as_str()),
            _ => None,
        });
        found.unwrap_or_else(|| panic!("no session in {:?}", self.messages))
    }

    /// Returns the answers of tools, as text.
    pub(crate) fn tool_results(&self) -> String {
        let users = self.messages.iter().filter_map(|message| match message {
            Message::User(message) => Some(format!("{:?}", message.message.content)),
            _ => None,
        });
        users.collect::<Vec<_>>().join("\n")
    }
}

/// Asks one thing and reads the answer.
pub(crate) async fn ask(client: &ClaudeClient, prompt: impl std::fmt::Display) -> Heard {
    Heard::all(client.send_message(prompt.to_string()).await.unwrap()).await
}
