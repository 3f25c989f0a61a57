//! How an agent is started for a session, and what it asks of us while it runs.

use std::sync::{Arc, Weak};
use std::time::Duration;

use rethread_claude::{
    ClaudeAgentOptions, ClaudeClient, HookEvent, HookInput, HookMatcher, HookOutput, PermissionMode,
    PermissionRequest, PermissionResult, PermissionUpdate,
};
use serde_json::Value;

use super::driver::Driver;
use super::process::Doubt;
use crate::attention::{Attention, Shown, Verdict};
use crate::keeper::Keeper;
use crate::settings::Agent;

/// How long a person may take. A request that nobody answers is denied after that, never allowed.
const PATIENCE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How long a capture may take before the tool is refused.
const CAPTURE: Duration = Duration::from_secs(10 * 60);

/// Whether the session is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    New,
    Resumed,
}

/// Starts an agent.
pub(super) async fn start(
    keeper: &Arc<Keeper>,
    driver: &Arc<Driver>,
    agent: &Agent,
    beginning: Beginning,
) -> rethread_claude::Result<ClaudeClient> {
    let begin = driver.begin();
    let (asked, before, after) =
        (Watcher::of(keeper, driver), Watcher::of(keeper, driver), Watcher::of(keeper, driver));
    let failed = after.clone();
    let mut options = ClaudeAgentOptions::builder()
        .cli_path(&agent.program)
        .cwd(&begin.cwd)
        .include_partial_messages(true)
        .replay_user_messages(true)
        .permission_timeout(PATIENCE)
        .envs(agent.environment.iter().map(|(name, value)| (name, value)))
        // For every tool: as long as it is there, the CLI runs none when nobody answers any more.
        .hook_matcher(
            HookEvent::PreToolUse,
            HookMatcher::new("", move |input| before.clone().before(input)).timeout(CAPTURE),
        )
        .hook_matcher(
            HookEvent::PostToolUse,
            HookMatcher::new("", move |input| after.clone().after(input)).timeout(CAPTURE),
        )
        .hook_matcher(
            HookEvent::PostToolUseFailure,
            HookMatcher::new("", move |input| failed.clone().after(input)).timeout(CAPTURE),
        );
    options = match beginning {
        Beginning::New => options.session_id(&begin.session),
        Beginning::Resumed => options.resume(&begin.session),
    };
    if let Some(name) = begin.name.as_ref().filter(|_| beginning == Beginning::New) {
        options = options.session_name(name);
    }
    let mode = begin.permission_mode.clone().map(PermissionMode::from);
    // An agent that asks nobody refuses to be given somebody to ask.
    if mode != Some(PermissionMode::BypassPermissions) {
        options = options.can_use_tool(move |request| asked.clone().decide(request));
    }
    if let Some(mode) = mode {
        options = options.permission_mode(mode);
    }
    if let Some(model) = &begin.model {
        options = options.model(model);
    }
    let mut client = ClaudeClient::new(options.build())?;
    client.connect().await?;
    Ok(client)
}

/// What callbacks of an agent hold: nothing that keeps it alive.
#[derive(Clone)]
struct Watcher {
    keeper: Weak<Keeper>,
    driver: Weak<Driver>,
}

impl Watcher {
    fn of(keeper: &Arc<Keeper>, driver: &Arc<Driver>) -> Self {
        Self { keeper: Arc::downgrade(keeper), driver: Arc::downgrade(driver) }
    }

    fn both(&self) -> Option<(Arc<Keeper>, Arc<Driver>)> {
        Some((self.keeper.upgrade()?, self.driver.upgrade()?))
    }

