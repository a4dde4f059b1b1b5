//! Which queue an interrupt is of, as the kernel tells it: its generic netlink family `netdev` names the NAPI instance of
//! each queue and the interrupt of each instance (Linux 6.8; Documentation/netlink/specs/netdev.yaml). Drivers tell it
//! one after the other, and of the others nothing comes.

use std::collections::BTreeMap;
use std::io;

use rustix::net::netlink::GENERIC;

use crate::netlink::{Ask, Netlink, attribute, push_attribute, text, word};

// include/uapi/linux/genetlink.h
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// Bytes of `struct genlmsghdr`: command u8, version u8, two that are reserved.
const HEADER: usize = 4;
// include/uapi/linux/netdev.h
const NETDEV_CMD_QUEUE_GET: u8 = 10;
const NETDEV_CMD_NAPI_GET: u8 = 11;
const NETDEV_A_QUEUE_ID: u16 = 1;
const NETDEV_A_QUEUE_IFINDEX: u16 = 2;
const NETDEV_A_QUEUE_NAPI_ID: u16 = 4;
const NETDEV_A_NAPI_IFINDEX: u16 = 1;
const NETDEV_A_NAPI_ID: u16 = 2;
const NETDEV_A_NAPI_IRQ: u16 = 3;

/// The queue of each interrupt of an interface, by the interrupt's number; of several the first. Nothing where the
/// kernel or the driver does not tell, or the interface is down.
///
/// # Errors
/// `ENOENT` before Linux 6.3, `EOPNOTSUPP` before 6.8; `Interrupted` where queues changed meanwhile; those of netlink.
pub(super) fn of(index: u32) -> io::Result<BTreeMap<u32, u32>> {
    let mut netlink = Netlink::open_to(Some(GENERIC))?;
    let family = family(&mut netlink)?;
    let mut ask = |command, kind, take: &mut dyn FnMut(&[u8])| {
        let mut body = head(command);
        push_attribute(&mut body, kind, &index.to_ne_bytes());
        let whole = netlink.dump(family, &body, |_, answer| {
            take(answer.get(HEADER..).unwrap_or_default());
        })?;
        whole
            .then_some(())
            .ok_or_else(|| io::Error::from(io::ErrorKind::Interrupted))
    };
    let (mut queues, mut instances) = (Vec::new(), Vec::new());
    let queue = &mut |answer: &[u8]| queues.extend(queue_and_instance(answer));
    ask(NETDEV_CMD_QUEUE_GET, NETDEV_A_QUEUE_IFINDEX, queue)?;
    let instance = &mut |answer: &[u8]| instances.extend(instance_and_interrupt(answer));
    ask(NETDEV_CMD_NAPI_GET, NETDEV_A_NAPI_IFINDEX, instance)?;
    Ok(joined(&queues, &instances))
}

fn head(command: u8) -> Vec<u8> {
    vec![command, 1, 0, 0]
}

/// The number that the kernel gave to the family.
fn family(netlink: &mut Netlink) -> io::Result<u16> {
    let mut body = head(CTRL_CMD_GETFAMILY);
    push_attribute(&mut body, CTRL_ATTR_FAMILY_NAME, b"netdev\0");
    let mut found = None;
    netlink.ask(GENL_ID_CTRL, Ask::One, &body, |answer| {
        let answer = answer.get(HEADER..).unwrap_or_default();
        let name = attribute(answer, CTRL_ATTR_FAMILY_NAME).map(text);
        let number = attribute(answer, CTRL_ATTR_FAMILY_ID).and_then(|id| id.try_into().ok());
        if name.as_deref() == Some("netdev") {
            found = number.map(u16::from_ne_bytes);
        }
    })?;
    found.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// A queue that no interrupt serves by itself (of a device without NAPI, or down) has no instance.
fn queue_and_instance(answer: &[u8]) -> Option<(u32, u32)> {
    let number = |kind| word(attribute(answer, kind)?, 0);
    Some((number(NETDEV_A_QUEUE_ID)?, number(NETDEV_A_QUEUE_NAPI_ID)?))
}

/// An instance whose driver does not tell its interrupt has none here.
fn instance_and_interrupt(answer: &[u8]) -> Option<(u32, u32)> {
    let number = |kind| word(attribute(answer, kind)?, 0);
    Some((number(NETDEV_A_NAPI_ID)?, number(NETDEV_A_NAPI_IRQ)?))
}

fn joined(queues: &[(u32, u32)], instances: &[(u32, u32)]) -> BTreeMap<u32, u32> {
    let mut found: BTreeMap<u32, u32> = BTreeMap::new();
    for (queue, of_queue) in queues {
        for (_, interrupt) in instances.iter().filter(|(one, _)| one == of_queue) {
            let first = found.entry(*interrupt).or_insert(*queue);
            *first = (*first).min(*queue);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(attributes: &[(u16, u32)]) -> Vec<u8> {
        let mut body = Vec::new();
        for (kind, value) in attributes {
            push_attribute(&mut body, *kind, &value.to_ne_bytes());
        }
        body
    }

    #[test]
    fn queues_and_interrupts_meet_at_their_napi_instance() {
        // Two queues of an interface of index 4, each way; the transmit queue 1 has no instance.
        let queues = [(0, 0, 257), (1, 0, 258), (0, 1, 257)];
        let queues: Vec<_> = queues
            .iter()
            .filter_map(|(id, kind, napi)| {
                queue_and_instance(&answer(&[(1, *id), (3, *kind), (2, 4), (4, *napi)]))
            })
            .chain(queue_and_instance(&answer(&[(1, 1), (3, 1), (2, 4)])))
            .collect();
        assert_eq!(queues, [(0, 257), (1, 258), (0, 257)]);
        let instances: Vec<_> = [(257, 41), (258, 40)]
            .iter()
            .filter_map(|(id, irq)| instance_and_interrupt(&answer(&[(2, *id), (1, 4), (3, *irq)])))
            .collect();
        assert_eq!(joined(&queues, &instances), [(40, 1), (41, 0)].into());
        // virtio's driver tells its instances without their interrupts (Linux 6.18).
        assert_eq!(instance_and_interrupt(&answer(&[(2, 257), (1, 4)])), None);
        // One interrupt for all.
        assert_eq!(joined(&[(3, 7), (2, 7)], &[(7, 40)]), [(40, 2)].into());
    }

    #[test]
    fn the_running_kernel_is_understood_or_has_no_such_family() {
        match of(1) {
            Ok(found) => assert_eq!(
                found,
                BTreeMap::new(),
                "the loopback interface has no interrupt"
            ),
            Err(error) => assert!(
                matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EOPNOTSUPP)),
                "{error}"
            ),
        }
    }
}
