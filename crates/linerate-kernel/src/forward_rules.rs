//! Rules that send forwarded packets to queues, written over nfnetlink into `nf_tables`, in the calling
//! thread's network namespace: no program (`nft`, `iptables`) is needed.
//!
//! The kernel has two ways to queue: `nf_tables`' own (`CONFIG_NFT_QUEUE`), and the one of `x_tables`
//! (`CONFIG_NETFILTER_XT_TARGET_NFQUEUE`), which `nf_tables` can call (`CONFIG_NFT_COMPAT`). Kernels exist
//! that have only one of them, so both are tried.

use std::io;

use rustix::net::netlink::NETFILTER;

use crate::KernelError;
use crate::netlink::{CREATE, Netlink, Order, push_attribute, push_nested};

/// `NFNL_SUBSYS_NFTABLES`, in the upper byte of a message's type.
const SUBSYSTEM: u16 = 10;
const BATCH_BEGIN: u16 = 16;
const BATCH_END: u16 = 17;
const NEW_TABLE: u16 = SUBSYSTEM << 8;
const NEW_CHAIN: u16 = SUBSYSTEM << 8 | 3;
const NEW_RULE: u16 = SUBSYSTEM << 8 | 6;
/// Behind what is there: at the end of its chain.
const APPEND: u16 = 0x800;
/// Families of netfilter: `NFPROTO_IPV4`, `NFPROTO_IPV6`.
const FAMILIES: [u8; 2] = [2, 10];
/// `NF_INET_FORWARD`
const FORWARD: u32 = 2;
/// The names of our table and chain.
const TABLE: &[u8] = b"linerate\0";
const CHAIN: &[u8] = b"forward\0";
// include/uapi/linux/netfilter/nf_tables.h
const NFTA_TABLE_NAME: u16 = 1;
const NFTA_CHAIN_TABLE: u16 = 1;
const NFTA_CHAIN_NAME: u16 = 3;
const NFTA_CHAIN_HOOK: u16 = 4;
const NFTA_CHAIN_TYPE: u16 = 7;
const NFTA_HOOK_HOOKNUM: u16 = 1;
const NFTA_HOOK_PRIORITY: u16 = 2;
const NFTA_RULE_TABLE: u16 = 1;
const NFTA_RULE_CHAIN: u16 = 2;
const NFTA_RULE_EXPRESSIONS: u16 = 4;
const NFTA_LIST_ELEM: u16 = 1;
const NFTA_EXPR_NAME: u16 = 1;
const NFTA_EXPR_DATA: u16 = 2;
const NFTA_META_DREG: u16 = 1;
const NFTA_META_KEY: u16 = 2;
const NFT_META_IIF: u32 = 4;
const NFT_REG_1: u32 = 1;
const NFTA_CMP_SREG: u16 = 1;
const NFTA_CMP_OP: u16 = 2;
const NFTA_CMP_DATA: u16 = 3;
const NFTA_DATA_VALUE: u16 = 1;
const NFTA_QUEUE_NUM: u16 = 1;
const NFTA_QUEUE_TOTAL: u16 = 2;
const NFTA_TARGET_NAME: u16 = 1;
const NFTA_TARGET_REV: u16 = 2;
const NFTA_TARGET_INFO: u16 = 3;

/// Which packets go to which queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToQueue {
    /// Index of the interface that they come in by.
    pub interface: u32,
    /// Number of the netfilter queue.
    pub queue: u16,
}

/// The way that the kernel took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueBy {
    /// `nf_tables`' `queue`.
    Tables,
    /// `x_tables`' `NFQUEUE`, called by `nf_tables`.
    Compat,
}

/// Sends what is forwarded, IPv4 and IPv6, to queues by the interface that it comes in by; all or
/// nothing. While nobody listens to a queue, its packets are dropped.
///
/// # Errors
/// `EPERM` without `CAP_NET_ADMIN`; `EPROTONOSUPPORT` or `EINVAL` where the kernel has no `nf_tables`
/// (`CONFIG_NF_TABLES`), `ENOENT` where it has neither way to queue.
pub fn queue_forwarded(rules: &[ToQueue]) -> Result<QueueBy, KernelError> {
    let attempt = |by| Netlink::open_to(Some(NETFILTER))?.order(&batch(rules, by));
    match attempt(QueueBy::Tables) {
        Ok(()) => return Ok(QueueBy::Tables),
        Err(error) if is_unknown(&error) => {}
        Err(error) => return Err(KernelError::of("write the rules of", "nf_tables")(error)),
    }
    attempt(QueueBy::Compat)
        .map(|()| QueueBy::Compat)
        .map_err(KernelError::of(
            "send packets to a queue with",
            "nf_tables, neither by its own queue nor by x_tables' NFQUEUE",
        ))
}

/// The kernel does not know an expression.
fn is_unknown(error: &io::Error) -> bool {
    let unknown = [libc::ENOENT, libc::EOPNOTSUPP, libc::EINVAL];
    error
        .raw_os_error()
        .is_some_and(|code| unknown.contains(&code))
}

