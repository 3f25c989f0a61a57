//! What the settings file says, by the names of the flags.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;

use crate::failure::Failure;

/// `$XDG_CONFIG_HOME/rethread/config.toml`. Flags and the environment win over it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Config {
    /// The store to use, for every command.
    pub(crate) store: Option<String>,
    /// Claude Code's own folder, for every command.
    pub(crate) claude_dir: Option<PathBuf>,
    pub(crate) serve: Serve,
}

/// What only `serve` needs.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Serve {
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) allowed_root: Vec<PathBuf>,
    pub(crate) allow_host: Vec<String>,
    pub(crate) tls_cert: Option<PathBuf>,
    pub(crate) tls_key: Option<PathBuf>,
    pub(crate) claude_bin: Option<PathBuf>,
    pub(crate) allow_bypass: bool,
    pub(crate) no_open: bool,
}

impl Config {
    /// Reads the file; nothing is set where there is none.
    pub(crate) fn read() -> Result<Self, Failure> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let folder = set("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
        let Some(folder) = folder.or_else(|| set("HOME").map(|home| home.join(".config"))) else {
            return Ok(Self::default());
        };
        let path = folder.join("rethread/config.toml");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            // A home that one may not even look into is somebody else's.
            Err(_) if fs::symlink_metadata(&path).is_err() => return Ok(Self::default()),
            Err(error) => {
                return Err(Failure::Failed {
                    message: format!("cannot read {}: {error}", path.display()),
                    hint: None,
                });
            }
        };
        let wrong = |why: &str| {
            let message = format!("{} makes no sense: {why}", path.display());
            Failure::wrongly(message, "`rethread serve --help` shows what there is")
        };
        let config: Self = toml::from_str(&text).map_err(|error| wrong(error.message()))?;
        if config.serve.tls_cert.is_some() != config.serve.tls_key.is_some() {
            return Err(wrong("`tls-cert` and `tls-key` go together"));
        }
        // A path that depends on where somebody stands would be another one every time.
        match &config.claude_dir {
            Some(folder) if folder.is_relative() => Err(wrong("`claude-dir` is no absolute path")),
            _ => Ok(config),
        }
    }
}
