//! Plays every scenario and keeps what came out: `cargo run -p rethread-testkit --example play -- FOLDER`.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a tool for people")]

use std::process::Command;

use rethread_testkit::Fixture;

fn main() {
    let to = std::env::args().nth(1).unwrap_or_else(|| "played".into());
    for fixture in Fixture::all() {
        let folder = std::path::Path::new(&to).join(fixture.name);
        std::fs::create_dir_all(&folder).unwrap();
        Command::new("cp").arg("-a").arg(&fixture.config).arg(&folder).status().unwrap();
        std::fs::write(folder.join("sent.json"), serde_json::to_string_pretty(&fixture.sent).unwrap())
            .unwrap();
        println!("{}: {} messages were sent", fixture.name, fixture.sent.len());
    }
}
