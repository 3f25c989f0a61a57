//! What goes into a store and comes out of it again as a session of Claude Code's own, the real CLI resumes.

#![expect(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

#[path = "../../transcripts/tests/projection.rs"]
mod projection;

use rethread_testkit::{Fixture, Home as RealHome, PROBE, two_at_a_time};
use rethread_transcripts::Transcript;

use crate::kit::{Home, cannot};
use projection::{of_chain, of_request};

#[test]
fn the_real_cli_resumes_every_scenario_that_was_imported_and_exported_again() {
    let fixtures = Fixture::all();
    two_at_a_time(fixtures, |fixture| {
        let home = Home::new();
        let from = fixture.config.to_str().unwrap();
        let imported = home.run(&["--claude-dir", from, "import", "--claude"]);
        assert_eq!(imported.code, 0, "{}: {}", fixture.name, imported.err);
        // To another home of Claude Code's, where nobody knows the session.
        let other = RealHome::new().unwrap();
        let (to, stored) = (other.config(), format!("stored:{}", fixture.session));
        let said = home.run(&["--claude-dir", to.to_str().unwrap(), "export", &stored, "--claude"]);
        assert_eq!(said.code, 0, "{}: {}", fixture.name, said.err);
        let exported = Transcript::open(other.transcript(&fixture.session)).unwrap();
        let ours = of_chain(&exported, &exported.active());
        let resumed = other.claude().bypassing().inside(&fixture.directory());
        let sent = of_request(&resumed.messages_on_resume(&fixture.session, PROBE));
        assert_eq!(sent, of_request(&fixture.sent), "{}", fixture.name);
        assert_eq!(sent, ours, "{}", fixture.name);
    });
}

#[test]
fn the_real_cli_resumes_a_session_that_was_never_its_own() {
    let Some(other) = RealHome::new() else { return cannot("Claude Code cannot be installed") };
    let home = Home::new();
    let id = "77777777-7777-4777-8777-777777777777";
    let cwd = other.project();
    home.answer(&["new", "--id", id, "--cwd", cwd.to_str().unwrap()]);
    let entries = "{\"uuid\":\"m1\",\"role\":\"user\",\"content\":\"Remember the number 4711\"}\n\
        {\"uuid\":\"m2\",\"role\":\"assistant\",\"content\":\"I shall.\",\"tool_calls\":[{\"id\":\"c1\",\"name\":\"Read\",\"input\":{\"file_path\":\"x\"}}]}\n\
        {\"uuid\":\"m3\",\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"the file\"}\n\
        {\"uuid\":\"m4\",\"role\":\"assistant\",\"content\":\"Read.\"}\n";
    home.feed(&["append", id], entries);
    let config = other.config();
    let said = home.run(&["--claude-dir", config.to_str().unwrap(), "resume", id, "--print"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let sent = serde_json::to_string(&other.claude().messages_on_resume(id, PROBE)).unwrap();
    for part in ["Remember the number 4711", "I shall.", "\"id\":\"c1\"", "the file", "Read."] {
        assert!(sent.contains(part), "{part} was not sent: {sent}");
    }
}
