//! Why a lab cannot be had.

use std::io;

use linerate_kernel::KernelError;

/// What was tried, on what, why it failed, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// No namespaces.
    #[error(
        "{source}: a lab needs user namespaces, or root. What may forbid them: user.max_user_namespaces = 0, \
         kernel.unprivileged_userns_clone = 0 (Debian), kernel.apparmor_restrict_unprivileged_userns = 1 \
         (Ubuntu 24.04), a container without the right to make them, or a kernel without CONFIG_USER_NS and \
         CONFIG_NET_NS. Root can run a lab without them; `linerate test` and `linerate serve` need neither"
    )]
    Namespaces {
        /// The kernel's answer.
        source: KernelError,
    },
    /// A link, an address or a route.
    #[error(
        "{source}, on the lab's {place}. Links need CONFIG_VETH (module veth), and IPv6 must not be switched off"
    )]
    Network {
        /// The host or the router.
        place: String,
        /// The kernel's answer.
        source: KernelError,
    },
    /// A route with a congestion control that the kernel does not have.
    #[error(
        "{source}, on the lab's {place}. Congestion controls of this kernel: {available}; another needs its \
         module, loaded by root (modprobe tcp_NAME)"
    )]
    Congestion {
        /// The host.
        place: String,
        /// What there is.
        available: String,
        /// The kernel's answer.
        source: KernelError,
    },
    /// Packets cannot be sent to a queue.
    #[error(
        "{source}. A lab's path needs packet queues of the kernel: CONFIG_NETFILTER_NETLINK_QUEUE (module \
         nfnetlink_queue), and CONFIG_NFT_QUEUE (nft_queue) or CONFIG_NETFILTER_XT_TARGET_NFQUEUE with \
         CONFIG_NFT_COMPAT (xt_NFQUEUE, nft_compat). Root loads them: modprobe -a nfnetlink_queue nft_queue; a \
         kernel for clouds or containers may come without, its `-extra` modules or the standard kernel have \
         them. `linerate test` and `linerate serve` work without"
    )]
    Queue {
        /// The kernel's answer.
        source: KernelError,
    },
    /// The kernel's disciplines refuse.
    #[error(
        "{source}. The lab's engine by netem needs CONFIG_NET_SCH_NETEM (module sch_netem) for delay and loss, and \
         CONFIG_NET_SCH_TBF (sch_tbf) for a rate. Root loads them: modprobe -a sch_netem sch_tbf; a kernel for clouds \
         or containers may come without, its `-extra` modules or the standard kernel have them"
    )]
    Disciplines {
        /// The kernel's answer.
        source: KernelError,
    },
    /// The token bucket of a link.
    #[error(
        "{source}. A star's links need CONFIG_NET_SCH_TBF (module sch_tbf) for their rates; root loads it: modprobe sch_tbf"
    )]
    Shaping {
        /// The kernel's answer.
        source: KernelError,
    },
    /// The scenario asks more than netem and tbf can do.
    #[error("the lab's engine by netem cannot do what the scenario asks: {}", .keys.join("; "))]
    BeyondNetem {
        /// The keys, each with the reason.
        keys: Vec<String>,
    },
    /// Neither engine.
    #[error("{queues}. Without them, netem and tbf could carry a lab's packets, but: {netem}")]
    NoEngine {
        /// Why there are no packet queues.
        queues: String,
        /// Why netem does not help.
        netem: String,
    },
    /// A setting of a namespace.
    #[error("cannot set {key} = {value} on the lab's {place}: {reason}")]
    Setting {
        /// The host or the router.
        place: String,
        /// The sysctl's name.
        key: String,
        /// The value that was asked for.
        value: String,
        /// What the kernel says.
        reason: String,
    },
    /// A share of a CPU that weights cannot make.
    #[error(
        "cannot give a program {asked} of a CPU in the lab: this process has a niceness of {niceness}, and from there \
         the nearest that weights make is {made:.2}. Start it without nice(1)"
    )]
    Share {
        /// What was asked for, 0 to 1.
        asked: f64,
        /// What can be made.
        made: f64,
        /// Of this process.
        niceness: i32,
    },
    /// No such host.
    #[error("the lab has no host '{name}', only {hosts}")]
    Host {
        /// The name.
        name: String,
        /// Those there are.
        hosts: String,
    },
    /// A thread, a child, or the engine at work.
    #[error("cannot {operation} {object} in the lab: {source}")]
    Work {
        /// A verb phrase.
        operation: &'static str,
        /// On what.
        object: String,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl LabError {
    /// For `map_err`.
    pub(super) fn work(
        operation: &'static str,
        object: impl Into<String>,
    ) -> impl FnOnce(io::Error) -> Self {
        let object = object.into();
        move |source| Self::Work {
            operation,
            object,
            source,
        }
    }

    pub(super) fn network(place: &str) -> impl Fn(KernelError) -> Self + use<> {
        let place = place.to_owned();
        move |source| Self::Network {
            place: place.clone(),
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: io::ErrorKind) -> KernelError {
        KernelError {
            operation: "make",
            object: "a thing".to_owned(),
            source: code.into(),
        }
    }

    #[test]
    fn what_is_missing_is_named_and_what_still_works() {
        let source = refused(io::ErrorKind::PermissionDenied);
        let namespaces = LabError::Namespaces { source }.to_string();
        let source = refused(io::ErrorKind::NotFound);
        let queue = LabError::Queue { source }.to_string();
        let source = refused(io::ErrorKind::NotFound);
        let netem = LabError::NoEngine {
            queues: LabError::Queue {
                source: refused(io::ErrorKind::NotFound),
            }
            .to_string(),
            netem: LabError::Disciplines { source }.to_string(),
        }
        .to_string();
        let beyond = LabError::NoEngine {
            queues: LabError::Queue {
                source: refused(io::ErrorKind::NotFound),
            }
            .to_string(),
            netem: LabError::BeyondNetem {
                keys: vec!["'policer' (why)".to_owned(), "'codel' (why)".to_owned()],
            }
            .to_string(),
        }
        .to_string();
        for (text, words) in [
            (
                &netem,
                ["nfnetlink_queue", "CONFIG_NET_SCH_NETEM", "sch_tbf"],
            ),
            (
                &beyond,
                ["nfnetlink_queue", "'policer' (why)", "'codel' (why)"],
            ),
            (
                &namespaces,
                [
                    "cannot make a thing",
                    "user.max_user_namespaces",
                    "CONFIG_USER_NS",
                ],
            ),
            (
                &queue,
                ["cannot make a thing", "nfnetlink_queue", "CONFIG_NFT_QUEUE"],
            ),
        ] {
            assert!(words.iter().all(|word| text.contains(word)), "{text}");
            assert!(
                text.contains("`linerate test` and `linerate serve`"),
                "{text}"
            );
        }
    }
}
