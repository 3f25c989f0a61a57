//! Claude Code's transcripts, as anybody may have left them.
//!
//! Not part of the library here: `fuzz_targets/` and `crates/transcripts/tests/replay.rs` take it in by its path, so
//! that the store's tests need not build the reader of transcripts.

#![expect(clippy::expect_used, reason = "a target that cannot go on has found something")]

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

use rethread_transcripts::{Chain, ClaudeFolder, Entry, History, Line, ListOptions, Span, Transcript};
use serde::de::IgnoredAny;

/// A folder like Claude Code's with one session in it.
struct Folder {
    folder: tempfile::TempDir,
    path: PathBuf,
}

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
        let project = folder.path().join("projects/-p");
        fs::create_dir_all(&project).expect("a folder");
        let path = project.join("00000000-0000-4000-8000-000000000000.jsonl");
        Self { folder, path }
    }

    fn write(&self, bytes: &[u8]) {
        fs::write(&self.path, bytes).expect("a file");
    }
}

/// Reads bytes that may be anything.
pub(crate) fn transcript(data: &[u8]) {
    let folder = Folder::new();
    folder.write(data);
    let whole = check(&folder, data);
    // The same bytes, met in two parts, are the same.
    let cut = data.first().map_or(0, |first| usize::from(*first) * data.len() / 256);
    folder.write(&data[..cut]);
    let index = folder.folder.path().join("index");
    drop(History::open(&folder.path, Some(&index)).expect("a history"));
    let mut grown = Transcript::open(&folder.path).expect("a transcript");
    folder.write(data);
    grown.refresh().expect("a transcript");
    assert_eq!((grown.all(), grown.active()), (whole.all(), whole.active()));
    assert_eq!(grown.faults(), whole.faults());
    let history = History::open(&folder.path, Some(&index)).expect("a history");
    assert_eq!(history.count(), whole.active().message_count());
    let listing = ClaudeFolder::new(folder.folder.path()).list(&ListOptions::default()).expect("a listing");
    assert_eq!(listing.sessions.len(), 1, "a session is never left out");
}

/// Reads a conversation whose entries follow each other in any way: four bytes an entry.
pub(crate) fn transcript_chain(data: &[u8]) {
    let mut lines = String::new();
    for entry in data.chunks_exact(4).take(200) {
        let kind = ["user", "assistant", "attachment", "system", "progress", "last-prompt"]
            [usize::from(entry[0] % 6)];
        let parent = if entry[2] % 8 == 0 { "null".into() } else { format!("\"u{}\"", entry[2] % 32) };
        let (uuid, group, sidechain) = (entry[1] % 32, entry[3] % 4, entry[3] >= 240);
        let content =
            if entry[3] & 8 == 0 { "\"x\"" } else { "[{\"type\":\"tool_result\",\"tool_use_id\":\"t\"}]" };
        let boundary = if kind == "system" && entry[3] & 16 != 0 {
            let kept = format!("\"u{}\",\"u{}\"", entry[0] % 32, entry[2] % 32);
            format!(
                ",\"subtype\":\"compact_boundary\",\"compactMetadata\":{{\"preservedMessages\":{{\"anchorUuid\":\"u{}\",\"uuids\":[{kept}]}}}}",
                entry[3] % 32
            )
        } else {
            String::new()
        };
        lines += &format!(
            "{{\"parentUuid\":{parent},\"type\":\"{kind}\",\"uuid\":\"u{uuid}\",\"leafUuid\":\"u{uuid}\",\"isSidechain\":{sidechain},\
            \"message\":{{\"id\":\"m{group}\",\"content\":{content}}}{boundary}}}\n"
        );
    }
    let folder = Folder::new();
    folder.write(lines.as_bytes());
    check(&folder, lines.as_bytes());
}

/// Reads one line both ways: at once, as it is when somebody follows it, and with serde for each question.
pub(crate) fn transcript_line(data: &[u8]) {
    let span = Span { offset: 3, length: 9 };
    let line = Line::of(data, span);
    let is_object =
        data.trim_ascii_start().starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(data).is_ok();
    assert_eq!(line.is_some(), is_object, "an entry is an object");
    let at_once = line.and_then(Line::said).map(|(entry, said)| format!("{entry:?} {said:?}"));
    let asked = Entry::of(data, span).map(|entry| format!("{entry:?} {:?}", entry.view().into_text()));
    assert_eq!(at_once, asked, "one line says one thing");
}

/// Checks what holds for every transcript.
fn check(folder: &Folder, data: &[u8]) -> Transcript {
    let transcript = Transcript::open(&folder.path).expect("a transcript");
    let all: HashSet<(u64, u32)> = transcript.all().spans().map(place).collect();
    for span in transcript.all().spans() {
        let raw = &data[span.offset as usize..][..span.length as usize];
        assert!(raw.starts_with(b"{") || raw.trim_ascii_start().starts_with(b"{"), "an entry is an object");
    }
    for chain in transcript.branches().chain([transcript.active()]) {
        let places: Vec<(u64, u32)> = chain.spans().map(place).collect();
        let distinct: HashSet<&(u64, u32)> = places.iter().collect();
        assert_eq!(distinct.len(), places.len(), "no entry is there twice");
        assert!(distinct.iter().all(|place| all.contains(place)), "no entry comes from nowhere");
        pages(&chain.messages());
        let mut reader = transcript.read(&chain);
        while let Some(entry) = reader.next() {
            let entry = entry.expect("an entry");
            let (view, typed) = (entry.view(), entry.typed());
            assert_eq!(
                format!("{:?}", view.blocks()),
                format!("{:?}", typed.blocks),
                "one entry says one thing"
            );
        }
        transcript.messages(&chain).expect("messages");
    }
    for fault in transcript.faults() {
        assert!(fault.offset + fault.length <= data.len() as u64, "a fault is within the file");
        fault.kind.to_string();
    }
    transcript
}

/// Pages from both ends make the whole.
fn pages(chain: &Chain) {
    let count = chain.message_count() as usize;
    for first in [0, 1.min(count), count / 2, count] {
        let spans = |chain: Chain| chain.spans().map(place).collect::<Vec<_>>();
        let mut both = spans(chain.first(first));
        both.extend(spans(chain.last(count - first)));
        assert_eq!(both, spans(chain.clone()));
    }
}

fn place(span: Span) -> (u64, u32) {
    (span.offset, span.length)
}
