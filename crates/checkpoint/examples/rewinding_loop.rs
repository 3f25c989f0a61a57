//! A little agent loop whose tools change files, and a person who takes one turn back.
//!
//! ```console
//! $ cargo run -p rethread-checkpoint --example rewinding_loop
//! ```

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use rethread_checkpoint::{Checkpointer, Choices, Point, Settings};
use rethread_store::{
    Entry, EntryId, FileBackend, Finish, NewSession, Options, Recorder, Recording, Store, Tool,
};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    run(folder.path(), &mut std::io::stdout())
}

/// Runs two turns in a folder, takes the second one back, and undoes that.
pub(crate) fn run(folder: &Path, out: &mut dyn Write) -> Outcome<()> {
    let project = folder.join("project");
    std::fs::create_dir(&project)?;
    std::fs::write(project.join("greeting.txt"), "hello\n")?;
    let store = Store::new(FileBackend::new(folder.join("store")), Options::default());
    pollster::block_on(async {
        let recorder =
            Recorder::initialize(Some(store.clone()), Recording::new(NewSession::at(&project))).await?;
        let files = Arc::new(Checkpointer::open(recorder.session(), &project, Settings::default()).await?);
        let recorder = recorder.with_checkpoints(files.clone());

        let first = ask(&recorder, "Greet the world")?;
        let edit = Tool::call("call-1").of(first).path("greeting.txt");
        work(&recorder, &edit, || std::fs::write(project.join("greeting.txt"), "hello, world\n")).await?;

        // A shell names no paths: whatever it does is found out afterwards.
        let second = ask(&recorder, "Tidy up")?;
        let shell = Tool::call("call-2").of(second.clone());
        let mess = || {
            Command::new("sh")
                .args(["-c", "rm greeting.txt; mkdir out; date > out/log"])
                .current_dir(&project)
                .status()
                .map(drop)
        };
        work(&recorder, &shell, mess).await?;
        writeln!(out, "after the agent: {:?}", names(&project)?)?;

        let plan = files.plan(&Point::At(second), &Choices::default()).await?;
        for step in &plan.steps {
            writeln!(out, "  {:?} {}", step.action, step.path)?;
        }
        let rewound = files.apply(&plan).await?;
        writeln!(out, "after the rewind: {:?}", names(&project)?)?;
        writeln!(out, "  greeting.txt says {:?}", std::fs::read_to_string(project.join("greeting.txt"))?)?;

        let receipt = rewound.receipt.ok_or("something was changed, so there is a receipt")?;
        files.apply(&files.plan(&Point::Undo(receipt), &Choices::default()).await?).await?;
        writeln!(out, "after its undo: {:?}", names(&project)?)?;
        recorder.finalize(Finish::because("end_turn").turns(2)).await?;
        Ok::<(), Box<dyn Error + Send + Sync>>(())
    })?;
    store.close()?;
    Ok(())
}

fn ask(recorder: &Recorder, prompt: &str) -> Outcome<EntryId> {
    let entry = Entry::of(&serde_json::json!({ "role": "user", "content": prompt }))?;
    Ok(recorder.persist(entry).id)
}

/// Runs a tool between two captures. A capture that fails is told, and stops nothing.
async fn work(recorder: &Recorder, tool: &Tool, run: impl FnOnce() -> std::io::Result<()>) -> Outcome<()> {
    let before = recorder.before_tool(tool).await;
    run()?;
    let after = recorder.after_tool(tool).await;
    match before.problem.or(after.problem) {
        Some(problem) => Err(problem.to_string().into()),
        None => Ok(()),
    }
}

fn names(folder: &Path) -> Outcome<Vec<String>> {
    let names = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names: Vec<String> = names.collect::<std::io::Result<_>>()?;
    names.sort();
    Ok(names)
}
