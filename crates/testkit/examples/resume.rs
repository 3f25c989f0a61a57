//! Has the real CLI resume every transcript of a folder, and writes beside each what it sent:
//! `cargo run -p rethread-testkit --example resume -- FOLDER`.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a tool for people")]

use std::path::Path;

use rethread_testkit::{Home, PROBE, Prompt};

fn main() {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    let home = Home::new().unwrap();
    let first = "99999999-9999-4999-8999-999999999999";
    home.claude().session(first).asked(Prompt::new("Hello"));
    let mut files: Vec<_> =
        std::fs::read_dir(Path::new(&folder)).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    for (number, file) in files.iter().enumerate() {
        let id = format!("00000000-0000-4000-8000-{number:012}");
        std::fs::copy(file, home.transcript(first).with_file_name(format!("{id}.jsonl"))).unwrap();
        let before = home.api().requests().len();
        let ran = home.claude().resume(&id).ask(PROBE);
        let request = home.api().requests().into_iter().nth(before);
        let sent = request.map_or(serde_json::Value::Null, |request| request.body["messages"].clone());
        std::fs::write(file.with_extension("sent.json"), serde_json::to_string_pretty(&sent).unwrap())
            .unwrap();
        println!("{} {} {}", file.display(), ran.code, ran.err.trim());
    }
}
