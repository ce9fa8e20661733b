//! Reads the counters of processes and of the machine from /proc. All functions are best effort: if
//! a counter is unavailable, the result is `None` or zero.

use std::fs;
use std::path::Path;

/// The clock ticks per second in /proc's times: USER_HZ, which is 100 on every Linux that Rust
/// supports.
const TICKS: f64 = 100.0;

/// The thread id of the calling thread.
pub fn own_task() -> Option<u64> {
    let link = fs::read_link("/proc/thread-self").ok()?;
    link.file_name()?.to_str()?.parse().ok()
}

/// The CPU seconds used by a thread of this process.
pub fn task_cpu_seconds(task: u64) -> f64 {
    let text = fs::read_to_string(format!("/proc/self/task/{task}/schedstat")).unwrap_or_default();
    let ns: f64 = text
        .split(' ')
        .next()
        .and_then(|v| v.parse().ok())
        .unwrap_or(0.0);
    ns / 1e9
}

/// The counters of a process at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ProcessTimes {
    /// CPU seconds in user mode and in the kernel.
    pub user: f64,
    pub system: f64,
    /// Context switches of the threads that exist now.
    pub voluntary: u64,
    pub forced: u64,
    pub threads: usize,
}

/// Reads the counters of a process.
pub fn process_times(pid: u32) -> Option<ProcessTimes> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |i: usize| fields.get(i)?.parse::<f64>().ok();
    let mut times = ProcessTimes {
        user: ticks(11)? / TICKS,
        system: ticks(12)? / TICKS,
        ..ProcessTimes::default()
    };
    for task in tasks(pid) {
        times.threads += 1;
        let status =
            fs::read_to_string(format!("/proc/{pid}/task/{task}/status")).unwrap_or_default();
        for line in status.lines() {
            let number = || {
                line.split_whitespace()
                    .nth(1)
                    .and_then(|v| v.parse::<u64>().ok())
                    .unwrap_or(0)
            };
            if line.starts_with("voluntary_ctxt") {
                times.voluntary += number();
            } else if line.starts_with("nonvoluntary_ctxt") {
                times.forced += number();
            }
        }
    }
    Some(times)
}

/// The counters of a thread of another process at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    /// Nanoseconds on a processor.
    pub cpu_ns: u64,
    /// The number of voluntary context switches.
    pub sleeps: u64,
}

/// Reads the counters of one thread. `None` if it has ended, or if access is denied.
pub fn thread_times(pid: u32, task: u32) -> Option<ThreadTimes> {
    let read = |name| fs::read_to_string(format!("/proc/{pid}/task/{task}/{name}")).ok();
    let cpu_ns = read("schedstat")?.split(' ').next()?.parse().ok()?;
    let status = read("status")?;
    let sleeps = status
        .lines()
        .find_map(|l| l.strip_prefix("voluntary_ctxt_switches:"))?;
    Some(ThreadTimes {
        cpu_ns,
        sleeps: sleeps.trim().parse().ok()?,
    })
}

/// The seconds that a process's current threads have run, as counted by the scheduler.
/// [`process_times`] counts clock ticks for the running thread, which overstates threads that are
/// woken by timers several times. `None` if access is denied.
pub fn run_seconds(pid: u32) -> Option<f64> {
    let run = |task| Some(thread_times(pid, task)?.cpu_ns as f64 / 1e9);
    let all: Vec<f64> = tasks(pid).into_iter().filter_map(run).collect();
    (!all.is_empty()).then(|| all.iter().sum())
}

/// The private memory of a process in bytes: resident pages that are not shared, and swapped-out
/// pages.
pub fn own_bytes(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let kib = |name: &str| -> Option<u64> {
        let line = text.lines().find_map(|l| l.strip_prefix(name))?;
        line.trim().trim_end_matches(" kB").parse().ok()
    };
    Some((kib("Private_Dirty:")? + kib("Private_Clean:")? + kib("Swap:")?) << 10)
}

/// The thread ids of a process.
pub fn tasks(pid: u32) -> Vec<u32> {
    numbers(Path::new(&format!("/proc/{pid}/task")))
}

fn numbers(dir: &Path) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    entries
        .filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

