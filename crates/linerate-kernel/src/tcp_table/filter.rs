//! Which sockets the kernel reports, as the program that it runs over each (`INET_DIAG_BC_*`).

use std::net::IpAddr;

use crate::address::octets;

/// `INET_DIAG_BC_JMP`, `_S_COND`, `_D_COND` (`include/uapi/linux/inet_diag.h`).
const JUMP: u8 = 1;
const LOCAL: u8 = 7;
const REMOTE: u8 = 8;
/// Bytes of `struct inet_diag_bc_op`: code, how far to go on yes (u8), on no (u16).
const OPERATION: usize = 4;
/// Bytes of `struct inet_diag_hostcond` without the address: family, length of the prefix, padding, port.
const CONDITION: usize = 8;

/// Something that holds of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// The port at this host.
    LocalPort(u16),
    /// The port at the peer.
    RemotePort(u16),
    /// The peer's address is in a network. An IPv4 one holds for IPv4-mapped addresses of IPv6 too.
    Remote {
        /// An address of it.
        address: IpAddr,
        /// Length of its prefix: 0 to 32, or to 128.
        prefix: u8,
    },
}

/// The connections of which all conditions of any one clause hold; without a clause, all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SocketFilter {
    program: Vec<u8>,
}

/// The longest program that an attribute of a message holds, bytes.
const LONGEST: usize = 65_000;

impl SocketFilter {
    /// Every combination of one condition of each group: (a or b) and (c or d). An empty group asks for nothing.
    pub fn all_of(groups: &[Vec<Condition>]) -> Self {
        let mut clauses: Vec<Vec<Condition>> = vec![Vec::new()];
        for group in groups.iter().filter(|group| !group.is_empty()) {
            clauses = clauses
                .iter()
                .flat_map(|clause| {
                    group
                        .iter()
                        .map(move |condition| [clause.as_slice(), &[*condition]].concat())
                })
                .collect();
        }
        clauses.retain(|clause| !clause.is_empty());
        Self {
            program: program(&clauses),
        }
    }

    /// Whether it fits into one question: about a thousand combinations do.
    pub fn fits(&self) -> bool {
        self.program.len() <= LONGEST
    }

    pub(super) fn program(&self) -> &[u8] {
        &self.program
    }
}

/// The program: clause after clause; a condition that fails goes to the next clause, the end of a clause jumps to
/// the program's end, which is a yes. Four bytes beyond the end are a no.
fn program(clauses: &[Vec<Condition>]) -> Vec<u8> {
    let lengths: Vec<usize> = clauses
        .iter()
        .map(|clause| clause.iter().map(length).sum::<usize>() + OPERATION)
        .collect();
    // The last clause needs no jump over what follows.
    let total = lengths.iter().sum::<usize>().saturating_sub(OPERATION);
    let mut program = Vec::with_capacity(total);
    let mut end_of_clause = 0;
    for (clause, length) in clauses.iter().zip(lengths) {
        end_of_clause += length;
        let last = end_of_clause > total;
        for condition in clause {
            let no = if last { total + 4 } else { end_of_clause } - program.len();
            push(&mut program, *condition, no);
        }
        if !last {
            let no = total - program.len();
            push_operation(&mut program, JUMP, OPERATION, no);
        }
    }
    program
}

fn length(condition: &Condition) -> usize {
    let address = match condition {
        Condition::Remote { address, .. } => octets(*address).len(),
        _ => 0,
    };
    OPERATION + CONDITION + address
}