fn batch(rules: &[ToQueue], by: QueueBy) -> Vec<Order> {
    let bracket = |kind| Order {
        kind,
        flags: 0,
        answered: false,
        // struct nfgenmsg with the subsystem in the place of the resource.
        body: vec![0, 0, 0, SUBSYSTEM.to_be_bytes()[1]],
    };
    let order = |kind, family, fill: &dyn Fn(&mut Vec<u8>)| {
        let mut body = vec![family, 0, 0, 0];
        fill(&mut body);
        Order {
            kind,
            flags: CREATE | if kind == NEW_RULE { APPEND } else { 0 },
            answered: true,
            body,
        }
    };
    let mut orders = vec![bracket(BATCH_BEGIN)];
    for family in FAMILIES {
        orders.push(order(NEW_TABLE, family, &|body| {
            push_attribute(body, NFTA_TABLE_NAME, TABLE);
        }));
        orders.push(order(NEW_CHAIN, family, &push_chain));
        for rule in rules {
            orders.push(order(NEW_RULE, family, &|body| push_rule(body, *rule, by)));
        }
    }
    orders.push(bracket(BATCH_END));
    orders
}

fn push_chain(body: &mut Vec<u8>) {
    push_attribute(body, NFTA_CHAIN_TABLE, TABLE);
    push_attribute(body, NFTA_CHAIN_NAME, CHAIN);
    push_nested(body, NFTA_CHAIN_HOOK, |hook| {
        push_attribute(hook, NFTA_HOOK_HOOKNUM, &FORWARD.to_be_bytes());
        push_attribute(hook, NFTA_HOOK_PRIORITY, &0_u32.to_be_bytes());
    });
    push_attribute(body, NFTA_CHAIN_TYPE, b"filter\0");
}

fn push_rule(body: &mut Vec<u8>, rule: ToQueue, by: QueueBy) {
    push_attribute(body, NFTA_RULE_TABLE, TABLE);
    push_attribute(body, NFTA_RULE_CHAIN, CHAIN);
    push_nested(body, NFTA_RULE_EXPRESSIONS, |list| {
        push_expression(list, b"meta\0", |data| {
            push_attribute(data, NFTA_META_DREG, &NFT_REG_1.to_be_bytes());
            push_attribute(data, NFTA_META_KEY, &NFT_META_IIF.to_be_bytes());
        });
        push_expression(list, b"cmp\0", |data| {
            push_attribute(data, NFTA_CMP_SREG, &NFT_REG_1.to_be_bytes());
            // 0: equal.
            push_attribute(data, NFTA_CMP_OP, &0_u32.to_be_bytes());
            push_nested(data, NFTA_CMP_DATA, |value| {
                push_attribute(value, NFTA_DATA_VALUE, &rule.interface.to_ne_bytes());
            });
        });
        match by {
            QueueBy::Tables => push_expression(list, b"queue\0", |data| {
                push_attribute(data, NFTA_QUEUE_NUM, &rule.queue.to_be_bytes());
                push_attribute(data, NFTA_QUEUE_TOTAL, &1_u16.to_be_bytes());
            }),
            QueueBy::Compat => push_expression(list, b"target\0", |data| {
                // struct xt_NFQ_info of revision 0: the queue's number, aligned to 8 bytes.
                let mut info = [0; 8];
                info[..2].copy_from_slice(&rule.queue.to_ne_bytes());
                push_attribute(data, NFTA_TARGET_NAME, b"NFQUEUE\0");
                push_attribute(data, NFTA_TARGET_REV, &0_u32.to_be_bytes());
                push_attribute(data, NFTA_TARGET_INFO, &info);
            }),
        }
    });
}

fn push_expression(list: &mut Vec<u8>, name: &[u8], fill: impl FnOnce(&mut Vec<u8>)) {
    push_nested(list, NFTA_LIST_ELEM, |element| {
        push_attribute(element, NFTA_EXPR_NAME, name);
        push_nested(element, NFTA_EXPR_DATA, fill);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::{attribute, text};

    #[test]
    fn a_rule_names_table_chain_and_interface() {
        let mut body = Vec::new();
        let rule = ToQueue {
            interface: 9,
            queue: 1,
        };
        push_rule(&mut body, rule, QueueBy::Tables);
        assert_eq!(text(attribute(&body, NFTA_RULE_TABLE).unwrap()), "linerate");
        let list = attribute(&body, NFTA_RULE_EXPRESSIONS).unwrap();
        let names: Vec<String> = crate::netlink::attributes(list)
            .map(|(_, element)| text(attribute(element, NFTA_EXPR_NAME).unwrap()))
            .collect();
        assert_eq!(names, ["meta", "cmp", "queue"]);
    }

    #[test]
    fn brackets_are_not_answered_and_everything_between_is() {
        let rule = ToQueue {
            interface: 9,
            queue: 1,
        };
        let answered: Vec<bool> = batch(&[rule], QueueBy::Compat)
            .iter()
            .map(|order| order.answered)
            .collect();
        assert_eq!(answered.len(), 2 + 2 * 3);
        assert!(!answered[0] && !answered[7] && answered[1..7].iter().all(|each| *each));
    }
}
