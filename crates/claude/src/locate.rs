//! Where Claude Code is.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::error::{Error, Result};

/// The variable that names the CLI.
pub(crate) const VARIABLE: &str = "CLAUDE_CLI_PATH";

/// Where installers put it, beneath a person's home.
const IN_HOME: &[&str] = &[
    ".local/bin/claude",
    ".claude/local/claude",
    ".npm-global/bin/claude",
    "node_modules/.bin/claude",
    ".yarn/bin/claude",
    ".bun/bin/claude",
];

/// Where installers put it for everybody.
const ANYWHERE: &[&str] = &["/usr/local/bin/claude", "/opt/homebrew/bin/claude", "/usr/bin/claude"];

/// Returns the Claude Code CLI: what `CLAUDE_CLI_PATH` names, else the first on `PATH`, else in a usual place.
///
/// The current directory is never searched: what lies there may be anybody's. This is the one place in the crate that
/// reads the environment.
pub fn find_cli() -> Result<PathBuf> {
    search(env::var_os(VARIABLE), env::var_os("PATH"), env::var_os("HOME"))
}

fn search(named: Option<OsString>, path: Option<OsString>, home: Option<OsString>) -> Result<PathBuf> {
    if let Some(named) = named.filter(|named| !named.is_empty()).map(PathBuf::from) {
        return match is_program(&named) {
            true => Ok(named),
            false => Err(Error::CliNotFound { searched: vec![named] }),
        };
    }
    let on_path = path.iter().flat_map(env::split_paths).map(|folder| folder.join("claude"));
    let home = home.map(PathBuf::from);
    let in_home = home.iter().flat_map(|home| IN_HOME.iter().map(|place| home.join(place)));
    // A relative entry means the current directory, or something beneath it.
    let places = on_path.chain(in_home).chain(ANYWHERE.iter().map(PathBuf::from));
    let searched: Vec<PathBuf> = places.filter(|place| place.is_absolute()).collect();
    match searched.iter().find(|place| is_program(place)) {
        Some(found) => Ok(found.clone()),
        None => Err(Error::CliNotFound { searched }),
    }
}

fn is_program(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn program(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn the_variable_wins_over_the_path_and_the_path_over_the_home() {
        let folder = tempfile::tempdir().unwrap();
        let (named, on_path) = (folder.path().join("named"), folder.path().join("bin/claude"));
        let in_home = folder.path().join(".local/bin/claude");
        for place in [&named, &on_path, &in_home] {
            program(place);
        }
        let path = Some(folder.path().join("bin").into_os_string());
        let home = Some(folder.path().as_os_str().to_owned());
        let all = search(Some(named.clone().into()), path.clone(), home.clone()).unwrap();
        let unnamed = search(None, path, home.clone()).unwrap();
        let nowhere = search(None, Some("/nowhere".into()), home).unwrap();
        assert_eq!((all, unnamed, nowhere), (named, on_path, in_home));
    }

    #[test]
    fn a_path_entry_that_means_the_current_directory_is_passed_over() {
        // The tests run in the folder of the crate; whatever is there, it is not looked at.
        let Err(Error::CliNotFound { searched }) = search(None, Some(":.:bin:..".into()), None) else {
            return; // This machine has one for everybody.
        };
        assert!(searched.iter().all(|place| place.is_absolute()), "{searched:?}");
    }

    #[test]
    fn a_variable_that_names_nothing_is_an_error_and_no_reason_to_look_elsewhere() {
        let error = search(Some("/nowhere/claude".into()), env::var_os("PATH"), None).unwrap_err();
        assert!(
            matches!(error, Error::CliNotFound { searched } if searched == [Path::new("/nowhere/claude")])
        );
    }
}
