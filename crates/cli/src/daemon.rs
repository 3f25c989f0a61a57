//! What a program needs that goes on running: a log, and a signal that ends it.

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use rethread_keeper::TRACES;
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;

/// A log that is longer than this when a daemon starts is put aside.
const LOG: u64 = 16 << 20;

/// Waits for a signal that means the end.
pub(crate) async fn asked_to_end() {
    let (Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()), signal(SignalKind::hangup()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
}

/// Whether it is written down how long things took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Traces {
    Off,
    Written,
}

/// Has everything that a daemon notes written to files in its folder, one JSON object a line.
pub(crate) fn log_to(home: &Path, level: &str, traces: Traces) -> Result<(), Failure> {
    use std::os::unix::fs::DirBuilderExt as _;
    use tracing_subscriber::filter::{LevelFilter, Targets};
    use tracing_subscriber::fmt::format::FmtSpan;
    use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
    use tracing_subscriber::util::SubscriberInitExt as _;
    let level: LevelFilter = level.parse().map_err(|_| {
        Failure::wrongly(format!("{level:?} is no level"), "one of error, warn, info, debug, trace")
    })?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(home).map_err(unwritable)?;
    let layer = || tracing_subscriber::fmt::layer().json();
    let wanted = Targets::new().with_default(level).with_target(TRACES, LevelFilter::OFF);
    let mut layers =
        vec![layer().with_writer(Mutex::new(appended(home, "log")?)).with_filter(wanted).boxed()];
    if traces == Traces::Written {
        let ended =
            layer().with_span_events(FmtSpan::CLOSE).with_writer(Mutex::new(appended(home, "traces")?));
        layers.push(ended.with_filter(Targets::new().with_target(TRACES, LevelFilter::INFO)).boxed());
    }
    // A second one in the same process would be a test's; the first one's log is as good.
    let _ = tracing_subscriber::registry().with(layers).try_init();
    Ok(())
}

/// Opens one of its logs; what is too long is put aside first.
fn appended(home: &Path, name: &str) -> Result<fs::File, Failure> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let path = home.join(format!("{name}.jsonl"));
    if fs::metadata(&path).is_ok_and(|log| log.len() > LOG) {
        fs::rename(&path, home.join(format!("{name}.1.jsonl"))).map_err(unwritable)?;
    }
    fs::OpenOptions::new().create(true).append(true).mode(0o600).open(&path).map_err(unwritable)
}

fn unwritable(error: std::io::Error) -> Failure {
    Failure::Failed { message: format!("cannot write the log: {error}"), hint: None }
}
