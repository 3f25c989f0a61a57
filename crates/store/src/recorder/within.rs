//! A time limit for a future, without an async runtime.

use std::future::{IntoFuture, poll_fn};
use std::pin::{Pin, pin};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::task::Poll;
use std::thread;
use std::time::Duration;

/// Waits for a future, but no longer than `limit`; `None` if it was not done by then.
pub(super) async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    // Many are done at once, and the timer's thread would cost more than they do.
    if let Poll::Ready(done) = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await {
        return Some(done);
    }
    let (expire, expired) = oneshot::channel::<()>();
    let mut expired = expired.into_future();
    let (_waiting, done) = mpsc::channel::<()>();
    let timer = thread::Builder::new().name("rethread-timer".into()).spawn(move || {
        if done.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            // Nobody listens any more if the future was done in this very moment.
            let _ = expire.send(());
        }
    });
    // Without a thread `expire` is gone, which reads as expired: better no wait than one without end.
    drop(timer);
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => Pin::new(&mut expired).poll(cx).map(|_| None),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_future_that_never_ends_is_given_up_in_time() {
        let started = Instant::now();
        let limit = Duration::from_millis(30);
        assert_eq!(pollster::block_on(within(limit, std::future::pending::<()>())), None);
        assert!(started.elapsed() >= limit && started.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn a_future_that_ends_in_time_gives_its_value() {
        let (sender, receiver) = oneshot::channel();
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(10));
            sender.send(7)
        });
        let done = pollster::block_on(within(Duration::from_secs(10), receiver.into_future()));
        assert_eq!(done, Some(Ok(7)));
    }
}
