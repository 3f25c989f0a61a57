//! The least that a group commit is: tasks that hand over a record and wait, and one thread that writes what has come
//! with one call, syncs it and wakes them. No checks, no locks between processes, nothing to find anything by.

use std::fs::{File, OpenOptions};
use std::io::{IoSlice, Write as _};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use async_executor::Executor;

use crate::failure::Outcome;

/// How long the writer waits for a batch to be complete. Near the end those who would complete it may have no more.
const PATIENCE: Duration = Duration::from_millis(2);

/// A record on its way: which one, and whom to wake.
type Handed = (usize, oneshot::Sender<()>);

/// Has as many tasks as given append their share of the lines, each once the one before it is durable, in batches of these
/// sizes. Returns how many batches that were.
pub(crate) fn append_at_once(
    path: &Path,
    lines: &[Vec<u8>],
    tasks: usize,
    sizes: &[usize],
) -> Outcome<usize> {
    let file = OpenOptions::new().create_new(true).append(true).open(path)?;
    let (send, receive) = channel();
    thread::scope(|scope| {
        let writer = scope.spawn(move || write(file, lines, tasks, sizes, &receive));
        hand_over(send, lines.len(), tasks)?;
        writer.join().map_err(|_| "the writer panicked")?
    })
}

/// The tasks, all on this thread.
fn hand_over(send: Sender<Handed>, count: usize, tasks: usize) -> Outcome<()> {
    let executor = Executor::new();
    let share = count.div_ceil(tasks);
    let task = |number: usize| {
        let send = send.clone();
        executor.spawn(async move {
            for line in number * share..((number + 1) * share).min(count) {
                let (done, durable) = oneshot::channel();
                send.send((line, done)).map_err(|_| "the writer is gone")?;
                durable.await.map_err(|_| "the writer is gone")?;
            }
            Ok::<(), &'static str>(())
        })
    };
    let tasks: Vec<_> = (0..tasks).map(task).collect();
    pollster::block_on(executor.run(async {
        for task in tasks {
            task.await?;
        }
        Ok(())
    }))
}

fn write(
    mut file: File,
    lines: &[Vec<u8>],
    tasks: usize,
    sizes: &[usize],
    receive: &Receiver<Handed>,
) -> Outcome<usize> {
    let (mut batches, mut sizes) = (0, sizes.iter());
    while let Ok(first) = receive.recv() {
        let group = gather(first, sizes.next().copied().unwrap_or(tasks), receive);
        let pieces: Vec<IoSlice<'_>> = group.iter().map(|(line, _)| IoSlice::new(&lines[*line])).collect();
        let size: usize = pieces.iter().map(|piece| piece.len()).sum();
        if file.write_vectored(&pieces)? != size {
            return Err("a short write".into());
        }
        file.sync_data()?;
        // Whoever does not wait any more has failed already.
        group.into_iter().for_each(|(_, done)| drop(done.send(())));
        batches += 1;
    }
    Ok(batches)
}

/// Takes what comes until the batch is complete.
fn gather(first: Handed, size: usize, receive: &Receiver<Handed>) -> Vec<Handed> {
    let (mut group, mut since) = (vec![first], Instant::now());
    while group.len() < size && since.elapsed() < PATIENCE {
        match receive.try_recv() {
            Ok(handed) => {
                group.push(handed);
                since = Instant::now();
            }
            Err(_) => std::hint::spin_loop(),
        }
    }
    group
}
