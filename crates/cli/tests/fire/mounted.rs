//! File systems of a test's own: in memory, or in an image; unmounted when the test ends, however it ends.
#![expect(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::kit::cannot;

/// A mounted file system, gone with this value.
#[derive(Debug)]
pub(crate) struct Mounted {
    at: PathBuf,
}

/// A file that holds a file system.
#[derive(Debug)]
pub(crate) struct Image {
    file: PathBuf,
    options: &'static str,
    _folder: Option<TempDir>,
}

impl Mounted {
    /// Mounts a file system in memory, if that is allowed here.
    pub(crate) fn tmpfs(at: &Path, options: &str) -> Option<Self> {
        let mounted = mount(&["-t", "tmpfs", "-o", options, "rethread-test"], at);
        if mounted.is_none() {
            cannot("no file system can be mounted here: that needs root");
        }
        mounted
    }

    pub(crate) fn remount(&self, options: &str) {
        assert!(run("mount", &["-o", &format!("remount,{options}"), text(&self.at)]));
    }

    /// Cuts the power: nothing reaches the disk any more.
    pub(crate) fn cut(&self, how: Cut) {
        assert!(run("xfs_io", &["-x", "-c", how.words(), text(&self.at)]), "cannot shut down {:?}", self.at);
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A process that was just killed may still be on its way out.
        for _ in 0..50 {
            if run("umount", &[text(&self.at)]) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        run("umount", &["-l", text(&self.at)]);
    }
}

/// What is on the disk after a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Only what was already in the journal.
    AtOnce,
    /// The whole journal, but no data: sizes without their content.
    AfterTheJournal,
}

impl Cut {
    fn words(self) -> &'static str {
        match self {
            Cut::AtOnce => "shutdown",
            Cut::AfterTheJournal => "shutdown -f",
        }
    }
}

impl Image {
    /// Makes a file system in a temporary folder, if its tools are here and it can be mounted.
    pub(crate) fn new(kind: &str, options: &'static str) -> Option<Self> {
        // In memory if possible: the cut is simulated above the image, and a real disk would only be slower.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let file = folder.path().join("image");
        let image = Self::in_file(kind, options, &file, 320 << 20);
        Some(Self { _folder: Some(folder), ..image? })
    }

    /// Makes a file system in a file.
    pub(crate) fn in_file(kind: &str, options: &'static str, file: &Path, size: u64) -> Option<Self> {
        std::fs::File::create(file).unwrap().set_len(size).unwrap();
        // Nothing is left to be initialised later, so what is written later are our own files.
        let eager: &[&str] =
            if kind == "ext4" { &["-E", "lazy_itable_init=0,lazy_journal_init=0"] } else { &[] };
        let made = run(&format!("mkfs.{kind}"), &[&["-q"], eager, &[text(file)]].concat());
        let image = Self { file: file.to_owned(), options, _folder: None };
        let folder = tempfile::tempdir().unwrap();
        if made && run("xfs_io", &["-V"]) && image.try_mount(folder.path()).is_some() {
            return Some(image);
        }
        cannot(&format!("no {kind} can be mounted here: that needs root, xfsprogs and loop devices"));
        None
    }

    #[track_caller]
    pub(crate) fn mount(&self, at: &Path) -> Mounted {
        self.try_mount(at).expect("an image that was mounted before can be mounted again")
    }

    fn try_mount(&self, at: &Path) -> Option<Mounted> {
        mount(&["-o", &format!("loop,{}", self.options), text(&self.file)], at)
    }
}

fn mount(arguments: &[&str], at: &Path) -> Option<Mounted> {
    std::fs::create_dir_all(at).unwrap();
    run("mount", &[arguments, &[text(at)]].concat()).then(|| Mounted { at: at.to_owned() })
}

fn run(program: &str, arguments: &[&str]) -> bool {
    let status = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
