//! Our active chain is what the real CLI sends to the API when it resumes.

use rethread_testkit::Fixture;
use rethread_transcripts::Transcript;

use crate::projection::{of_chain, of_request};

#[test]
fn the_active_chain_is_what_the_cli_resumes() {
    for fixture in Fixture::all() {
        let transcript = Transcript::open(fixture.transcript()).unwrap();
        let (ours, theirs) = (of_chain(&transcript, &transcript.active()), of_request(&fixture.sent));
        assert_eq!(ours, theirs, "{}", fixture.name);
        assert!(!ours.is_empty(), "{}", fixture.name);
    }
}
