//! A demonstration that this keeper can offer: another keeper, with nothing of the person's own.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

type Begun = Pin<Box<dyn Future<Output = std::result::Result<String, String>> + Send>>;

/// Begins a demonstration, and says where it is. The binary knows how; a keeper only passes the wish on.
#[derive(Clone)]
pub struct Demonstration(Arc<dyn Fn() -> Begun + Send + Sync>);

impl Demonstration {
    /// Takes what begins one. It is called for each wish, and gives an address that logs a browser in once, or what is in
    /// the way, in words.
    pub fn new<F>(begin: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = std::result::Result<String, String>> + Send + 'static,
    {
        Self(Arc::new(move || Box::pin(begin())))
    }

    pub(crate) async fn begin(&self) -> std::result::Result<String, String> {
        (self.0)().await
    }
}

impl fmt::Debug for Demonstration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Demonstration")
    }
}
