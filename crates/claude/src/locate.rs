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
/// The current directory is never searched: what lies there may be anybody's. This file is the one place in the crate that
/// reads the environment.
pub fn find_cli() -> Result<PathBuf> {
    search(env::var_os(VARIABLE), env::var_os("PATH"), env::var_os("HOME"))
}

/// Returns the program that a path or a name means, as this process sees it; Claude Code if there is neither.
///
/// A relative path is this process's, not that of the folder the CLI will work in, where anybody may have put a program
/// under the same path. A mere name is looked for on `PATH`, and never in the current directory.
pub(crate) fn program(path: &Path) -> Result<PathBuf> {
    match path.as_os_str().is_empty() {
        true => find_cli(),
        false => named(path, env::var_os("PATH")),
    }
}

fn named(path: &Path, folders: Option<OsString>) -> Result<PathBuf> {
    let is_name = path.components().count() == 1 && path.file_name() == Some(path.as_os_str());
    if !is_name {
        return std::path::absolute(path).map_err(Error::io("find", path));
    }
    first_program(folders.iter().flat_map(env::split_paths).map(|folder| folder.join(path)))
}

/// Returns the first program among some places, apart from those that depend on the current directory.
fn first_program(places: impl Iterator<Item = PathBuf>) -> Result<PathBuf> {
    let searched: Vec<PathBuf> = places.filter(|place| place.is_absolute()).collect();
    match searched.iter().find(|place| is_program(place)) {
        Some(found) => Ok(found.clone()),
        None => Err(Error::CliNotFound { searched }),
    }
}

fn search(
    named_by_variable: Option<OsString>,
    path: Option<OsString>,
    home: Option<OsString>,
) -> Result<PathBuf> {
    if let Some(given) = named_by_variable.filter(|given| !given.is_empty()) {
        let found = named(Path::new(&given), path)?;
        return match is_program(&found) {
            true => Ok(found),
            false => Err(Error::CliNotFound { searched: vec![found] }),
        };
    }
    let on_path = path.iter().flat_map(env::split_paths).map(|folder| folder.join("claude"));
    let home = home.map(PathBuf::from);
    let in_home = home.iter().flat_map(|home| IN_HOME.iter().map(|place| home.join(place)));
    first_program(on_path.chain(in_home).chain(ANYWHERE.iter().map(PathBuf::from)))
}

fn is_program(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn make(path: &Path) {
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
            make(place);
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
    fn a_path_is_the_hosts_and_a_name_is_on_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let on_path = folder.path().join("bin/agent");
        make(&on_path);
        let folders = env::join_paths([Path::new("."), Path::new(""), &folder.path().join("bin")]).unwrap();
        let find = |path: &str| named(Path::new(path), Some(folders.clone()));
        assert_eq!(find("agent").unwrap(), on_path);
        let here = env::current_dir().unwrap();
        // It need not exist to be known whose it is.
        assert_eq!(find("bin/agent").unwrap(), here.join("bin/agent"));
        assert_eq!(find("./agent").unwrap(), here.join("agent"));
        // The folder of the crate holds one of that name, which is no program, and would not be looked at if it were.
        let Err(Error::CliNotFound { searched }) = find("Cargo.toml") else { panic!("it was found") };
        assert_eq!(searched, [folder.path().join("bin/Cargo.toml")]);
        assert_eq!(search(Some("agent".into()), Some(folders), None).unwrap(), on_path);
    }

    #[test]
    fn a_variable_that_names_nothing_is_an_error_and_no_reason_to_look_elsewhere() {
        let error = search(Some("/nowhere/claude".into()), env::var_os("PATH"), None).unwrap_err();
        insta::assert_snapshot!(error, @"Claude Code was not found at /nowhere/claude; install it, or name it with `cli_path` or CLAUDE_CLI_PATH");
        assert!(matches!(error, Error::CliNotFound { .. }));
    }
}
