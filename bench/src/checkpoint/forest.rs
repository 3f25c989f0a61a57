//! A tree of source files, a function of a seed.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Outcome;

/// How many files a folder has; with folders of folders that is what source trees look like.
const PER_FOLDER: usize = 4;

/// A tree of files.
pub(super) struct Forest {
    pub(super) root: PathBuf,
    count: usize,
    edits: std::cell::Cell<u64>,
}

impl Forest {
    /// Plants a tree with so many files.
    pub(super) fn plant(root: &Path, count: usize) -> Outcome<Self> {
        let mut random = fastrand::Rng::with_seed(7);
        for number in 0..count {
            let path = root.join(name(number));
            if number % PER_FOLDER == 0 {
                fs::create_dir_all(path.parent().ok_or("a file is in a folder")?)?;
            }
            fs::write(path, content(&mut random))?;
        }
        // Files that changed just now are read again by everybody; those of a person are older.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        Ok(Self { root: root.to_owned(), count, edits: 0.into() })
    }

    /// Returns so many paths, spread over the tree, relative to its root.
    pub(super) fn some(&self, number: usize) -> Vec<PathBuf> {
        (0..number).map(|at| name(at * self.count / number)).collect()
    }

    /// Edits files, each time otherwise.
    pub(super) fn edit(&self, paths: &[PathBuf]) -> Outcome<()> {
        self.edits.set(self.edits.get() + 1);
        for path in paths {
            fs::write(self.root.join(path), format!("// edit {}\nfn edited() {{}}\n", self.edits.get()))?;
        }
        Ok(())
    }
}

fn name(number: usize) -> PathBuf {
    let folder = number / PER_FOLDER;
    format!("module{}/part{}/folder{folder}/file{number}.rs", folder / 100, folder / 10 % 10).into()
}

/// Words as in source text: they compress as source text does.
fn content(random: &mut fastrand::Rng) -> String {
    const WORDS: [&str; 16] = [
        "fn", "let", "self", "session", "position", "return", "match", "record", "if", "struct", "impl",
        "path", "store", "Result", "pub", "error",
    ];
    let size = 400 + random.usize(..600) * random.usize(1..12);
    let mut text = String::with_capacity(size + 32);
    while text.len() < size {
        text.push_str(WORDS[random.usize(..WORDS.len())]);
        match random.usize(..12) {
            0 => text.push_str(";\n    "),
            1 => text.push_str(&format!("_{} ", random.u16(..))),
            2 => text.push('('),
            _ => text.push(' '),
        }
    }
    text
}
