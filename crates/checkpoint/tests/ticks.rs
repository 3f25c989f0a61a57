//! Clocks that tick slowly: a file that changed may look just as it did.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;

use pollster::block_on;
use rethread_checkpoint::{Moment, Settings, Window};

use crate::kit::{Project, Speak, at, id};
use crate::mounted::Image;

#[test]
fn r13_an_edit_within_the_tick_of_a_clock_is_found_though_the_file_looks_as_it_did() {
    let Some(image) = Image::new("ext4 of whole seconds", "defaults") else { return };
    let project = Project::quick();
    let _mounted = image.mount(&project.root());
    let mut settings = Settings::default();
    settings.cache = Some(project.base().join("cache"));
    let mut checkpoints = project.open_with(settings.clone());
    let mut alike = 0;
    for round in 0..20 {
        // Sometimes another process, which knows the tree from the cache alone.
        if round % 2 == 1 {
            checkpoints = project.open_with(settings.clone());
        }
        let (message, file) = (format!("m{round}"), project.path("a"));
        project.write("a", format!("{round:04} before"));
        block_on(checkpoints.tree(Moment::of(id(&message)), Window::Idle)).unwrap();
        let seen = fs::metadata(&file).unwrap();
        // In place, so that it stays the same file, of the same size, and then its time is set back.
        let mut open = fs::File::options().write(true).open(&file).unwrap();
        write!(open, "{round:04} edited").unwrap();
        open.set_modified(seen.modified().unwrap()).unwrap();
        let now = fs::metadata(&file).unwrap();
        let looks =
            |it: &fs::Metadata| (it.ino(), it.size(), it.mode(), it.mtime_nsec(), it.mtime(), it.ctime());
        alike += usize::from(looks(&seen) == looks(&now));
        let captured = block_on(checkpoints.tree(Moment::of(id(&message)).tool("t"), Window::Tools)).unwrap();
        let paths: Vec<_> = captured.changes.iter().map(|change| change.path.to_string()).collect();
        assert_eq!(paths, ["a"], "round {round}");
        checkpoints.rewind(at(&message)).unwrap();
        assert_eq!(project.read("a").unwrap(), format!("{round:04} before"));
    }
    assert!(alike > 5, "the clock ticked between the edits: {alike} looked alike");
}
