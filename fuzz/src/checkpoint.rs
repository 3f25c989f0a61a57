//! Records of checkpoints that somebody else wrote: whatever they say, nothing leaves the root, and a plan is what the
//! records add up to.

use std::collections::BTreeMap;

use pollster::block_on;
use rethread_checkpoint::{Checkpointer, Choices, Point, Settings, State};
use rethread_store::{BlobId, Entry, MemoryBackend, NewSession, Options, Session, Store};
use serde_json::{Value, json};

/// A log of checkpoints as it comes, one record a line.
pub fn record(data: &[u8]) {
    let entries = data.split(|byte| *byte == b'\n').filter_map(|line| Entry::parse(line.to_vec()).ok());
    let scene = Scene::with(entries.take(16).collect());
    let Ok(checkpoints) = scene.open() else { return };
    let points: Vec<_> = block_on(checkpoints.checkpoints()).unwrap_or_default();
    for checkpoint in &points {
        for point in checkpoint.message.iter().chain([&checkpoint.id]) {
            for to in [Point::At(point.clone()), Point::Turn(point.clone()), Point::Undo(point.clone())] {
                let Ok(plan) = block_on(checkpoints.plan(&to, &Choices::default())) else { continue };
                for step in &plan.steps {
                    let mut names = step.path.as_path().iter();
                    assert!(names.all(|name| name != ".." && name != ".git"), "{}", step.path);
                }
                let _ = block_on(checkpoints.apply(&plan));
            }
        }
    }
    scene.check();
}

/// Changes of a few paths, made up from bytes, against a fold that is written down once more.
pub fn plan(data: &[u8]) {
    let mut targets: BTreeMap<&str, Option<u8>> = BTreeMap::new();
    let mut entries = Vec::new();
    for (number, change) in data.chunks_exact(3).take(24).enumerate() {
        let path = ["a", "b", "deep/c"][usize::from(change[0] % 3)];
        let (before, after) = (content(change[1]), content(change[2]));
        targets.entry(path).or_insert(before);
        let source = if change[0] & 128 == 0 { "named" } else { "window" };
        let changes =
            json!([{ "path": path, "before": state(before), "after": state(after), "source": source }]);
        let record = json!({ "id": format!("c{number}"), "message": "m", "changes": changes });
        entries.push(Entry::of(&record).expect("a record is an entry"));
    }
    if entries.is_empty() {
        return;
    }
    let scene = Scene::with(entries);
    let checkpoints = scene.open().expect("nothing is wrong with these records");
    let to = Point::At("c0".parse().expect("an id"));
    let plan = block_on(checkpoints.plan(&to, &Choices::default())).expect("there is such a checkpoint");
    for step in plan.steps.iter().filter(|step| !matches!(step.path.to_string().as_str(), "deep")) {
        let expected = targets[step.path.to_string().as_str()];
        let found = match &step.target {
            State::Absent => None,
            state => state.file().map(|file| file.hash),
        };
        assert_eq!(found, expected.map(|content| BlobId::of(&[content])), "{}", step.path);
    }
    scene.check();
}

/// None for a path that is not there, else its content.
fn content(byte: u8) -> Option<u8> {
    (!byte.is_multiple_of(5)).then_some(byte % 5)
}

fn state(content: Option<u8>) -> Value {
    match content {
        None => json!({ "absent": true }),
        Some(content) => json!({ "present": { "hash": BlobId::of(&[content]), "size": 1, "mode": 0o644 } }),
    }
}

/// A project with a neighbour that nobody may touch.
struct Scene {
    folder: tempfile::TempDir,
    session: Session,
}

impl Scene {
    fn with(entries: Vec<Entry>) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        for path in ["project/.git", "outside"] {
            std::fs::create_dir_all(folder.path().join(path)).expect("a folder can be made");
            std::fs::write(folder.path().join(path).join("file"), "not ours").expect("a file can be written");
        }
        let store = Store::new(MemoryBackend::default(), Options::default());
        let session = block_on(store.create(NewSession::default())).expect("memory is there");
        for content in 1..5 {
            let blob = BlobId::of(&[content]);
            block_on(store.backend().put_blob(&blob, &mut &[content][..])).expect("memory is there");
        }
        for entry in entries {
            block_on(session.append_checkpoint(entry)).expect("memory is there");
        }
        Self { folder, session }
    }

    fn open(&self) -> rethread_checkpoint::Result<Checkpointer> {
        let root = self.folder.path().join("project");
        block_on(Checkpointer::open(&self.session, &root, Settings::default()))
    }

    fn check(&self) {
        for path in ["project/.git", "outside"] {
            let path = self.folder.path().join(path);
            assert_eq!(std::fs::read(path.join("file")).ok().as_deref(), Some(&b"not ours"[..]));
            assert_eq!(std::fs::read_dir(path).map(Iterator::count).ok(), Some(1));
        }
    }
}
