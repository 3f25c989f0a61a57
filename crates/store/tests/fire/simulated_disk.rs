//! A disk in memory that tells what is durable from what is not, for crashes that a real disk seldom shows.
//!
//! A crash does not end anything: it gives a copy of the machine as it would come up again, and the run goes on. So one
//! run of a script has a crash at every call of it.

mod calls;
mod content;
mod fault;
mod machine;
mod moment;
mod names;
mod open_file;
mod reboot;
mod selfcheck;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use fastrand::Rng;

pub(crate) use self::content::FailingSync;
use self::fault::{Armed, Fate};
pub(crate) use self::fault::{Call, Failure, Fault, Span};
pub(crate) use self::machine::Journals;
use self::machine::{Machine, Node, ROOT, errno};
pub(crate) use self::moment::Moment;

/// A machine's disk, as one process has it.
#[derive(Clone)]
pub(crate) struct SimulatedDisk {
    world: Arc<World>,
    process: u64,
}

struct World {
    state: Mutex<State>,
    opened_gate: Condvar,
}

struct State {
    machine: Machine,
    /// Which open file holds the lock of a node, and whose it is.
    locks: HashMap<Node, (u64, u64)>,
    processes: u64,
    dead: HashSet<u64>,
    handles: u64,
    armed: Vec<Armed>,
    /// The last call that failed.
    struck: Option<String>,
    watcher: Option<Watcher>,
    gated: bool,
    /// How many appends wait at the gate.
    waiting: usize,
    failing: FailingSync,
    rng: Rng,
}

/// Told of every changing call before it happens, with a copy of the machine whose processes are all dead.
type Watcher = Arc<dyn Fn(Moment) + Send + Sync>;

impl SimulatedDisk {
    /// Makes an empty disk.
    pub(crate) fn new() -> Self {
        Self::of(Machine::new())
    }

    fn of(machine: Machine) -> Self {
        let state = State {
            machine,
            locks: HashMap::new(),
            processes: 0,
            dead: HashSet::new(),
            handles: 0,
            armed: Vec::new(),
            struck: None,
            watcher: None,
            gated: false,
            waiting: 0,
            failing: FailingSync::Loses,
            rng: Rng::with_seed(7),
        };
        Self { world: Arc::new(World { state: Mutex::new(state), opened_gate: Condvar::new() }), process: 0 }
    }

    /// Says whether the stores on it have journals.
    pub(crate) fn use_journals(&self, journals: Journals) {
        self.state().machine.journals = journals;
    }

    pub(crate) fn journals(&self) -> Journals {
        self.state().machine.journals
    }

    /// Returns this machine's disk for another process.
    pub(crate) fn other_process(&self) -> Self {
        let mut state = self.state();
        state.processes += 1;
        Self { world: self.world.clone(), process: state.processes }
    }

    /// Returns this moment, for what would come of it.
    pub(crate) fn moment(&self, story: impl Into<String>) -> Moment {
        Moment { story: story.into(), machine: self.state().machine.after_death() }
    }

    /// Kills this process: its locks are free, and whatever it still tries does nothing.
    pub(crate) fn die(&self) {
        self.state().kill(self.process);
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.state().dead.contains(&self.process)
    }

    /// Lets some call of this process fail.
    pub(crate) fn set(&self, fault: Fault) {
        self.state().armed.push(Armed::new(fault, self.process));
    }

    /// Ends all failures. Returns the calls that the first of them concerned.
    pub(crate) fn clear(&self) -> Vec<(Call, PathBuf)> {
        let mut ended = std::mem::take(&mut self.state().armed).into_iter();
        ended.next().map(|armed| armed.seen).unwrap_or_default()
    }

    /// Says which call failed last.
    pub(crate) fn struck(&self) -> String {
        self.state().struck.clone().unwrap_or_else(|| "nothing failed".into())
    }

    /// Seeds what failing syncs do.
    pub(crate) fn seed(&self, seed: u64) {
        self.state().rng = Rng::with_seed(seed);
    }

    /// Says what failing syncs do from now on.
    pub(crate) fn let_failing_syncs(&self, failing: FailingSync) {
        self.state().failing = failing;
    }

    /// Tells somebody of every changing call, until it is told to end.
    pub(crate) fn watch(&self, watcher: impl Fn(Moment) + Send + Sync + 'static) {
        self.state().watcher = Some(Arc::new(watcher));
    }

    pub(crate) fn unwatch(&self) {
        self.state().watcher = None;
    }

    /// Lets appends wait until [`release`](Self::release).
    pub(crate) fn hold_appends(&self) {
        self.state().gated = true;
    }

    pub(crate) fn release(&self) {
        self.state().gated = false;
        self.world.opened_gate.notify_all();
    }

    /// Returns whether an append waits for that.
    pub(crate) fn is_holding(&self) -> bool {
        self.state().waiting > 0
    }

    /// Returns every path there is.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.state().machine.paths("", ROOT)
    }

    /// Adds to a file behind everybody's back, for good.
    pub(crate) fn scribble(&self, path: &str, bytes: &[u8]) {
        let machine = &mut self.state().machine;
        let node = machine.find(Path::new(path)).expect("a file");
        machine.change(node, |content| content.write(bytes, content.length())).expect("a file");
        machine.sync_file(node).expect("a file");
    }

    /// Lets time pass, so that leftovers count as abandoned.
    pub(crate) fn age(&self, by: Duration) {
        self.state().machine.age(by);
    }

    /// Forgets the cache, so that what a failed sync lost shows.
    pub(crate) fn drop_caches(&self) {
        self.state().machine.drop_caches();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.world.state.lock().expect("the simulator does not panic")
    }

    /// Begins a call: it is watched, and may fail.
    fn begin(&self, call: Call, path: &Path) -> io::Result<(MutexGuard<'_, State>, Fate)> {
        let mut state = self.state();
        if call == Call::Append && state.gated {
            state.waiting += 1;
            let open = self.world.opened_gate.wait_while(state, |state| state.gated);
            state = open.expect("the simulator does not panic");
            state.waiting -= 1;
        }
        if state.dead.contains(&self.process) {
            return Err(errno(Failure::Death.code()));
        }
        if call.changes() {
            state.tell(|| format!("{call:?} {}", path.display()));
        }
        let mut fate = Fate::Done;
        for armed in state.armed.iter_mut().filter(|armed| armed.process == self.process) {
            fate = if fate == Fate::Done { armed.strikes(call, path) } else { fate };
        }
        if fate != Fate::Done {
            state.struck = Some(format!("{fate:?} at {call:?} {}", path.display()));
        }
        match fate {
            Fate::Failed(Failure::Death) => {
                state.kill(self.process);
                Err(errno(Failure::Death.code()))
            }
            // The caller decides what a failing sync does to the data.
            Fate::Failed(failure) if call != Call::Sync => Err(errno(failure.code())),
            _ => Ok((state, fate)),
        }
    }

    fn on<T>(
        &self,
        call: Call,
        path: &Path,
        work: impl FnOnce(&mut Machine) -> io::Result<T>,
    ) -> io::Result<T> {
        work(&mut self.begin(call, path)?.0.machine)
    }
}

impl State {
    fn tell(&self, story: impl FnOnce() -> String) {
        if let Some(watcher) = &self.watcher {
            watcher(Moment { story: story(), machine: self.machine.after_death() });
        }
    }

    fn kill(&mut self, process: u64) {
        self.dead.insert(process);
        self.locks.retain(|_, (_, holder)| *holder != process);
    }
}

impl fmt::Debug for SimulatedDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimulatedDisk(process {})", self.process)
    }
}
