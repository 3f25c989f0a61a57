//! Backends by URL: `file:PATH`, `memory:`, `off:`, and whatever else is registered.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::file::FileBackend;
use crate::memory::MemoryBackend;
use crate::off::OffBackend;

type Opener = Box<dyn Fn(&str) -> Result<Arc<dyn Backend>> + Send + Sync>;

/// The URL schemes that a program knows.
///
/// # Example
///
/// ```
/// use rethread_store::Schemes;
///
/// assert_eq!(Schemes::default().open("memory:")?.capabilities().scheme, "memory");
/// assert!(Schemes::default().open("gopher://hole").is_err());
/// # Ok::<(), rethread_store::Error>(())
/// ```
pub struct Schemes(BTreeMap<String, Opener>);

impl Default for Schemes {
    fn default() -> Self {
        let mut schemes = Self(BTreeMap::new());
        schemes.register("file", |rest| {
            let path = rest.strip_prefix("//").unwrap_or(rest);
            if path.is_empty() {
                let rule = "file: is followed by a folder, as in file:/srv/sessions";
                return Err(Error::BadName { what: "store URL", text: "file:".into(), rule });
            }
            Ok(Arc::new(FileBackend::new(PathBuf::from(path))))
        });
        schemes.register("memory", |_| Ok(Arc::new(MemoryBackend::default())));
        schemes.register("off", |_| Ok(Arc::new(OffBackend)));
        schemes
    }
}

impl Schemes {
    /// Adds a scheme; its opener gets what stands after the colon.
    pub fn register(
        &mut self,
        scheme: &str,
        opener: impl Fn(&str) -> Result<Arc<dyn Backend>> + Send + Sync + 'static,
    ) {
        self.0.insert(scheme.to_owned(), Box::new(opener));
    }

    /// Returns the names of the schemes, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Opens a backend. A text without a scheme is an error: whether it is a path is for the caller to say.
    pub fn open(&self, url: &str) -> Result<Arc<dyn Backend>> {
        let known = url.split_once(':').and_then(|(scheme, rest)| Some((self.0.get(scheme)?, rest)));
        let rule = "it begins with a known scheme and a colon, as in file:PATH, memory: or off:";
        let (opener, rest) = known.ok_or(Error::BadName { what: "store URL", text: url.to_owned(), rule })?;
        opener(rest)
    }
}

impl fmt::Debug for Schemes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}