fn push(program: &mut Vec<u8>, condition: Condition, no: usize) {
    let (code, port, address, prefix) = match condition {
        Condition::LocalPort(port) => (LOCAL, Some(port), None, 0),
        Condition::RemotePort(port) => (REMOTE, Some(port), None, 0),
        Condition::Remote { address, prefix } => (REMOTE, None, Some(address), prefix),
    };
    push_operation(program, code, length(&condition), no);
    let family = match address {
        None => libc::AF_UNSPEC,
        Some(IpAddr::V4(_)) => libc::AF_INET,
        Some(IpAddr::V6(_)) => libc::AF_INET6,
    };
    let port = port.map_or(-1, i32::from);
    program.extend([u8::try_from(family).unwrap_or(0), prefix, 0, 0]);
    program.extend(port.to_ne_bytes());
    program.extend(address.map(octets).unwrap_or_default());
}

/// A program that is too long for its distances is too long for a message too, which refuses it.
fn push_operation(program: &mut Vec<u8>, code: u8, yes: usize, no: usize) {
    program.extend([code, u8::try_from(yes).unwrap_or(u8::MAX)]);
    program.extend(u16::try_from(no).unwrap_or(u16::MAX).to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::array;
    use proptest::prelude::*;

    /// The kernel's own reading (`inet_diag_bc_run`) for a connection with these ports and IPv4 peer.
    fn runs(program: &[u8], local: u16, remote: u16, peer: [u8; 4]) -> bool {
        let (mut at, mut left) = (0, i64::try_from(program.len()).unwrap());
        while left > 0 {
            let yes_step = i64::from(program[at + 1]);
            let no_step = i64::from(u16::from_ne_bytes(array(program, at + 2).unwrap()));
            let yes = match program[at] {
                JUMP => false,
                code => {
                    let (family, prefix) = (program[at + 4], usize::from(program[at + 5]));
                    let wanted = i32::from_ne_bytes(array(program, at + 8).unwrap());
                    let port = if code == LOCAL { local } else { remote };
                    let fits = family == 0
                        || (0..prefix).all(|bit| {
                            let of = |bytes: &[u8]| bytes[bit / 8] >> (7 - bit % 8) & 1;
                            of(&program[at + 12..]) == of(&peer)
                        });
                    (wanted == -1 || wanted == i32::from(port)) && fits
                }
            };
            let step = if yes { yes_step } else { no_step };
            assert!(step >= 4 && step % 4 == 0, "a step of {step}");
            left -= step;
            at += usize::try_from(step).unwrap();
        }
        left == 0
    }

    fn holds(condition: &Condition, local: u16, remote: u16, peer: [u8; 4]) -> bool {
        match condition {
            Condition::LocalPort(port) => *port == local,
            Condition::RemotePort(port) => *port == remote,
            Condition::Remote { address, prefix } => {
                let mask = u32::MAX.checked_shl(32 - u32::from(*prefix)).unwrap_or(0);
                let IpAddr::V4(address) = address else {
                    return false;
                };
                address.to_bits() & mask == u32::from_be_bytes(peer) & mask
            }
        }
    }

    fn condition() -> impl Strategy<Value = Condition> {
        prop_oneof![
            (0_u16..4).prop_map(Condition::LocalPort),
            (0_u16..4).prop_map(Condition::RemotePort),
            (any::<[u8; 4]>(), 0_u8..=32).prop_map(|(address, prefix)| Condition::Remote {
                address: address.into(),
                prefix
            }),
        ]
    }

    proptest! {
        #[test]
        fn the_program_says_what_the_filter_says(
            groups in proptest::collection::vec(proptest::collection::vec(condition(), 0..4), 0..4),
            local in 0_u16..4, remote in 0_u16..4, peer in any::<[u8; 4]>(),
        ) {
            let wanted = groups
                .iter()
                .filter(|group| !group.is_empty())
                .all(|group| group.iter().any(|one| holds(one, local, remote, peer)));
            let filter = SocketFilter::all_of(&groups);
            prop_assert_eq!(runs(filter.program(), local, remote, peer), wanted);
        }
    }

    #[test]
    fn nothing_asked_for_is_everything() {
        assert!(SocketFilter::default().program().is_empty());
        assert!(SocketFilter::all_of(&[vec![]]).program().is_empty());
    }
}
