//! Sessions that are not running, through the SDK's own door.

use rethread_claude::sessions::Sessions;
use rethread_testkit::Prompt as Script;
use serde_json::json;

use crate::kit::{ask, connect, options, own_home};

#[tokio::test]
async fn a_session_is_listed_read_named_put_away_forked_and_deleted() {
    let Some(home) = own_home() else { return };
    let mut client = connect(options(&home)).await;
    let errand = Script::new("look").says("found").to_string();
    let input = json!({ "description": "d", "prompt": errand, "subagent_type": "general-purpose", "run_in_background": false });
    let heard = ask(&client, Script::new("First").calls("Agent", input).says("one")).await;
    let id = heard.session();
    client.close().await.unwrap();

    let sessions = Sessions::at(home.config());
    sessions.rename(id, "A name").unwrap();
    sessions.tag(id, Some("kept")).unwrap();
    sessions.archive(id).unwrap();
    let info = sessions.info(id).unwrap();
    assert_eq!(
        (info.name.as_deref(), info.tag.as_deref(), info.archived),
        (Some("A name"), Some("kept"), true)
    );
    sessions.unarchive(id).unwrap();
    assert!(!sessions.info(id).unwrap().archived);

    let messages = sessions.messages(id).unwrap();
    assert!(messages.len() >= 4, "{messages:?}");
    let subagents = sessions.subagents(id).unwrap();
    assert_eq!(subagents.len(), 1);
    assert!(!sessions.subagent_messages(id, &subagents[0].agent_id).unwrap().is_empty());

    let fork = sessions.fork(id, None, Some("Another way")).unwrap();
    let resumed = connect(options(&home).resume(&fork.session_id)).await;
    assert_eq!(ask(&resumed, Script::new("Second").says("two")).await.session(), fork.session_id);
    drop(resumed);

    let trash = home.path().join("trash");
    sessions.delete(id, &trash).unwrap();
    assert!(sessions.info(id).is_err());
    sessions.restore(id, &trash).unwrap();
    assert_eq!(sessions.messages(id).unwrap().len(), messages.len());
}
