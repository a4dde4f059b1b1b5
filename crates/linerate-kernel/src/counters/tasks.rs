//! The process's threads: how long they ran, and how long they waited for a CPU.

use std::collections::HashMap;
use std::io;

use linerate_model::units::Nanos;

use crate::proc_file::ProcFile;

const TASKS: &str = "/proc/self/task";

/// One thread's times since it began (`/proc/self/task/*/schedstat`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadTimes {
    /// Its id.
    pub tid: u32,
    /// Its name, at most 15 bytes.
    pub name: String,
    /// On a CPU; brought up to date at each tick and switch, so a running thread lags by up to 4 ms.
    pub run: Nanos,
    /// Ready and waiting for a CPU (run delay): other threads, a quota, a hypervisor.
    pub wait: Nanos,
    /// Times that it was put on a CPU.
    pub switches: u64,
}

/// Files of the threads that were seen, kept open.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    known: HashMap<u32, Task>,
}

#[derive(Debug)]
struct Task {
    schedstat: ProcFile,
    name: ProcFile,
}

impl Tasks {
    /// Ascending by id. A thread that ends meanwhile is left out.
    pub(crate) fn read(&mut self) -> io::Result<Vec<ThreadTimes>> {
        let mut threads = Vec::with_capacity(self.known.len());
        for entry in std::fs::read_dir(TASKS)? {
            let Some(tid) = entry?
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok())
            else {
                continue;
            };
            threads.extend(self.thread(tid));
        }
        threads.sort_by_key(|thread: &ThreadTimes| thread.tid);
        self.known.retain(|tid, _| {
            threads
                .binary_search_by_key(tid, |thread| thread.tid)
                .is_ok()
        });
        Ok(threads)
    }

    fn thread(&mut self, tid: u32) -> Option<ThreadTimes> {
        if let Some(times) = self.known.get_mut(&tid).and_then(|task| task.read(tid)) {
            return Some(times);
        }
        // New, or the id of one that ended was given to another.
        let mut task = Task::open(tid).ok()?;
        let times = task.read(tid)?;
        self.known.insert(tid, task);
        Some(times)
    }
}

impl Task {
    fn open(tid: u32) -> io::Result<Self> {
        let schedstat = ProcFile::open(format!("{TASKS}/{tid}/schedstat"))?;
        Ok(Self {
            schedstat,
            name: ProcFile::open(format!("{TASKS}/{tid}/comm"))?,
        })
    }

    fn read(&mut self, tid: u32) -> Option<ThreadTimes> {
        let [run, wait, switches] = schedstat(self.schedstat.read().ok()?)?;
        let name = self.name.read().unwrap_or_default().trim_end().to_owned();
        Some(ThreadTimes {
            tid,
            name,
            run: Nanos(run),
            wait: Nanos(wait),
            switches,
        })
    }
}

/// Time on a CPU ns, time waiting ns, times put on a CPU. All 0 where the kernel has the file but
/// does not count: a thread that is read has been on a CPU or waits for one.
fn schedstat(text: &str) -> Option<[u64; 3]> {
    let mut fields = text
        .split_ascii_whitespace()
        .map(|field| field.parse().ok());
    let figures = [fields.next()??, fields.next()??, fields.next()??];
    (figures != [0; 3]).then_some(figures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn threads_come_and_go_and_have_names() {
        let mut tasks = Tasks::default();
        let (stop, stopped) = mpsc::channel::<()>();
        let (ready, started) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("worker-7".to_owned())
            .spawn(move || {
                ready.send(crate::thread::id()).unwrap();
                stopped.recv().unwrap_err();
            });
        let tid = started.recv().unwrap();
        let seen = tasks
            .read()
            .unwrap()
            .into_iter()
            .find(|thread| thread.tid == tid)
            .unwrap();
        assert_eq!(seen.name, "worker-7");
        assert!(seen.switches >= 1);
        drop(stop);
        thread.unwrap().join().unwrap();
        // The kernel may list it a moment longer than join waits.
        let gone = (0..1000).any(|_| {
            std::thread::yield_now();
            tasks.read().unwrap().iter().all(|thread| thread.tid != tid)
        });
        assert!(gone && !tasks.known.contains_key(&tid));
    }

    #[test]
    fn work_shows_as_time_on_a_cpu() {
        let before = crate::clock::thread_cpu();
        while crate::clock::thread_cpu().since(before) < Nanos::from_millis(30) {}
        std::thread::yield_now();
        let own = crate::thread::id();
        let times = Tasks::default().read().unwrap();
        let times = times.iter().find(|thread| thread.tid == own).unwrap();
        assert!(times.run >= Nanos::from_millis(20), "{times:?}");
    }

    #[test]
    fn schedstat_is_three_figures_or_nothing() {
        assert_eq!(schedstat("123 45 6\n"), Some([123, 45, 6]));
        assert_eq!(schedstat("0 0 0\n"), None);
        assert_eq!(schedstat("123 45\n"), None);
        assert_eq!(schedstat(""), None);
    }
}
