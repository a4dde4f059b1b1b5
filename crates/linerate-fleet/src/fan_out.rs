//! The same work for many hosts, so many at once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Hosts that are worked on at once where nobody says otherwise.
pub const USUAL_FAN_OUT: usize = 64;
/// A thread of it needs little: its work waits for others.
const STACK: usize = 512 << 10;

/// Does the work for each host, `fan_out` (at least 1) at once, and gives the results in the order of the hosts.
///
/// Where a thread cannot be started, the others do its part.
pub fn each<T: Send>(hosts: &[String], fan_out: usize, work: impl Fn(&str) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(hosts.len()));
    let worker = || {
        // It ends with the last host.
        while let Some((at, host)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            hosts.get(at).map(|host| (at, host))
        } {
            let result = work(host);
            if let Ok(mut done) = done.lock() {
                done.push((at, result));
            }
        }
    };
    std::thread::scope(|scope| {
        // This thread is one of them.
        for _ in 1..fan_out.min(hosts.len()) {
            let started = std::thread::Builder::new()
                .name("fan-out".to_owned())
                .stack_size(STACK)
                .spawn_scoped(scope, worker);
            if started.is_err() {
                break;
            }
        }
        worker();
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn results_stand_in_the_order_of_the_hosts_whoever_is_first() {
        let hosts: Vec<String> = (0..9).map(|number| format!("n{number}")).collect();
        // It only passes where three work at once.
        let three = Barrier::new(3);
        let most = AtomicUsize::new(0);
        let now = AtomicUsize::new(0);
        let names = each(&hosts, 3, |host| {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            three.wait();
            now.fetch_sub(1, Ordering::SeqCst);
            host.to_owned()
        });
        assert_eq!(names, hosts);
        assert_eq!(most.into_inner(), 3);
        assert!(each(&[], 3, str::to_owned).is_empty());
        assert_eq!(each(&hosts[..1], 0, str::to_owned), ["n0"]);
    }
}
