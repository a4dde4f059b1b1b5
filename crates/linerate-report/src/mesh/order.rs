//! In which order the hosts stand in the matrix.

use super::marks::Marks;
use super::view::HostView;

/// With more hosts than this the matrix is shown by name only.
const MOST_HOSTS: usize = 256;

/// An order of the hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Their places in [`super::MeshView::hosts`].
    pub hosts: Vec<usize>,
    /// Where a line separates two groups: before these places of [`Self::hosts`].
    pub breaks: Vec<usize>,
}

/// As the mesh has them. Groups are separated where their hosts stand together.
pub(super) fn by_name(hosts: &[HostView]) -> Order {
    let order: Vec<usize> = (0..hosts.len()).collect();
    let breaks = breaks(hosts, &order);
    let mut groups: Vec<_> = hosts.iter().map(|host| &host.group).collect();
    groups.sort_unstable();
    groups.dedup();
    let together = breaks.len() < groups.len();
    Order {
        hosts: order,
        breaks: if together { breaks } else { Vec::new() },
    }
}

/// Group by group; in each the slowest first, and next to each host the one that is most like it. `None` where that is the
/// order by name.
pub(super) fn by_similarity(hosts: &[HostView], marks: &Marks, name: &Order) -> Option<Order> {
    if hosts.len() > MOST_HOSTS || marks.count() != hosts.len() {
        return None;
    }
    let mut left = name.hosts.clone();
    let mut order: Vec<usize> = Vec::with_capacity(left.len());
    while let Some(next) = next(hosts, marks, &left, order.last().copied()) {
        left.retain(|host| *host != next);
        order.push(next);
    }
    let breaks = breaks(hosts, &order);
    let order = Order {
        hosts: order,
        breaks,
    };
    (order != *name).then_some(order)
}

/// The host after `last`: of its group the one most like it, else the slowest of those that are left. Equal ones stay in
/// the order of their names.
fn next(hosts: &[HostView], marks: &Marks, left: &[usize], last: Option<usize>) -> Option<usize> {
    let alike = last.and_then(|last| {
        let group = left
            .iter()
            .filter(|host| hosts[**host].group == hosts[last].group);
        group
            .map(|host| (*host, marks.difference(last, *host)))
            .min_by(|(_, a), (_, b)| a.total_cmp(b))
    });
    let slowest = || {
        left.iter()
            .min_by_key(|host| steps(&hosts[**host]))
            .copied()
    };
    alike.map(|(host, _)| host).or_else(slowest)
}

/// How fast a host is, in steps of ten percent, so that noise changes no order: a host without any rate comes first.
fn steps(host: &HostView) -> u64 {
    let shares = [host.out.share, host.inbound.share];
    let shares = shares.map(|share| (share.unwrap_or(0.0) * 10.0).min(9.0));
    let [out, inbound] = shares.map(|share| crate::words::whole(share.floor()));
    out + inbound
}

/// Where the group of a host differs from that of the one before.
fn breaks(hosts: &[HostView], order: &[usize]) -> Vec<usize> {
    let differs = |at: &usize| hosts[order[*at]].group != hosts[order[*at - 1]].group;
    (1..order.len()).filter(differs).collect()
}
