//! The file that holds the master key of a store that is encrypted.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rethread_encrypted::MasterKey;

use crate::failure::{Failure, without_number};

/// What a store's URL begins with if it is encrypted.
const PREFIX: &str = "encrypted+";
/// No key is longer.
const LONGEST: u64 = 4096;

/// Returns a URL without what says that its store is encrypted, and the file with its key if it says so.
pub(crate) fn of_url(url: &str, typed: Option<&Path>) -> Result<(String, Option<PathBuf>), Failure> {
    let Some(url) = url.strip_prefix(PREFIX) else { return Ok((url.to_owned(), None)) };
    let set = || std::env::var_os("RETHREAD_KEY_FILE").filter(|file| !file.is_empty()).map(PathBuf::from);
    let file = typed.map(Path::to_owned).or_else(set).ok_or_else(|| {
        let hint =
            "`--key-file FILE` or $RETHREAD_KEY_FILE names it, and `rethread key FILE` makes a new one";
        Failure::wrongly("an encrypted store needs a key", hint)
    })?;
    Ok((url.to_owned(), Some(file)))
}

/// Reads a key. One that others can read is refused.
pub(crate) fn read(path: &Path) -> Result<MasterKey, Failure> {
    let failed = |error: io::Error| {
        let message = format!("cannot read {}: {}", path.display(), without_number(&error.to_string()));
        Failure::wrongly(message, "`--key-file FILE` names the key of this store")
    };
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.mode() & 0o077 != 0 {
        let message = format!("others can read the key in {}", path.display());
        return Err(Failure::wrongly(message, format!("`chmod 600 {}` keeps it to you", path.display())));
    }
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).map_err(failed)?;
    let wrong = |error: rethread_store::Error| {
        Failure::wrongly(format!("{} holds no key: {error}", path.display()), "`rethread key FILE` makes one")
    };
    text.parse().map_err(wrong)
}

/// Makes a file with a new key, which only its owner can read.
pub(crate) fn make(path: &Path) -> Result<(), Failure> {
    let key = MasterKey::generate()?;
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let written = made.and_then(|mut file| {
        file.write_all(format!("{}\n", *key.to_text()).as_bytes())?;
        // What is encrypted with it is worth nothing without it.
        file.sync_all()
    });
    written.map_err(|error| {
        let message = format!("cannot make {}: {}", path.display(), without_number(&error.to_string()));
        let hint = match error.kind() {
            io::ErrorKind::AlreadyExists => "a key that is there is never written over: name another file",
            _ => "name a file in a folder that you may write to",
        };
        Failure::failed(message, hint)
    })
}