    /// Asks a person about a tool call.
    async fn decide(self, request: PermissionRequest) -> PermissionResult {
        let Some((keeper, driver)) = self.both() else {
            return PermissionResult::deny("the keeper is about to end");
        };
        let begin = driver.begin();
        let (tool, input, call) =
            (request.tool_name.clone(), request.input.clone(), request.tool_use_id.clone());
        let agent = request.agent_id.clone();
        // It does not run while a person thinks. Claude Code says no more of a call that is not allowed, and one that is
        // allowed is captured anew.
        driver.forget_call(&call);
        let shown = Shown {
            id: uuid::Uuid::new_v4().to_string(),
            session_id: begin.session.clone(),
            cwd: Some(begin.cwd.display().to_string()),
            tool_name: request.tool_name,
            input: request.input,
            description: request.description,
            agent_id: request.agent_id,
        };
        let suggested = request.permission_suggestions;
        let suggestions = suggested.iter().filter_map(|rule| serde_json::to_value(rule).ok()).collect();
        let attention = Attention::new(shown, call.clone(), driver.message(), suggestions);
        let (attention, decision) = match keeper.attention.request(attention) {
            Ok(requested) => requested,
            Err(error) => {
                tracing::error!(%error, "a request cannot be written down, and so nobody is asked");
                return PermissionResult::deny(format!("the keeper cannot write the request down: {error}"));
            }
        };
        let id = attention.shown.id.clone();
        // Whatever ends this function before a decision came ends the request.
        let withdrawal =
            Withdrawal { keeper: Arc::clone(&keeper), id: id.clone(), session: begin.session.clone() };
        keeper.hub.publish(&begin.session, "attention.requested", &attention);
        driver.refresh_state(&keeper);
        let verdict = decision.await;
        drop(withdrawal);
        driver.refresh_state(&keeper);
        match verdict {
            Ok(Verdict::Allow { .. }) if !driver.still_drives(&keeper, Doubt::IfLate).await => {
                PermissionResult::deny("somebody else drives this session by now")
            }
            Ok(Verdict::Allow { updated_input, for_session }) => {
                // What a person changed while they were thinking is what the tool will find.
                let what = updated_input.as_ref().unwrap_or(&input);
                driver.capture_before(agent.as_deref(), &tool, &call, what).await;
                let updated_permissions = match for_session {
                    true => for_the_session(&tool, suggested),
                    false => Vec::new(),
                };
                let mut result = PermissionResult::allow_and(updated_permissions);
                if let PermissionResult::Allow { updated_input: place, .. } = &mut result {
                    *place = updated_input;
                }
                result
            }
            Ok(Verdict::Deny { message }) => {
                PermissionResult::deny(message.unwrap_or_else(|| "The person denied this.".into()))
            }
            Err(_) => PermissionResult::deny("nobody decided"),
        }
    }

    async fn before(self, input: HookInput) -> HookOutput {
        let Some((keeper, driver)) = self.both() else {
            return HookOutput::deny("the keeper is about to end");
        };
        if !driver.still_drives(&keeper, Doubt::IfLate).await {
            return HookOutput::deny("somebody else drives this session by now");
        }
        let call = input.tool_use_id.clone().unwrap_or_default();
        driver.capture_before(input.agent_id.as_deref(), &input.tool_name, &call, &input.tool_input).await;
        HookOutput::proceed()
    }

    async fn after(self, input: HookInput) -> HookOutput {
        let Some((_, driver)) = self.both() else { return HookOutput::proceed() };
        let call = input.tool_use_id.unwrap_or_default();
        // A command or a subagent that only began answers at once, and goes on until its notification.
        let response = &input.tool_response;
        match response["backgroundTaskId"].is_string() || response["status"] == "async_launched" {
            true => driver.capture_during(&call).await,
            false => driver.capture_after(&call).await,
        }
        HookOutput::proceed()
    }
}

/// Returns rules that make the same question unnecessary, for this session only.
fn for_the_session(tool: &str, suggested: Vec<PermissionUpdate>) -> Vec<PermissionUpdate> {
    let narrowed = suggested.into_iter().filter_map(|rule| {
        let mut json = serde_json::to_value(&rule).ok()?;
        let allows = json["behavior"] == "allow" && json["type"] == "addRules";
        json["destination"] = Value::from("session");
        allows.then(|| serde_json::from_value(json).ok()).flatten()
    });
    let narrowed: Vec<PermissionUpdate> = narrowed.collect();
    match narrowed.is_empty() {
        true => vec![PermissionUpdate::allow_for_session(tool)],
        false => narrowed,
    }
}

/// Withdraws a request when it is dropped, unless it was decided.
struct Withdrawal {
    keeper: Arc<Keeper>,
    id: String,
    session: String,
}

impl Drop for Withdrawal {
    fn drop(&mut self) {
        if let Some(over) = self.keeper.attention.withdraw(&self.id) {
            self.keeper.hub.publish(&self.session, "attention.withdrawn", over.outcome());
        }
    }
}
