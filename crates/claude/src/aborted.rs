//! A task that ends when nobody waits for it any more.

use tokio::task::JoinHandle;

/// A task that ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Aborted<T>(pub(crate) JoinHandle<T>);

impl<T> Drop for Aborted<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
