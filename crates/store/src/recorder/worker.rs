//! The one thread behind a recorder: it passes the overflow on, watches the store's tickets, and saves.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use super::Shared;
use super::save::Saving;
use crate::error::{Error, Result};

/// Starts the thread. It drops `alive` when it ends.
pub(super) fn start(shared: Arc<Shared>, alive: oneshot::Sender<()>) -> Result<JoinHandle<()>> {
    let what = shared.session.id().to_string();
    let run = move || {
        run(&shared);
        drop(alive);
    };
    thread::Builder::new()
        .name("rethread-recorder".into())
        .spawn(run)
        .map_err(Error::io("start a thread to record session", what))
}

fn run(shared: &Shared) {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut saving: Option<Saving> = None;
    loop {
        if let Some(running) = &mut saving
            && let Poll::Ready(done) = running.as_mut().poll(&mut context)
        {
            saving = None;
            let state = &mut *shared.state();
            state.messages.saved(done, &mut state.faults);
        }
        let now = Instant::now();
        let mut state = shared.state();
        state.tick(now);
        let more = state.drain(&shared.session);
        let progress = state.harvest(&mut context) || more;
        if state.may_end() {
            return;
        }
        if saving.is_none() {
            saving = state.messages.start_save(&shared.session, now);
            if saving.is_some() {
                continue;
            }
        }
        let alarm = state.alarm(now);
        drop(state);
        match alarm {
            // There may be room now for what still waits.
            _ if progress => thread::yield_now(),
            Some(at) => thread::park_timeout(at.saturating_duration_since(now).max(Duration::from_millis(1))),
            None => thread::park(),
        }
    }
}

/// Wakes a thread that waits for a future.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}
