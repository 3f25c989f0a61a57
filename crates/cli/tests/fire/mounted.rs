//! File systems of a test's own: in memory, or in an image; unmounted when the test ends, however it ends.
#![expect(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::kit::cannot;

/// A mounted file system, gone with this value.
#[derive(Debug)]
pub(crate) struct Mounted {
    at: PathBuf,
    /// A setting of its device, and what it was before.
    setting: Option<(PathBuf, String)>,
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

    /// Has everything written one page at a time.
    ///
    /// Where a larger write gets half through, the loop device reports that all of it did.
    pub(crate) fn page_by_page(&mut self) {
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let is_here = |line: &&str| line.split(' ').nth(1) == Some(text(&self.at));
        let device = mounts.lines().find(is_here).and_then(|line| line.split(' ').next()).unwrap();
        let name = Path::new(device).file_name().unwrap().to_str().unwrap();
        let setting = PathBuf::from(format!("/sys/block/{name}/queue/max_sectors_kb"));
        self.setting = Some((setting.clone(), fs::read_to_string(&setting).unwrap()));
        fs::write(setting, "4").unwrap();
    }

    /// Cuts the power: nothing reaches the disk any more.
    pub(crate) fn cut(&self, how: Cut) {
        assert!(run("xfs_io", &["-x", "-c", how.words(), text(&self.at)]), "cannot shut down {:?}", self.at);
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Some((setting, before)) = &self.setting {
            let _ = fs::write(setting, before);
        }
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
        let image = Self::in_file(kind, options, &folder.path().join("image"));
        Some(Self { _folder: Some(folder), ..image? })
    }

    /// Makes a file system in a file.
    pub(crate) fn in_file(kind: &str, options: &'static str, file: &Path) -> Option<Self> {
        let made = match kind {
            // Nothing is left to be initialised later, so what is written later are our own files.
            "ext4" => {
                let eager = "lazy_itable_init=0,lazy_journal_init=0";
                make(file, 64 << 20) && run("mkfs.ext4", &["-q", "-b", "4096", "-E", eager, text(file)])
            }
            // Small inodes have no room for fractions of a second.
            "ext4 of whole seconds" => {
                make(file, 16 << 20) && run("mkfs.ext4", &["-q", "-I", "128", text(file)])
            }
            _ => make(file, 320 << 20) && run("mkfs.xfs", &["-q", text(file)]),
        };
        let image = Self { file: file.to_owned(), options, _folder: None };
        let folder = tempfile::tempdir().unwrap();
        if made && run("xfs_io", &["-V"]) && image.try_mount(folder.path()).is_some() {
            return Some(image);
        }
        cannot(&format!("no {kind} can be mounted here: that needs root, xfsprogs and loop devices"));
        None
    }

    /// Gives the image all room for its journal and its tables, and none for files: those must be found when they
    /// are written.
    pub(crate) fn hollow_out(&self) {
        // Written, not reserved: the tools that made it have left holes.
        fs::write(&self.file, fs::read(&self.file).unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mounted = self.mount(folder.path());
        assert!(run("fstrim", &[text(&mounted.at)]), "cannot trim {:?}", self.file);
    }

    #[track_caller]
    pub(crate) fn mount(&self, at: &Path) -> Mounted {
        self.try_mount(at).unwrap()
    }

    fn try_mount(&self, at: &Path) -> Option<Mounted> {
        mount(&["-o", &format!("loop,{}", self.options), text(&self.file)], at)
    }
}

fn make(file: &Path, size: u64) -> bool {
    File::create(file).and_then(|file| file.set_len(size)).is_ok()
}

fn mount(arguments: &[&str], at: &Path) -> Option<Mounted> {
    fs::create_dir_all(at).unwrap();
    run("mount", &[arguments, &[text(at)]].concat()).then(|| Mounted { at: at.to_owned(), setting: None })
}

fn run(program: &str, arguments: &[&str]) -> bool {
    let status = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