/// The CPU seconds of the whole machine: used by any process, and taken by the hypervisor.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MachineTimes {
    pub busy: f64,
    pub stolen: f64,
}

pub fn machine_times() -> MachineTimes {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    let v: Vec<f64> = line
        .split_whitespace()
        .skip(1)
        .take(8)
        .filter_map(|v| v.parse().ok())
        .collect();
    if v.len() < 8 {
        return MachineTimes::default();
    }
    MachineTimes {
        busy: (v.iter().sum::<f64>() - v[3] - v[4] - v[7]) / TICKS,
        stolen: v[7] / TICKS,
    }
}

/// The process on this machine that listens on a TCP port or a Unix socket. `None` if none is
/// visible, because the server is on another machine or access is denied.
pub fn listener(port: u16, socket: Option<&Path>) -> Option<u32> {
    let inodes = match socket {
        Some(path) => unix_inodes(path),
        None => tcp_inodes(port),
    };
    if inodes.is_empty() {
        return None;
    }
    let wanted: Vec<String> = inodes.iter().map(|i| format!("socket:[{i}]")).collect();
    numbers(Path::new("/proc")).into_iter().find(|pid| {
        let Ok(fds) = fs::read_dir(format!("/proc/{pid}/fd")) else {
            return false;
        };
        fds.flatten().any(|fd| {
            fs::read_link(fd.path())
                .is_ok_and(|link| link.to_str().is_some_and(|l| wanted.iter().any(|w| w == l)))
        })
    })
}

fn tcp_inodes(port: u16) -> Vec<u64> {
    let mut found = Vec::new();
    for file in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let text = fs::read_to_string(file).unwrap_or_default();
        for line in text.lines().skip(1) {
            let f: Vec<&str> = line.split_whitespace().collect();
            let local = f
                .get(1)
                .and_then(|a| a.rsplit_once(':'))
                .and_then(|(_, p)| u16::from_str_radix(p, 16).ok());
            // 0A: LISTEN.
            if local == Some(port) && f.get(3) == Some(&"0A") {
                found.extend(f.get(9).and_then(|i| i.parse::<u64>().ok()));
            }
        }
    }
    found
}

fn unix_inodes(path: &Path) -> Vec<u64> {
    let text = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let wanted = path.to_string_lossy();
    text.lines()
        .filter_map(|line| {
            let f: Vec<&str> = line.split_whitespace().collect();
            (f.get(7) == Some(&wanted.as_ref())).then(|| f.get(6)?.parse().ok())?
        })
        .collect()
}

/// Whether a host name is an address of this machine.
pub fn is_local(host: &str) -> bool {
    matches!(host, "localhost" | "127.0.0.1" | "::1") || host.starts_with("127.")
}

/// Describes processors, memory and kernel in one line.
pub fn describe_machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find(|l| l.starts_with("model name"))
        .and_then(|l| l.split_once(':'))
        .map_or("?", |(_, v)| v.trim());
    let count = cpu
        .lines()
        .filter(|l| l.starts_with("processor"))
        .count()
        .max(1);
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib: f64 = memory
        .split_whitespace()
        .nth(1)
        .and_then(|v| v.parse().ok())
        .unwrap_or(0.0);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "{count} x {model}, {:.0} GiB, Linux {}",
        kib / f64::from(1 << 20),
        kernel.trim()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listener_finds_this_process_by_port() {
        let listener_socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener_socket.local_addr().expect("bound").port();
        assert_eq!(listener(port, None), Some(std::process::id()));
        drop(listener_socket);
    }

    #[test]
    fn times_of_this_process_are_available() {
        let times = process_times(std::process::id()).expect("it runs");
        assert!(times.threads >= 1);
        assert!(machine_times().busy > 0.0);
        assert!(own_task().is_some());
        assert_eq!(process_times(u32::MAX), None);
        let own = u32::try_from(own_task().expect("it runs")).expect("a pid");
        let thread = thread_times(std::process::id(), own).expect("it runs");
        assert!(thread.cpu_ns > 0);
        assert_eq!(thread_times(std::process::id(), u32::MAX), None);
        assert!(own_bytes(std::process::id()).expect("own memory") > 1 << 16);
    }
}
