//! Who is at the other end of a connection.

use tokio::net::UnixStream;

use crate::defect::Defect;

/// The other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Somebody over TCP: anybody on this machine, and any page in a browser on it.
    Tcp,
    /// A process of this user over the Unix socket.
    Local {
        /// The process.
        pid: u32,
    },
    /// A process over the Unix socket that must not come in.
    Stranger {
        /// Why.
        why: &'static str,
    },
}

impl Peer {
    /// Looks at who is at the other end of the Unix socket. `driven` are the processes that guard driven agents.
    pub(crate) fn of(stream: &UnixStream, driven: &[u32]) -> Self {
        let Ok(credentials) = stream.peer_cred() else {
            return Peer::Stranger { why: "the system does not say who asks" };
        };
        if credentials.uid() != rustix::process::geteuid().as_raw() {
            return Peer::Stranger { why: "another user asks" };
        }
        let pid = credentials.pid().and_then(|pid| u32::try_from(pid).ok());
        match (pid, pid.map(|pid| descends(pid, driven))) {
            (Some(pid), _) if Defect::TrustTheAgent.is_on() => Peer::Local { pid },
            (_, Some(Some(true))) => Peer::Stranger { why: "an agent asks that this keeper drives" },
            (_, Some(None)) => Peer::Stranger { why: UNSEEN },
            // Also before an agent is known to run: what it starts at once is there before it is.
            (Some(pid), _) if pid != std::process::id() && is_started_here(pid) => {
                Peer::Stranger { why: "something asks that this keeper started" }
            }
            (Some(pid), _) => Peer::Local { pid },
            // Where the system does not tell, nobody can be told from an agent.
            (None, _) if !driven.is_empty() => {
                Peer::Stranger { why: "the system does not say which process asks" }
            }
            (None, _) => Peer::Local { pid: 0 },
        }
    }
}

/// One that has ended, or lives where its number means something else: in a container, say.
const UNSEEN: &str =
    "nobody can tell whether an agent asks that this keeper drives: the process is not seen from here";

/// Returns whether a process descends from one of others; `None` if nobody can say. A guard adopts what its agent leaves
/// behind, so that there is no way out of this line.
fn descends(pid: u32, driven: &[u32]) -> Option<bool> {
    if driven.is_empty() {
        return Some(false);
    }
    let mut at = pid;
    // No line is longer than this, unless somebody plays tricks.
    for _ in 0..4096 {
        if driven.contains(&at) {
            return Some(true);
        }
        at = match parent(at)? {
            0 => return Some(false),
            parent => parent,
        };
    }
    None
}

fn is_started_here(pid: u32) -> bool {
    descends(pid, &[std::process::id()]) == Some(true)
}

/// Returns whether a process is at work for this keeper. Agents are not started by it but by their guards.
pub(crate) fn is_guarded_here(pid: u32) -> bool {
    parent(pid).is_some_and(|guard| guard != std::process::id() && is_started_here(guard))
}

/// Returns the process that started another, or has adopted it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn parent(pid: u32) -> Option<u32> {
    parent_by_ps(pid)
}

/// Asks a program that every system has.
#[cfg(any(test, not(target_os = "linux")))]
fn parent_by_ps(pid: u32) -> Option<u32> {
    let asked =
        std::process::Command::new("ps").args(["-o", "ppid=", "-p", &pid.to_string()]).output().ok()?;
    String::from_utf8(asked.stdout).ok()?.trim().parse().ok()
}

/// Returns the process that started another, or has adopted it.
#[cfg(target_os = "linux")]
pub(crate) fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may hold anything, so the fields are counted from its closing parenthesis.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_descends_from_a_driven_agent_is_a_stranger() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _inside = runtime.enter();
        let (one, _other) = UnixStream::pair().unwrap();
        let own = std::process::id();
        assert_eq!(Peer::of(&one, &[]), Peer::Local { pid: own });
        assert_eq!(Peer::of(&one, &[u32::MAX]), Peer::Local { pid: own });
        // The agent itself, and whoever it descends from.
        for driven in [own, parent(own).unwrap()] {
            assert!(matches!(Peer::of(&one, &[driven]), Peer::Stranger { .. }), "{driven}");
        }
        // As other systems find it, where the program for that is here.
        assert!(parent_by_ps(own).is_none_or(|told| Some(told) == parent(own)));
        assert_eq!(parent_by_ps(u32::MAX - 1), None);
        // What this process started is no agent that it drives, and comes in no more than one.
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(is_started_here(child.id()) && !is_started_here(parent(own).unwrap()));
        child.kill().unwrap();
        child.wait().unwrap();
        // Of one in another namespace there is no number but this, and one that has ended has no line any more.
        assert_eq!([0, u32::MAX - 1].map(|pid| descends(pid, &[own])), [None, None]);
    }
}
