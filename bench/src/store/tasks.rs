//! Many tasks that append at once, on one thread, as the tasks of an agent's runtime do.

use async_executor::Executor;
use rethread_store::{Entry, Session};

use crate::failure::Outcome;

/// How many tasks append at once.
pub(crate) const TASKS: usize = 64;

/// Has as many tasks as there are sessions append their share of the entries, each entry once the one before it is
/// acknowledged.
pub(crate) fn append_at_once(sessions: &[Session], entries: &[Entry]) -> Outcome<()> {
    let executor = Executor::new();
    let share = entries.len().div_ceil(sessions.len());
    let append = |(session, entries): (&Session, &[Entry])| {
        let (session, entries) = (session.clone(), entries.to_vec());
        executor.spawn(async move {
            for entry in entries {
                session.append(entry).await?.await?;
            }
            Ok::<(), rethread_store::Error>(())
        })
    };
    let tasks: Vec<_> = sessions.iter().zip(entries.chunks(share)).map(append).collect();
    pollster::block_on(executor.run(async {
        for task in tasks {
            task.await?;
        }
        Ok(())
    }))
}
